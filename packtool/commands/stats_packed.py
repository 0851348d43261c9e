"""`stats` on a packed dataset: its rows counted anew, and how well mixed they are."""

from __future__ import annotations

from pathlib import Path

import msgspec

from packtool.cluster import Cluster
from packtool.commands.count_rows import count_rows
from packtool.commands.source_mix import batch_tokens
from packtool.comparing.sample import spread_rows
from packtool.metrics import BatchMix, Mixed, Mixing, Tally
from packtool.metrics.training import training_cost
from packtool.progress import Progress
from packtool.report.packed import read_report, report_of_rows
from packtool.report.sample_rows import sample_rows
from packtool.report.schema import MeasuredReport, PackedSourceFigures, SampleRow
from packtool.report.sources import packed_sources
from packtool.storage.manifest import input_names
from packtool.storage.order import read_order, require_orders
from packtool.storage.packed import PackedBucket, PackedDataset
from packtool.writing.layout import Layout
from packtool.writing.rotated_plan import RotatedPlan, require_rotation
from packtool.writing.stored_plan import stored_plans


def packed_report(
    path: str,
    order: Path | None,
    batch_size: int | None,
    parameters: int | None,
    *,
    where: Cluster | None = None,
    quiet: bool,
) -> MeasuredReport:
    """The report of a packed dataset, counted anew from its segment table, and how well mixed it is.

    Args:
        where: the cluster that counts; None for this process.
    """
    dataset = PackedDataset(Path(path))
    manifest = dataset.manifest
    shuffle = manifest.shuffle
    sources: list[PackedBucket | Layout] = list(dataset.buckets)
    if order is not None:
        followed, orders = read_order(order, dataset.path)
        shuffle = followed.shuffle
        plans = stored_plans(dataset, shuffle.atom_size)
        if shuffle.method == "partial":
            require_rotation(orders[0], shuffle, manifest, str(order))
            sources = [Layout(RotatedPlan(plans[0], manifest, orders[0]))]
        else:
            require_orders(order, followed, orders, plans)
            sources = [Layout(plan, each) for plan, each in zip(plans, orders, strict=True)]
    tallies: list[Tally] = []
    mixing: list[Mixed] = []
    if dataset.has_segments:
        lengths = dataset.lengths()
        tokens = batch_tokens([bucket.sequence_length for bucket in dataset.buckets], shuffle, batch_size)
        with Progress(manifest.ledger.rows, "stats", unit=" rows", quiet=quiet) as progress:
            for bucket, rows in zip(dataset.buckets, sources, strict=True):
                size = bucket.sequence_length
                tally = Tally(lengths, size)
                mixed = Mixing(manifest.store_documents, size, max(1, tokens // size))
                count_rows(rows, tally, mixed, progress.advance, where)
                tallies.append(tally)
                mixing.append(mixed.result())
    report = report_of_rows(
        tallies,
        manifest.ledger,
        strategy=manifest.strategy,
        options=manifest.options,
        shuffle=shuffle,
        sources=_sources(dataset),
        source_mix=[BatchMix(m.sequence_length, m.batch_size, m.source_mix) for m in mixing if len(m.source_mix) > 1],
        batch_size=batch_size,
    )
    training = None
    if parameters is not None and report.metrics is not None:
        training = training_cost(report.metrics, report.ledger.output, parameters)
    drawn: list[SampleRow] = []
    if tallies:
        source, tally = max(zip(sources, tallies, strict=True), key=lambda pair: pair[1].rows * pair[1].sequence_length)
        drawn = sample_rows(spread_rows(source.segments, source.rows), tally.lengths)
    return MeasuredReport(
        **msgspec.structs.asdict(report), path=path, mixing=mixing, training=training, sample_rows=drawn
    )


def _sources(dataset: PackedDataset) -> list[PackedSourceFigures]:
    """The stores whose documents were packed, counted anew where boundaries are known."""
    manifest, names = dataset.manifest, input_names(dataset.path, dataset.manifest.inputs)
    if dataset.has_segments:
        return packed_sources(manifest.inputs, manifest.store_documents, dataset.lengths(), manifest.choice, names)
    reported = read_report(dataset.path, manifest).sources
    return [msgspec.structs.replace(source, name=name) for source, name in zip(reported, names, strict=False)]
