"""Streams: documents one after the other, cut at every row; counted as the lengths pass, a batch at a time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from packtool.comparing.counting.counted import Counted
from packtool.metrics import Tally
from packtool.packing import PackOptions
from packtool.plan import I64, PADDING, Ints, Segments, offsets_of

_BATCH = 1 << 16  # documents that a stream takes at a time, about


def concat(lengths: Ints, options: PackOptions) -> list[Counted] | None:
    """One stream of all documents; atoms below a row are joined by the shuffle, which a count can't foresee."""
    if options.atom < options.row_length:
        return None
    stream = _Stream(lengths, options.row_length, int(lengths.sum(dtype=np.int64)), options.remainder)
    for first in range(0, len(lengths), _BATCH):
        stream.add(lengths[first : first + _BATCH])
    return [stream.finish()]


def length_buckets(lengths: Ints, options: PackOptions) -> list[Counted] | None:
    """A stream for each bucket."""
    sizes = tuple(sorted(options.bucket_sizes))
    totals, batch_size = np.zeros(len(sizes), np.int64), _BATCH * len(sizes)
    for first in range(0, len(lengths), batch_size):
        batch = lengths[first : first + batch_size]
        totals += np.bincount(_bucket_of(batch, sizes), batch, minlength=len(sizes)).astype(np.int64)
    streams = [_Stream(lengths, size, int(total), options.remainder) for size, total in zip(sizes, totals, strict=True)]
    for first in range(0, len(lengths), batch_size):
        batch = lengths[first : first + batch_size]
        bucket = _bucket_of(batch, sizes)
        for number, stream in enumerate(streams):
            stream.add(batch[bucket == number])
    return [stream.finish() for stream in streams]


def _bucket_of(lengths: Ints, sizes: Sequence[int]) -> npt.NDArray[np.intp]:
    """The first of ascending sizes that holds a document, or the last; comparing is quicker than searching.

    >>> _bucket_of(np.array([1, 8, 9, 99]), (8, 16, 32))
    array([0, 0, 1, 2])
    """
    bucket = np.zeros(len(lengths), np.intp)
    for size in sizes[:-1]:
        bucket += lengths > size
    return bucket


class _Stream:
    """Rows of a stream, as its documents come.

    Args:
        lengths: of all documents of the dataset.
        tokens: in the stream, all in all.
        remainder: ``drop`` leaves out the tokens that do not fill a row.
    """

    def __init__(self, lengths: Ints, sequence_length: int, tokens: int, remainder: str) -> None:
        self.tally = Tally(lengths, sequence_length)
        self.sequence_length = sequence_length
        self.tokens = tokens
        self.kept = tokens if remainder == "pad" else tokens - tokens % sequence_length
        self.at = 0
        self.omitted = 0
        none = np.zeros(0, np.int64)
        self.waiting: tuple[I64, I64, I64] = (none, none, none)
        """Start, length and whole document of the segments of the row that is not full yet."""

    def add(self, lengths: Ints) -> None:
        """Count the next documents."""
        whole = lengths.astype(np.int64)
        ends = offsets_of(whole) + self.at
        self.at = int(ends[-1])
        begin, end = ends[:-1], np.minimum(ends[1:], self.kept)
        self.omitted += int(np.count_nonzero(ends[1:] > self.kept))
        if self.at > self.kept:
            held = begin < self.kept
            whole, begin, end = whole[held], begin[held], end[held]
        if not len(whole):
            return
        row, last = begin // self.sequence_length, (end - 1) // self.sequence_length
        counts = last - row + 1
        if (counts == 1).all():
            start, length = np.zeros_like(whole), end - begin
        else:
            offsets = offsets_of(counts)
            document = np.repeat(np.arange(len(whole)), counts)
            row = (row - offsets[:-1])[document] + np.arange(len(document))
            begin = begin[document]
            first = np.maximum(row * self.sequence_length, begin)
            start, length = first - begin, np.minimum((row + 1) * self.sequence_length, end[document]) - first
            whole = whole[document]
        held_start, held_length, held_whole = self.waiting
        if len(held_start):
            row = np.concatenate([np.full(len(held_start), int(begin[0]) // self.sequence_length), row])
            start, length = np.concatenate([held_start, start]), np.concatenate([held_length, length])
            whole = np.concatenate([held_whole, whole])
        full = len(row)
        if int(end[-1]) % self.sequence_length:
            full = int(np.searchsorted(row, row[-1]))
        self.waiting = (start[full:], length[full:], whole[full:])
        if full:
            self._count(row[:full], start[:full], length[:full], whole[:full])

    def _count(self, row: I64, start: I64, length: I64, whole: I64) -> None:
        offsets = np.concatenate([[0], np.flatnonzero(np.diff(row)) + 1, [len(row)]])
        self.tally.add(Segments(np.arange(len(row)), start, length, np.zeros_like(start), offsets), lengths=whole)

    def finish(self) -> Counted:
        """The counts, the last row padded."""
        start, length, whole = self.waiting
        if len(start):
            missing = self.sequence_length - int(length.sum())
            document = np.append(np.arange(len(start)), PADDING)
            columns = (np.append(start, 0), np.append(length, missing), np.zeros(len(document), np.int64))
            self.tally.add(Segments(document, *columns, np.array([0, len(document)])), lengths=whole)
        return Counted(self.tally, self.tokens - self.kept - self.omitted, self.omitted)
