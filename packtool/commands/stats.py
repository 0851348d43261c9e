"""`stats`: what a corpus, a token store or a packed dataset holds, and what each strategy would make of it."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

from packtool.commands.stats_corpus import CorpusOptions
from packtool.commands.stats_documents import corpus_report, store_report
from packtool.commands.stats_packed import packed_report
from packtool.comparing import Candidate, candidates
from packtool.errors import UsageError
from packtool.packing.options import flag
from packtool.report.page import page
from packtool.report.schema import MeasuredReport, Report, StoreReport
from packtool.storage import manifest as manifests
from packtool.storage.files import write_bytes
from packtool.storage.manifest import OrderManifest, StoreManifest
from packtool.storage.output import UNFINISHED

Share = str | float | Fraction


def stats(
    path: Path | str | Sequence[Path | str],
    *,
    compare: str | Sequence[str] | None = None,
    sequence_length: int | Sequence[int] | None = None,
    buckets: Sequence[int] | Sequence[str] | None = None,
    atom_size: int | Sequence[int] | None = None,
    extra_capacity: int | Sequence[int] | None = None,
    max_repetition: Share | Sequence[Share] | None = None,
    padding_threshold: Share | Sequence[Share] | None = None,
    min_bucket: int | Sequence[int] | None = None,
    batch_size: int | None = None,
    html: Path | str | None = None,
    order: Path | str | None = None,
    tokenizer: str | Path | None = None,
    eos_token: str | int | None = None,
    text_field: str | None = None,
    format: str | None = None,
    workers: int | None = None,
    quiet: bool = True,
) -> Report:
    """Measure what lies at `path`.

    Args:
        path: a token store or several that are packed together, a packed dataset, or text files as `packtool.tokenize`
            reads them.
        compare: strategies to try on the documents of a token store or of text files, or ``all``.
        sequence_length: row lengths to try them with.
        buckets: row lengths for the strategies that take several, such as ``[2048, 4096]``; or several such lists to
            try, such as ``["2048,4096", "1024,8192"]``; default theirs.
        atom_size, extra_capacity, max_repetition, padding_threshold, min_bucket: values to try, one or a list, with
            the strategies that take them; every combination is tried.
        batch_size: rows in a batch, for steps per epoch and mixing (with several buckets: of the longest rows).
        html: file to write the report to, as one self-contained page.
        order: for a packed dataset: what ``packtool shuffle --order-only`` wrote; its rows are measured in that order.
        tokenizer: for text files: count tokens with it. With `compare`, default the one that comes with packtool.
        eos_token, text_field, format: for text files, as `packtool.tokenize` takes them.
        workers: for text files: processes; None for all processors.
        quiet: no progress bar.

    Returns:
        The report, as docs/report-schema.md describes it.

    Raises:
        UsageError: options that make no sense for what lies there.
        DataError: it is missing, unfinished or damaged.
    """
    if batch_size is not None and batch_size < 1:
        raise UsageError("bad-option", f"{batch_size} is out of range", remedy="give 1 or more", where="--batch-size")
    if html is not None and (Path(html).is_dir() or not Path(html).absolute().parent.is_dir()):
        what = f"{html} can't be written: it is a directory, or lies in one that does not exist"
        raise UsageError("bad-option", what, remedy="give a file in an existing directory", where="--html")
    paths = [str(each) for each in ([path] if isinstance(path, str | Path) else path)]
    grid = {
        "buckets": _sets(buckets),
        "atom_size": _listed(atom_size),
        "extra_capacity": _listed(extra_capacity),
        "max_repetition": _shares(max_repetition, "max_repetition"),
        "padding_threshold": _shares(padding_threshold, "padding_threshold"),
        "min_bucket": _listed(min_bucket),
    }
    tried = _candidates(compare, _listed(sequence_length), {name: tried for name, tried in grid.items() if tried})
    if any(map(_is_dataset, paths)):
        given = {"--tokenizer": tokenizer, "--eos-token": eos_token, "--text-field": text_field, "--format": format}
        for option in (name for name, value in given.items() if value is not None):
            remedy = "leave it out: this directory holds tokens already"
            raise UsageError("option-not-taken", "only text files take this option", remedy=remedy, where=option)
        report: Report = _measure(paths, None if order is None else Path(order), tried, batch_size, quiet)
    else:
        _refuse_order(order)
        _require_one(paths)
        options = CorpusOptions(tokenizer, eos_token, text_field or "text", format, workers)
        report = corpus_report(paths[0], options, tried, batch_size, quiet=quiet)
    if html is not None:
        write_bytes(Path(html), page(report).encode())
    return report


def _is_dataset(path: str) -> bool:
    """Whether a directory is what a packtool command wrote, finished or not."""
    place = Path(path)
    return (place / manifests.MANIFEST).exists() or (place / UNFINISHED).is_dir() or any(place.glob("tokens-*.npy"))


def _measure(
    paths: Sequence[str], order: Path | None, tried: Sequence[Candidate], batch_size: int | None, quiet: bool
) -> StoreReport | MeasuredReport:
    found = [manifests.read(Path(path)) for path in paths]
    for path, manifest in zip(paths, found, strict=True):
        if isinstance(manifest, OrderManifest):
            raise UsageError(
                "not-a-dataset",
                "an order, which has no rows of its own",
                remedy=f"give the packed dataset it orders, with --order {path}",
                where=path,
            )
    if all(isinstance(manifest, StoreManifest) for manifest in found):
        _refuse_order(order)
        return store_report(paths, tried, batch_size, quiet=quiet)
    _require_one(paths)
    if tried:
        raise UsageError(
            "not-a-store",
            "a packed dataset, where strategies are compared on documents",
            remedy="give the token store it was packed from, or leave --compare out",
            where=paths[0],
        )
    return packed_report(paths[0], order, batch_size, quiet=quiet)


def _refuse_order(order: Path | str | None) -> None:
    if order is not None:
        remedy = "give it with the packed dataset that it orders"
        raise UsageError("option-not-taken", "only packed datasets take an order", remedy=remedy, where="--order")


def _require_one(paths: Sequence[str]) -> None:
    if len(paths) != 1:
        raise UsageError(
            "not-a-store",
            "several paths are measured together, which only token stores can be",
            remedy="give token stores alone, or one path",
            where=paths[-1] if paths else "PATH",
        )


def _candidates(
    compare: str | Sequence[str] | None, sizes: Sequence[int], grid: dict[str, list[Any]]
) -> list[Candidate]:
    if compare is None:
        for name in (["sequence_length"] if sizes else []) + list(grid):
            raise UsageError(
                "option-not-taken", "only strategies take this option", remedy="add --compare all", where=flag(name)
            )
        return []
    names = [compare] if isinstance(compare, str) else list(compare)
    return candidates(names, sizes, grid=grid)


def _listed(values: Any) -> list[Any]:
    """One value or several, as a list."""
    if values is None:
        return []
    return list(dict.fromkeys(values)) if isinstance(values, list | tuple | range) else [values]


def _shares(values: Share | Sequence[Share] | None, name: str) -> list[Fraction]:
    """Exact shares: 0.3 is three tenths, not the binary number next to it."""
    try:
        return [Fraction(str(value)) for value in _listed(values)]
    except (ValueError, ZeroDivisionError):
        raise UsageError(
            "bad-option", f"{values!r} is not a share", remedy="give numbers from 0 to 1", where=flag(name)
        ) from None


def _sets(buckets: Sequence[int] | Sequence[str] | None) -> list[tuple[int, ...]]:
    """Lists of row lengths: one list of numbers, or several as text.

    >>> _sets([2048, 4096]), _sets(["512,1024", "2048"])
    ([(2048, 4096)], [(512, 1024), (2048,)])
    """
    if buckets is None:
        return []
    if not any(isinstance(each, str) for each in buckets):
        return [tuple(int(each) for each in buckets)]
    try:
        return [tuple(int(part) for part in str(each).split(",")) for each in buckets]
    except ValueError:
        raise UsageError(
            "bad-option",
            f"{' '.join(map(str, buckets))} are not lists of row lengths",
            remedy="write them like 2048,4096",
            where="--buckets",
        ) from None
