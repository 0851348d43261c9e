"""`stats` of a packed dataset: recount its segment table, in stored order or in another."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from packtool.commands.count_rows import batch_tokens, count_rows
from packtool.comparing import spread_rows
from packtool.engines import Engine
from packtool.metrics.mixing import BatchMix, Mixed, Mixing
from packtool.metrics.summary import training_cost
from packtool.metrics.tally import Tally
from packtool.options.kinds import parse_amount
from packtool.options.stats import StatsArguments
from packtool.places.place import Place
from packtool.progress import Progress
from packtool.report.packed import packed_sources, read_report, report_of_rows, sample_rows
from packtool.report.schema import MeasuredReport, PackedSourceFigures, SampleRow
from packtool.shuffling.balance import Waiting, token_cost, waiting_of
from packtool.storage.manifest import input_names
from packtool.storage.order import read_order, require_orders
from packtool.storage.packed import PackedBucket, PackedDataset
from packtool.writing.layout import Layout
from packtool.writing.stored_plan import RotatedPlan, require_rotation, stored_plans


def packed_report(place: Place, order: Place | None, options: StatsArguments, engine: Engine) -> MeasuredReport:
    """Report on a packed dataset, counted from its segment table, and on how well mixed its rows are.

    Args:
        order: of its rows; None for the order that they lie in.
    """
    dataset = PackedDataset(place)
    manifest = dataset.manifest
    shuffle = manifest.shuffle
    sources: list[PackedBucket | Layout] = list(dataset.buckets)
    if order is not None:
        followed, orders = read_order(order, dataset.place)
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
        tokens = batch_tokens([bucket.sequence_length for bucket in dataset.buckets], shuffle, options.batch_size)
        with Progress(manifest.ledger.rows, "stats", unit=" rows", quiet=options.quiet) as progress:
            for bucket, rows in zip(dataset.buckets, sources, strict=True):
                size = bucket.sequence_length
                tally = Tally(lengths, size)
                mixed = Mixing(manifest.store_documents, size, max(1, tokens // size))
                count_rows(rows, tally, mixed, engine, progress.advance)
                tallies.append(tally)
                mixing.append(mixed.result())
    report = report_of_rows(
        tallies,
        manifest.ledger,
        strategy=manifest.strategy,
        options=manifest.options,
        shuffle=shuffle,
        sources=_packed_sources(dataset),
        source_mix=[BatchMix(m.sequence_length, m.batch_size, m.source_mix) for m in mixing if len(m.source_mix) > 1],
        batch_size=options.batch_size,
    )
    training = None
    if options.parameters is not None and report.metrics is not None:
        training = training_cost(report.metrics, report.ledger.output, parse_amount(options.parameters))
    drawn: list[SampleRow] = []
    if tallies:
        source, tally = max(zip(sources, tallies, strict=True), key=lambda pair: pair[1].rows * pair[1].sequence_length)
        drawn = sample_rows(spread_rows(source.segments, source.rows), tally.lengths)
    return MeasuredReport(
        **msgspec.structs.asdict(report),
        path=str(place),
        mixing=mixing,
        training=training,
        waiting=_waiting(dataset, sources, options),
        sample_rows=drawn,
    )


def _waiting(
    dataset: PackedDataset, sources: Sequence[PackedBucket | Layout], options: StatsArguments
) -> list[Waiting]:
    """Measure how long ranks wait, for each row length; a global batch has the tokens of its rows of the longest."""
    ranks, batch = options.ranks, options.global_batch
    if ranks is None or batch is None:
        return []
    lengths = [bucket.sequence_length for bucket in dataset.buckets]
    cost = token_cost(options.hidden_size, options.token_cost)
    rows = [batch * max(lengths) // length // ranks * ranks for length in lengths]
    return [
        waiting_of(source.segments, source.rows, length, ranks, size, cost)
        for source, length, size in zip(sources, lengths, rows, strict=True)
    ]


def _packed_sources(dataset: PackedDataset) -> list[PackedSourceFigures]:
    """Count the packed documents of each store, from the rows if their boundaries are known."""
    manifest, names = dataset.manifest, input_names(dataset.place, dataset.manifest.inputs)
    if dataset.has_segments:
        lengths, trained = dataset.lengths(), manifest.ledger.trained_stored
        return packed_sources(manifest.inputs, manifest.store_documents, lengths, manifest.choice, names, trained)
    reported = read_report(dataset.place, manifest).sources
    return [msgspec.structs.replace(source, name=name) for source, name in zip(reported, names, strict=False)]
