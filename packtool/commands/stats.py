"""`stats`: what a corpus, a token store or a packed dataset holds, and what each strategy would make of it."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

from packtool import cluster
from packtool.commands.places import with_places
from packtool.commands.stats_corpus import CorpusOptions
from packtool.commands.stats_documents import corpus_report, store_report
from packtool.commands.stats_packed import packed_report
from packtool.comparing import Candidate, candidates
from packtool.errors import UsageError
from packtool.options.call import takes
from packtool.options.declare import flag
from packtool.options.stats import Share, StatsArguments
from packtool.report.page import page
from packtool.report.schema import MeasuredReport, Report, StoreReport
from packtool.storage import manifest as manifests
from packtool.storage.files import write_bytes
from packtool.storage.manifest import OrderManifest, StoreManifest
from packtool.storage.publish import UNFINISHED


@takes(StatsArguments)
@cluster.kept()
@with_places("path", "order", corpus="path")
def stats(options: StatsArguments) -> Report:
    """Measure what lies at `path`.

    Returns:
        The report, as docs/report-schema.md describes it.

    Raises:
        UsageError: options that make no sense for what lies there.
        DataError: it is missing, unfinished or damaged.
    """
    html = None if options.html is None else Path(options.html)
    if html is not None and (html.is_dir() or not html.absolute().parent.is_dir()):
        what = f"{html} can't be written: it is a directory, or lies in one that does not exist"
        raise UsageError("bad-option", what, remedy="give a file in an existing directory", where="--html")
    if html is not None and html.suffix.lower() not in (".html", ".htm"):
        what = f"{str(html)!r} is not the name of a page, and what lies there would be overwritten"
        raise UsageError("bad-option", what, remedy="give a name that ends in .html", where="--html")
    size = None if options.parameters is None else _parameters(options.parameters)
    paths = [str(each) for each in ([options.path] if isinstance(options.path, str | Path) else options.path)]
    grid = {
        "buckets": _sets(options.buckets),
        "atom_size": _listed(options.atom_size),
        "extra_capacity": _listed(options.extra_capacity),
        "max_repetition": _shares(options.max_repetition, "max_repetition"),
        "padding_threshold": _shares(options.padding_threshold, "padding_threshold"),
        "min_bucket": _listed(options.min_bucket),
        "mix_rows": _yes_or_no(options.mix_rows, "mix_rows"),
    }
    tried = _candidates(
        options.compare, _listed(options.sequence_length), {name: tried for name, tried in grid.items() if tried}
    )
    if any(map(_is_dataset, paths)):
        for name in ("tokenizer", "eos_token", "text_field", "format"):
            if getattr(options, name) is not None:
                what, remedy = "only text files take this option", "leave it out: this directory holds tokens already"
                raise UsageError("option-not-taken", what, remedy=remedy, where=flag(name))
        order = None if options.order is None else Path(options.order)
        report: Report = _measure(paths, order, tried, options, size)
    else:
        _refuse_order(options.order)
        _require_one(paths)
        how_to_read = CorpusOptions(
            options.tokenizer,
            options.eos_token,
            options.text_field or "text",
            options.format,
            options.workers,
            options.scheduler,
        )
        report = corpus_report(paths[0], how_to_read, tried, options.batch_size, size, quiet=options.quiet)
    if html is not None:
        write_bytes(html, page(report).encode())
    return report


def _is_dataset(path: str) -> bool:
    """Whether a directory is what a packtool command wrote, finished or not."""
    place = Path(path)
    arrays = any(any(place.glob(pattern)) for pattern in ("*.npy", "bucket-*/*.npy"))
    return arrays or (place / manifests.MANIFEST).exists() or (place / UNFINISHED).is_dir()


def _measure(
    paths: Sequence[str],
    order: Path | None,
    tried: Sequence[Candidate],
    options: StatsArguments,
    parameters: int | None,
) -> StoreReport | MeasuredReport:
    batch_size, quiet = options.batch_size, options.quiet
    found = [manifests.read(Path(path)) for path in paths]
    for path, manifest in zip(paths, found, strict=True):
        if isinstance(manifest, OrderManifest):
            raise UsageError(
                "not-a-dataset",
                "an order, which has no rows of its own",
                remedy=f"give the packed dataset it orders, with --order {path}",
                where=path,
            )
    where = CorpusOptions(workers=options.workers, scheduler=options.scheduler).where
    if all(isinstance(manifest, StoreManifest) for manifest in found):
        _refuse_order(order)
        return store_report(paths, tried, batch_size, parameters, where=where, quiet=quiet)
    _require_one(paths)
    if tried:
        raise UsageError(
            "not-a-store",
            "a packed dataset, where strategies are compared on documents",
            remedy="give the token store it was packed from, or leave --compare out",
            where=paths[0],
        )
    return packed_report(paths[0], order, batch_size, parameters, where=where, quiet=quiet)


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


def _parameters(given: str | int) -> int:
    """The size of a model.

    >>> _parameters("1.3B"), _parameters("124M"), _parameters(7_000_000)
    (1300000000, 124000000, 7000000)
    """
    text = str(given).strip()
    factor = {"K": 10**3, "M": 10**6, "B": 10**9, "T": 10**12}.get(text[-1:].upper(), 1)
    try:
        value = int(Fraction(text if factor == 1 else text[:-1]) * factor)
    except (ValueError, ZeroDivisionError):
        value = 0
    if value < 1:
        raise UsageError(
            "bad-option",
            f"{given!r} is not the size of a model",
            remedy="write it like 7B or 124M",
            where="--parameters",
        )
    return value


def _listed(values: Any) -> list[Any]:
    """One value or several, as a list."""
    if values is None:
        return []
    return list(dict.fromkeys(values)) if isinstance(values, list | tuple | range) else [values]


def _yes_or_no(values: str | Sequence[str] | None, name: str) -> list[bool]:
    """Both ways of a flag, as they are asked for.

    >>> _yes_or_no(["yes", "no"], "mix_rows")
    [True, False]
    """
    known = {"yes": True, "no": False}
    for value in _listed(values):
        if value not in known:
            raise UsageError("bad-option", f"{value!r} is unknown", remedy="give yes, no or yes,no", where=flag(name))
    return [known[value] for value in _listed(values)]


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
