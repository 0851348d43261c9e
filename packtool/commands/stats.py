"""`stats`: what a corpus, a token store or a packed dataset holds, and what each strategy would make of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from packtool.commands.stats_corpus import CorpusOptions, corpus_lengths
from packtool.comparing import Candidate, candidates
from packtool.comparing import compare as compare_all
from packtool.errors import UsageError
from packtool.metrics import LengthCounts, Mixed, Mixing, Tally
from packtool.plan import Ints
from packtool.progress import Progress
from packtool.report.compared import comparison_of
from packtool.report.packed import lengths_of, report_of_rows
from packtool.report.page import page
from packtool.report.schema import Comparison, CorpusReport, MeasuredReport, Report, StoreReport
from packtool.storage import manifest as manifests
from packtool.storage.files import write_bytes
from packtool.storage.manifest import OrderManifest, Shuffle, StoreManifest
from packtool.storage.order import read_order, require_orders
from packtool.storage.output import UNFINISHED
from packtool.storage.packed import PackedBucket, PackedDataset
from packtool.storage.token_store import TokenStore
from packtool.writing.layout import BATCH_TOKENS, Layout
from packtool.writing.stored_plan import stored_plans

MIXING_BATCH = 64
"""Rows in a batch where mixing is measured without a batch size."""


def stats(
    path: Path | str,
    *,
    compare: str | Sequence[str] | None = None,
    sequence_length: int | Sequence[int] | None = None,
    buckets: Sequence[int] | None = None,
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
        path: a token store, a packed dataset, or text files as `packtool.tokenize` reads them.
        compare: strategies to try on the documents of a token store or of text files, or ``all``.
        sequence_length: row lengths to try them with.
        buckets: row lengths for the strategies that take several; default theirs.
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
    tried = _candidates(compare, sequence_length, buckets)
    if _is_dataset(path):
        given = {"--tokenizer": tokenizer, "--eos-token": eos_token, "--text-field": text_field, "--format": format}
        for option in (name for name, value in given.items() if value is not None):
            remedy = "leave it out: this directory holds tokens already"
            raise UsageError("option-not-taken", "only text files take this option", remedy=remedy, where=option)
        report: Report = _measure(str(path), None if order is None else Path(order), tried, batch_size, quiet)
    else:
        _refuse_order(order)
        options = CorpusOptions(tokenizer, eos_token, text_field or "text", format, workers)
        report = corpus_report(str(path), options, tried, batch_size, quiet=quiet)
    if html is not None:
        write_bytes(Path(html), page(report).encode())
    return report


def _is_dataset(path: Path | str) -> bool:
    """Whether a directory is what a packtool command wrote, finished or not."""
    place = Path(path)
    return (place / manifests.MANIFEST).exists() or (place / UNFINISHED).is_dir() or any(place.glob("tokens-*.npy"))


def _measure(
    path: str, order: Path | None, tried: Sequence[Candidate], batch_size: int | None, quiet: bool
) -> StoreReport | MeasuredReport:
    manifest = manifests.read(Path(path))
    if isinstance(manifest, OrderManifest):
        raise UsageError(
            "not-a-dataset",
            "an order, which has no rows of its own",
            remedy=f"give the packed dataset it orders, with --order {path}",
            where=path,
        )
    if isinstance(manifest, StoreManifest):
        _refuse_order(order)
        return store_report(path, tried, batch_size, quiet=quiet)
    if tried:
        raise UsageError(
            "not-a-store",
            "a packed dataset, where strategies are compared on documents",
            remedy="give the token store it was packed from, or leave --compare out",
            where=path,
        )
    return packed_report(path, order, batch_size, quiet=quiet)


def _refuse_order(order: Path | str | None) -> None:
    if order is not None:
        remedy = "give it with the packed dataset that it orders"
        raise UsageError("option-not-taken", "only packed datasets take an order", remedy=remedy, where="--order")


def _candidates(
    compare: str | Sequence[str] | None, sequence_length: int | Sequence[int] | None, buckets: Sequence[int] | None
) -> list[Candidate]:
    if compare is None:
        for option, value in (("--sequence-length", sequence_length), ("--buckets", buckets)):
            if value is not None:
                raise UsageError(
                    "option-not-taken", "only strategies take this option", remedy="add --compare all", where=option
                )
        return []
    names = [compare] if isinstance(compare, str) else list(compare)
    sizes = [sequence_length] if isinstance(sequence_length, int) else list(sequence_length or [])
    return candidates(names, sizes, buckets)


def store_report(path: str, tried: Sequence[Candidate], batch_size: int | None, *, quiet: bool) -> StoreReport:
    """The report of a token store, with what each candidate would make of it."""
    store = TokenStore(Path(path))
    lengths = store.lengths()
    counts = LengthCounts.of(lengths)
    return StoreReport(
        path=path,
        tokenizer=store.manifest.tokenizer,
        dtype=store.manifest.dtype,
        counts=dict(store.manifest.counts),
        batch_size=batch_size,
        lengths=lengths_of(counts, "tokens"),
        comparison=_comparison(lengths, counts, tried, batch_size, quiet=quiet),
    )


def corpus_report(
    location: str, options: CorpusOptions, tried: Sequence[Candidate], batch_size: int | None, *, quiet: bool
) -> CorpusReport:
    """The report of text files, with what each candidate would make of them."""
    found = corpus_lengths(location, options, tokens=bool(tried), quiet=quiet)
    words = lengths_of(LengthCounts.of(found.words), "words")
    comparison = None
    lengths = words
    if found.tokens is not None:
        counts = LengthCounts.of(found.tokens)
        lengths = lengths_of(counts, "tokens")
        comparison = _comparison(found.tokens, counts, tried, batch_size, quiet=quiet)
    return CorpusReport(
        path=location,
        tokenizer=found.tokenizer,
        counts=found.counts,
        batch_size=batch_size,
        lengths=lengths,
        words=words,
        characters=lengths_of(LengthCounts.of(found.characters), "characters"),
        comparison=comparison,
    )


def _comparison(
    lengths: Ints, counts: LengthCounts, tried: Sequence[Candidate], batch_size: int | None, *, quiet: bool
) -> Comparison | None:
    if not tried:
        return None
    with Progress(len(tried), "compare", unit=" plans", quiet=quiet) as progress:
        return comparison_of(list(compare_all(lengths, tried, progress.advance)), counts, batch_size)


def packed_report(path: str, order: Path | None, batch_size: int | None, *, quiet: bool) -> MeasuredReport:
    """The report of a packed dataset, counted anew from its segment table, and how well mixed it is."""
    dataset = PackedDataset(Path(path))
    manifest = dataset.manifest
    shuffle = manifest.shuffle
    sources: list[PackedBucket | Layout] = list(dataset.buckets)
    if order is not None:
        followed, orders = read_order(order, dataset.path)
        shuffle = followed.shuffle
        plans = stored_plans(dataset, shuffle.atom_size)
        require_orders(order, followed, orders, plans)
        sources = [Layout(plan, each) for plan, each in zip(plans, orders, strict=True)]
    tallies: list[Tally] = []
    mixing: list[Mixed] = []
    if dataset.has_segments:
        lengths = dataset.lengths()
        batch_tokens = _batch_tokens(dataset, shuffle, batch_size)
        with Progress(manifest.ledger.rows, "stats", unit=" rows", quiet=quiet) as progress:
            for bucket, rows in zip(dataset.buckets, sources, strict=True):
                size = bucket.sequence_length
                tally = Tally(lengths, size)
                mixed = Mixing(manifest.store_documents, size, max(1, batch_tokens // size))
                _count(rows, size, tally, mixed, progress)
                tallies.append(tally)
                mixing.append(mixed.result())
    report = report_of_rows(
        tallies,
        manifest.ledger,
        strategy=manifest.strategy,
        options=manifest.options,
        shuffle=shuffle,
        batch_size=batch_size,
    )
    return MeasuredReport(**msgspec.structs.asdict(report), path=path, mixing=mixing)


def _batch_tokens(dataset: PackedDataset, shuffle: Shuffle | None, batch_size: int | None) -> int:
    """Tokens of the batches that mixing is measured in: as asked for, else as the shuffle made them."""
    longest = max(bucket.sequence_length for bucket in dataset.buckets)
    if batch_size is None and shuffle is not None:
        if shuffle.batch_tokens is not None:
            return shuffle.batch_tokens
        batch_size = shuffle.batch_size
    return (batch_size or MIXING_BATCH) * longest


def _count(
    source: PackedBucket | Layout, sequence_length: int, tally: Tally, mixing: Mixing, progress: Progress
) -> None:
    batch = mixing.batch_size
    step = max(1, BATCH_TOKENS // (sequence_length * batch)) * batch
    for first in range(0, source.rows, step):
        rows = source.segments(first, min(first + step, source.rows))
        tally.add(rows)
        mixing.add(rows)
        progress.advance(rows.groups)
