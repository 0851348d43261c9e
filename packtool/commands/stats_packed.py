"""`stats` of a packed dataset: counted from its segment table, with how well mixed its rows are."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from packtool.commands.count_rows import batch_tokens, count_rows, rows_without_target, warn_of_rows_without_target
from packtool.engines import Engine
from packtool.formats.made_by import command_again, excluded_by, tokenizer_named
from packtool.formats.manifest import input_names
from packtool.formats.packed import PackedDataset
from packtool.options.stats import StatsArguments
from packtool.places.place import Place
from packtool.planning.metrics.mixing import BatchShares, PairDistanceCounter, PairDistances
from packtool.planning.metrics.tally import Tally
from packtool.report.compare import spread_rows
from packtool.report.dataset_report import counted_report, packed_sources, read_report, sample_rows
from packtool.report.types import MeasuredReport, PackedSourceFigures, SampleRow
from packtool.support.progress import Progress


def packed_report(place: Place, options: StatsArguments, engine: Engine) -> MeasuredReport:
    """Report on a packed dataset, counted from its segment table, and on how well mixed its rows are."""
    dataset = PackedDataset(place)
    manifest = dataset.manifest
    tallies: list[Tally] = []
    mixing: list[PairDistances] = []
    if dataset.has_segments:
        tallies, mixing = _counted(dataset, options, engine)
    written = read_report(dataset.place, manifest)
    without_target = written.rows_without_target
    if tallies and not (manifest.has_loss and manifest.index_only):
        without_target = rows_without_target(tallies)
    if without_target:
        warn_of_rows_without_target(without_target, manifest.ledger.rows, str(place))
    mixed = [BatchShares(m.sequence_length, m.batch_size, m.source_mix) for m in mixing if len(m.source_mix) > 1]
    report = msgspec.structs.replace(
        written,
        sources=_sources(dataset, written.sources),
        source_mix=mixed,
        batch_size=options.batch_size,
        rows_without_target=without_target,
    )
    return MeasuredReport(
        **msgspec.structs.asdict(counted_report(report, tallies)),
        path=str(place),
        command=command_again(dataset.place),
        excluded=excluded_by(dataset.place),
        tokenizer=manifest.tokenizer,
        tokenizer_name=tokenizer_named([dataset.place]),
        mixing=mixing,
        sample_rows=_drawn(dataset, tallies),
    )


def _counted(
    dataset: PackedDataset, options: StatsArguments, engine: Engine
) -> tuple[list[Tally], list[PairDistances]]:
    """Count the rows of each length, and how well mixed they are."""
    manifest, lengths = dataset.manifest, dataset.lengths()
    tallies, mixing = [], []
    sizes = [bucket.sequence_length for bucket in dataset.buckets]
    tokens = batch_tokens(sizes, manifest.shuffle, options.batch_size)
    with Progress(manifest.ledger.rows, "stats", unit=" rows", quiet=options.quiet) as progress:
        for bucket in dataset.buckets:
            size = bucket.sequence_length
            tally = Tally(lengths, size, manifest.multiple)
            mixed = PairDistanceCounter(manifest.store_documents, size, max(1, tokens // size))
            count_rows(bucket, tally, mixed, engine, progress.advance)
            tallies.append(tally)
            mixing.append(mixed.result())
    return tallies, mixing


def _drawn(dataset: PackedDataset, tallies: Sequence[Tally]) -> list[SampleRow]:
    """Choose rows to draw, of the length with the most tokens; nothing where segments are not known."""
    if not tallies:
        return []
    counted = zip(dataset.buckets, tallies, strict=True)
    bucket, tally = max(counted, key=lambda pair: pair[1].output)
    return sample_rows(spread_rows(bucket.segments.between, bucket.rows), tally.lengths)


def _sources(dataset: PackedDataset, written: Sequence[PackedSourceFigures]) -> list[PackedSourceFigures]:
    """Count the packed documents of each store, or take what is written where their boundaries are not known."""
    manifest, names = dataset.manifest, input_names(dataset.place, dataset.manifest.inputs)
    if dataset.has_segments:
        lengths, trained = dataset.lengths(), manifest.ledger.trained_stored
        return packed_sources(manifest.inputs, manifest.store_documents, lengths, manifest.choice, names, trained)
    return [msgspec.structs.replace(source, name=name) for source, name in zip(written, names, strict=False)]
