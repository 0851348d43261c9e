"""The segment tables of the shards of a bucket: which segment of which document lies where in its rows.

Segments are stored as records, and read as columns. Before anything is read by them they are checked. All checks are
vectorised, and read what is about to be used anyway. They raise, or leave no number that points outside what it points
into.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import Any

import numpy as np
import numpy.typing as npt

from packtool.errors import DataError, UsageError
from packtool.formats.bucket_shards import BucketShards
from packtool.formats.names import OFFSET, SEGMENT
from packtool.formats.on_demand import open_all, open_now
from packtool.places.place import DATASET_AGAIN, Place
from packtool.planning.plan import I64, INSERTED_EOS, Ints, Segments, offsets_of, ranges
from packtool.support.mapped import release

_CHECKED_ROWS = 1 << 16


class SegmentTables:
    """The segments of the rows of a bucket, checked when they are read.

    What reads them raises a UsageError where the dataset was written with ``--no-segments``, and a DataError where a
    segment lies outside its document.

    Args:
        shards: of the bucket.
        lengths: of every document, EOS included; None where segments are not checked against them.
    """

    def __init__(self, shards: BucketShards, lengths: Ints | None) -> None:
        self._shards = shards
        self._lengths = lengths
        self._tables: Sequence[tuple[npt.NDArray[Any], npt.NDArray[Any]]] | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return SegmentTables, (self._shards, self._lengths)

    @property
    def exist(self) -> bool:
        """Whether the dataset was written with its segments."""
        return None not in map(attrgetter("segments"), self._shards.entry.shards)

    @property
    def counts(self) -> list[int]:
        """Segments of each shard; 0 where they are not known."""
        counts = []
        for shard in self._shards.entry.shards:
            counts.append(shard.segments.shape[0] if shard.segments is not None else 0)
        return counts

    def view(self, row: int) -> npt.NDArray[Any]:
        """Return the segments of one row as stored: a view of the segment table."""
        ((number, first, last),) = self._shards.spans(row, row + 1)
        table, offsets = self.tables()[number]
        return self._checked(number, first, table, offsets[first : last + 1])

    def in_steps(self, rows: range, step: int) -> Iterator[Segments]:
        """Yield the segments of some rows, of at most `step` rows at a time."""
        for first in rows[::step]:
            yield self.between(first, min(first + step, rows.stop))

    def between(self, first: int, last: int) -> Segments:
        """Return the segments of rows ``first:last``."""
        tables = self.tables()
        parts, counts = [np.empty(0, SEGMENT)], [np.empty(0, np.int64)]
        for number, a, b in self._shards.spans(first, last):
            table, offsets = tables[number]
            parts.append(self._checked(number, a, table, offsets[a : b + 1]))
            counts.append(np.diff(offsets[a : b + 1]))
        return from_table(np.concatenate(parts), offsets_of(np.concatenate(counts)))

    def take(self, rows: I64) -> Segments:
        """Return the segments of these rows, in the order given."""
        where = str(self._shards.place)
        order, groups = self._shards.by_shard(rows)
        tables = []
        # Of each row, in the order of shards: where its segments lie in the table of its shard, and how long that is.
        first, last, sizes = np.empty((3, len(rows)), np.int64)
        for shard, here, at in groups:
            table, offsets = self.tables()[shard]
            tables.append(table)
            first[at] = offsets[here]
            last[at] = offsets[here + 1]
            sizes[at] = len(table)
        counts = last - first
        wrong = np.flatnonzero((first < 0) | (counts < 1) | (last > sizes))
        if len(wrong):  # `require_rows` raises the error, which is of the row as its number was given
            one = int(wrong[0])
            require_rows(np.array([first[one], last[one]]), int(sizes[one]), int(rows[order[one]]), where)
        by_shard = offsets_of(counts)
        source = ranges(first, counts, by_shard)
        if len(tables) == 1:  # rows of one shard keep their order when they are sorted by shard
            requested = by_shard
            out = np.take(tables[0], source)
        else:
            requested_counts = np.empty_like(counts)
            requested_counts[order] = counts
            requested = offsets_of(requested_counts)
            target = ranges(requested[:-1][order], counts, by_shard)
            out = np.empty(len(source), SEGMENT)
            for table, (_, _, at) in zip(tables, groups, strict=True):
                part = slice(by_shard[at.start], by_shard[at.stop])
                out[target[part]] = np.take(table, source[part])
        require_segments(out, requested, self._lengths, self._shards.entry.sequence_length, rows, where)
        return from_table(out, requested)

    def tables(self) -> Sequence[tuple[npt.NDArray[Any], npt.NDArray[Any]]]:
        """Return segment table and row offsets of each shard, memory-mapped."""
        if self._tables is None:
            shards = self._shards
            if not self.exist:
                raise no_segments(shards.place)
            sizes = [2] * len(shards.entry.shards)
            self._tables = open_all(sizes, self._open, shards.place, shards.keep, shards.unchanged)
        return self._tables

    def checked_tables(self) -> Sequence[tuple[npt.NDArray[Any], npt.NDArray[Any]]]:
        """Return segment table and row offsets of each shard, all of them checked."""
        for number, (table, offsets) in enumerate(self.tables()):
            if len(offsets) and (offsets[0] != 0 or offsets[-1] != len(table)):
                row = int(self._shards.first_rows[number])
                what = f"row {row}: the segment table begins or ends outside its rows"
                where = str(self._shards.place)
                raise DataError("bad-segments", what, remedy="make the dataset again", where=where)
            for first in range(0, len(offsets) - 1, _CHECKED_ROWS):
                self._checked(number, first, table, offsets[first : first + _CHECKED_ROWS + 1])
        return self.tables()

    def release(self) -> None:
        """Give back the memory that maps the segments read so far."""
        for tables in open_now(self._tables or ()):
            release(tables)

    def _open(self, number: int) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        place, shard = self._shards.place, self._shards.entry.shards[number]
        assert shard.segments is not None
        assert shard.segment_offsets is not None
        return place.array(shard.segments, SEGMENT), place.array(shard.segment_offsets, OFFSET)

    def _checked(
        self, number: int, first: int, table: npt.NDArray[Any], offsets: npt.NDArray[np.int64]
    ) -> npt.NDArray[Any]:
        """Read and check the segments of rows of a shard, from `first` on, to which these offsets belong."""
        row, where = int(self._shards.first_rows[number]) + first, str(self._shards.place)
        require_rows(offsets, len(table), row, where)
        part = table[offsets[0] : offsets[-1]]
        length = self._shards.entry.sequence_length
        require_segments(part, offsets - offsets[0], self._lengths, length, row, where)
        return part


def to_table(rows: Segments) -> npt.NDArray[Any]:
    """Convert segments to the stored table, without offsets."""
    table = np.empty(len(rows), SEGMENT)
    for name in SEGMENT.names or ():
        table[name] = getattr(rows, name)
    return table


def from_table(table: npt.NDArray[Any], offsets: Ints) -> Segments:
    """Convert stored segments to columns; `offsets` (rows + 1) are relative to the first row of the table."""
    return Segments(
        table["document"].astype(np.int64),
        table["start"].astype(np.int64),
        table["length"].astype(np.int64),
        table["repeated"].astype(np.int64),
        np.asarray(offsets, np.int64),
    )


def no_segments(place: Place) -> UsageError:
    """Return the error for a dataset that was written without the segment table that is needed."""
    what = "the dataset was written with --no-segments, so its document boundaries are not known"
    remedy = "pack again without --no-segments"
    return UsageError("no-segments", what, remedy=remedy, where=str(place))


def require_rows(offsets: npt.NDArray[np.int64], segments: int, first_row: int, where: str) -> None:
    """Raise a DataError that names the first row that has no segments, or some outside a table of `segments`."""
    if not len(offsets):
        return
    if not (offsets[0] >= 0 and offsets[-1] <= segments and (np.diff(offsets) > 0).all()):
        wrong = np.flatnonzero((offsets[:-1] < 0) | (np.diff(offsets) < 1) | (offsets[1:] > segments))
        raise _bad_row(first_row + int(wrong[0]), "its segments lie outside the segment table", where)


def require_segments(
    table: npt.NDArray[Any],
    offsets: Ints,
    lengths: Ints | None,
    sequence_length: int,
    first_row: int | Ints,
    where: str,
) -> None:
    """Raise a DataError that names the first row with a segment outside its document, or that is not full.

    Args:
        table: of `SEGMENT`, the segments of these rows.
        offsets: rows + 1, relative to the table's first; already checked.
        lengths: of every document, EOS included; None where segments are not looked up in their documents.
        first_row: number of the first row, or of each row, for messages.
    """
    if not len(table):
        return
    document, length = table["document"], table["length"].astype(np.int64)
    end = table["start"] + length
    real = document >= 0
    inside = (document >= INSERTED_EOS) & (table["repeated"] <= length) & (length > 0)
    if lengths is not None:
        inside &= document < len(lengths)
    if lengths is not None and inside.all() and real.all():
        inside = end <= lengths[document]  # as in most shards: no padding, and nothing inserted
    else:
        if lengths is not None:
            in_documents = inside & real
            inside[in_documents] = end[in_documents] <= lengths[document[in_documents]]
        inside &= (document != INSERTED_EOS) | (length == 1)
    if not inside.all():
        row = int(np.searchsorted(offsets, np.flatnonzero(~inside)[0], side="right")) - 1
        raise _bad_row(_number(first_row, row), "a segment lies outside its document", where)
    full = np.add.reduceat(length, np.asarray(offsets[:-1])) == sequence_length
    if not full.all():
        row = int(np.flatnonzero(~full)[0])
        raise _bad_row(_number(first_row, row), "its segments do not add up to the sequence length", where)


def _number(first_row: int | Ints, row: int) -> int:
    return first_row + row if isinstance(first_row, int) else int(first_row[row])


def _bad_row(row: int, what: str, where: str) -> DataError:
    return DataError("bad-segments", f"row {row}: {what}", remedy=DATASET_AGAIN, where=where)
