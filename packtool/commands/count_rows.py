"""Count the rows of a packed dataset: their contents, and how evenly batches mix the packed stores."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from operator import attrgetter

from packtool.choosing.chosen import StoredOrder
from packtool.engines import Engine, RunOptions, Worker
from packtool.formats.bucket_shards import BucketShards, StoredColumn
from packtool.formats.packed import PackedBucket
from packtool.formats.schema import Bucket, Shuffle
from packtool.formats.segment_table import SegmentTables
from packtool.formats.token_store import Corpus
from packtool.outputs.output import Output
from packtool.planning.metrics.mixing import (
    MIXING_BATCH,
    BatchShares,
    PairDistanceCounter,
    PairDistancePart,
    StoreShareCounter,
)
from packtool.planning.metrics.neighbours import NeighbourCounts, Neighbours
from packtool.planning.metrics.tally import Tally, TallyCounts
from packtool.planning.plan import I64, Ints, Segments
from packtool.rows.layout import BATCH_TOKENS
from packtool.support.sizes import plural
from packtool.support.temporary import temporary_directory
from packtool.warnings import warn

STEPS = 16
"""Steps that a task counts."""


def count_rows(
    bucket: PackedBucket, tally: Tally, mixing: PairDistanceCounter, engine: Engine, advance: Callable[[int], object]
) -> None:
    """Add all rows to a tally and to a measure of how well they are mixed; both are new.

    Args:
        engine: counts; where it shares memory, this thread does.
        advance: is called with the number of rows that were counted.
    """
    step = _rows_at_once(mixing.batch_size, tally.sequence_length)
    rows = range(bucket.rows)
    if engine.shares_memory:
        for segments in _counted(bucket, rows, step, tally):
            mixing.add(segments)
            advance(segments.groups)
        return
    tasks = [rows[first : first + STEPS * step] for first in rows[:: STEPS * step]]
    with temporary_directory() as folder:
        count = partial(_count, bucket, tally, mixing, step)
        by_task = dict(engine.run(count, tasks, RunOptions(work=folder, on_advance=advance)))
    for number in range(len(tasks)):  # in order: sums of shares depend on it
        counts, parts = by_task.pop(number)
        tally.include(counts)
        for part in parts:
            mixing.include(part)


def source_mix(
    output: Output, buckets: Sequence[Bucket], store_documents: Sequence[int], shuffle: Shuffle | None
) -> list[BatchShares]:
    """Measure each store's share of batches, for each row length; nothing for a single store, or without segments.

    Args:
        output: holds the files of the buckets.
        store_documents: number of documents packed from each store.
    """
    if len(store_documents) < 2:
        return []
    mixes = []
    tokens = batch_tokens([bucket.sequence_length for bucket in buckets], shuffle, None)
    for bucket in buckets:
        if None in map(attrgetter("segments"), bucket.shards):
            return []
        mixing = StoreShareCounter(store_documents, bucket.sequence_length, max(1, tokens // bucket.sequence_length))
        for segments in _written(output, bucket, mixing.batch_size):
            mixing.add(segments)
        mixes.append(mixing.result())
    return mixes


def neighbours_in_rows(output: Output, buckets: Sequence[Bucket], corpus: Corpus, order: StoredOrder) -> Neighbours:
    """Measure the share of pairs of tokens in a row whose documents have the same value of the field that orders them.

    Args:
        output: holds the files of the buckets.
        order: of the documents of the stores, with their groups by the value of that field.
    """
    counts = NeighbourCounts(order.field)

    def group_of(documents: I64) -> Ints:
        return order.groups[corpus.stored(documents)]

    for bucket in buckets:
        for segments in _written(output, bucket, 1):
            counts.add(segments, group_of)
    return counts.result()


def _written(output: Output, bucket: Bucket, batch_size: int) -> Iterator[Segments]:
    """Yield the segments of rows that were written just now, whole batches at a time; one table at a time is open."""
    tables = SegmentTables(BucketShards(output.place.below(bucket.directory), bucket, keep=1), None)
    yield from tables.in_steps(range(bucket.rows), _rows_at_once(batch_size, bucket.sequence_length))
    tables.release()


def rows_without_target(tallies: Sequence[Tally]) -> int:
    """Count the rows in which no token is a target; their loss has been counted."""
    without = 0
    for tally in tallies:
        without += tally.without_target
    return without


def warn_of_rows_without_target(without: int, rows: int, where: str) -> None:
    """Warn of rows in which nothing trains, whatever made them."""
    what = f"{without:,} of {plural(rows, 'row')} have no target, so the mean loss of such a row is no number"
    remedy = "sum losses over all targets of a batch, or leave out the documents in which nothing trains"
    warn("rows-without-target", what, remedy=remedy, where=where)


def batch_tokens(sequence_lengths: Sequence[int], shuffle: Shuffle | None, batch_size: int | None) -> int:
    """Return the tokens in a batch, for which mixing is measured: `batch_size` rows of the longest, if that is given,
    else as the shuffle made batches."""
    if batch_size is None and shuffle is not None:
        if shuffle.batch_tokens is not None:
            return shuffle.batch_tokens
        batch_size = shuffle.batch_size
    return (batch_size or MIXING_BATCH) * max(sequence_lengths)


def _count(
    bucket: PackedBucket, new: Tally, mixing: PairDistanceCounter, step: int, rows: range, worker: Worker
) -> tuple[TallyCounts, list[PairDistancePart]]:
    """Count some rows in whatever process."""
    tally, parts, first = Tally(new.lengths, new.sequence_length, new.multiple), [], rows.start
    for segments in _counted(bucket, rows, step, tally):
        parts.append(mixing.measure(segments, first))
        first += segments.groups
        worker.advance(segments.groups)
    return tally.counts(), parts


def _counted(bucket: PackedBucket, rows: range, step: int, tally: Tally) -> Iterator[Segments]:
    """Yield the segments of some rows, and add them to a tally, with the loss of the rows if it is stored."""
    first = rows.start
    for segments in bucket.segments.in_steps(rows, step):
        tally.add(segments)
        if isinstance(bucket.loss, StoredColumn):
            tally.add_loss(segments, bucket.loss.between(first, first + segments.groups))
        first += segments.groups
        yield segments


def _rows_at_once(batch_size: int, sequence_length: int) -> int:
    """Return how many rows to count at once: whole batches."""
    return max(1, BATCH_TOKENS // (sequence_length * batch_size)) * batch_size
