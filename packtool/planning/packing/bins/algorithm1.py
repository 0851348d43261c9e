"""Algorithm 1 of Bucket Pre-training on the histogram of lengths: the same buckets as document by document.

The documents left are kept in one order: first documents longer than the largest bucket, longest first; then the
others, counted by length; last, at most one document whose front was cut off. It was the shortest when it was first
cut, and has become shorter since, so it stays the last, and is the next to be cut.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from packtool.planning.packing.bins.runs import RunEntry, Runs
from packtool.planning.plan import I64


class Segment(NamedTuple):
    """Consecutive segments of one document, each of which fills a row; or a single segment.

    `document` is a place in the order of all documents, longest first.
    """

    document: int
    start: int
    length: int
    rows: int = 1


class Buckets(NamedTuple):
    """The buckets that the algorithm fills, in its order."""

    capacity: I64  # tokens in the bins of each run
    runs: Runs  # bins; items one token longer than the largest bucket stand for rows of `segments`, by number
    segments: list[Segment]  # pieces of documents that are cut, or longer than every bucket


def compose(counts: I64, over: list[int], sizes: Sequence[int], threshold: Fraction) -> Buckets:
    """Fill buckets as Algorithm 1 does.

    Args:
        counts: documents of each length, from 0 to the largest size.
        over: lengths of the documents that no bucket holds, longest first.
        sizes: of buckets, ascending.
        threshold: share of a bucket that may stay empty, P.

    >>> filled = compose(np.array([0, 0, 0, 0, 0, 2, 0, 0, 0]), [11], (4, 8), Fraction(0))
    >>> filled.capacity, filled.segments[0]
    (array([8, 4, 8, 4]), Segment(document=0, start=0, length=8, rows=1))
    """
    return _Composer(counts, over, sizes, threshold).compose()


class _Composer:
    """The state of the algorithm: the documents left, and the buckets so far."""

    def __init__(self, counts: I64, over: list[int], sizes: Sequence[int], threshold: Fraction) -> None:
        self.largest = sizes[-1]
        # The smallest bucket that holds each length, looked up once: lengths are few, buckets are many.
        self.holding: list[int] = np.array(sizes)[np.searchsorted(sizes, np.arange(self.largest + 1))].tolist()
        self.allowed = {size: int(threshold * size) for size in sizes}
        self.over = over
        self.next_over, self.end_over = 0, len(over)
        # Documents of a length are taken from the front in corpus order: how many are used tells which comes next.
        # Lists, since Python reads and writes their items several times as fast as items of arrays.
        self.left: list[int] = counts.tolist()
        self.used = [0] * len(self.left)
        self.place: list[int] = (len(over) + counts[::-1].cumsum()[::-1] - counts).tolist()
        # longest_at_most[x] leads to the longest length of at most x that has documents left; 0 is the end.
        self.longest_at_most = [length if items else length - 1 for length, items in enumerate(self.left)]
        self.longest_at_most[0] = 0
        # The shortest document only gets longer, but for the one that is cut, which `rest` has.
        self.ascending = iter([length for length, items in enumerate(self.left) if items])
        self.shortest = next(self.ascending, 0)
        self.rest: Segment | None = None
        self.segments: list[Segment] = []
        self.rows_of_segments = 0
        self.capacity: list[int] = []
        self.runs: list[tuple[int, list[RunEntry]]] = []

    def compose(self) -> Buckets:
        while True:
            longest = self._longest(self.largest)
            entries: list[RunEntry] = []
            repeats = 1
            # The longest document left opens the bucket: one that is longer than all buckets, else the longest of the
            # histogram. The rest of a cut document is shorter than all others, so it opens one only when it is alone.
            if self.next_over < self.end_over or (self.rest and not longest):
                capacity, head = self._head()
                entries.append(self._entry(head))
                room = capacity - head.length
                longest = self._longest(min(room, self.largest))
            elif longest:
                capacity = room = self.holding[longest]
                repeats = self.left[longest]
            else:
                break
            # Then all that fit whole, in order. Lengths alone decide, so buckets are the same until one runs out:
            # these are a run.
            room, repeats = self._walk(entries, longest, room, repeats)
            if self.rest and self.rest.length <= room:
                entries.append(self._entry(self.rest))
                room, repeats, self.rest = room - self.rest.length, 1, None
            # More room than P allows is filled from the shortest document's front: this bucket is one of its kind.
            spills = room > self.allowed[capacity]
            if spills:
                repeats = 1
            self._consume(entries, repeats)
            last = self._last() if spills else None
            if last:
                entries.append(self._entry(last._replace(length=room)))
                self.rest = last._replace(start=last.start + room, length=last.length - room)
            self._emit(capacity, repeats, entries)
        return Buckets(np.array(self.capacity, np.int64), Runs.of(self.runs), self.segments)

    def _longest(self, limit: int) -> int:
        """Return the longest length of at most `limit` that has documents left; 0 if no length has."""
        longest_at_most = self.longest_at_most
        longest = limit
        while longest_at_most[longest] != longest:
            longest = longest_at_most[longest]
        while longest_at_most[limit] != longest:  # so that this path is not followed again
            following = longest_at_most[limit]
            longest_at_most[limit] = longest
            limit = following
        return longest

    def _head(self) -> tuple[int, Segment]:
        """Take the first document that is not in the histogram: fill whole buckets with it, return the segment left."""
        if self.next_over < self.end_over:
            head = Segment(self.next_over, 0, self.over[self.next_over])
            self.next_over += 1
        else:
            assert self.rest
            head, self.rest = self.rest, None
        # As many whole buckets as leave it at least a token: the algorithm cuts a document only while it is longer than
        # the largest bucket, and what is left of it opens the next one.
        rows = (head.length - 1) // self.largest
        if rows:
            self._emit(self.largest, rows, [self._entry(head._replace(length=self.largest, rows=rows))])
            taken = rows * self.largest
            head = head._replace(start=head.start + taken, length=head.length - taken)
        return self.holding[head.length], head

    def _walk(self, entries: list[RunEntry], longest: int, room: int, repeats: int) -> tuple[int, int]:
        """Add what fits, longest first; returns the room left and how often such a bucket can be filled."""
        while longest:
            # All documents of this length that fit are added at once: walking on, the algorithm would meet them next.
            count = min(room // longest, self.left[longest])
            entries.append((longest, count, self.used[longest]))
            # The next bucket is the same as long as every length in it has enough left.
            repeats = min(repeats, self.left[longest] // count)
            room -= count * longest
            # Then shorter ones: there is no room for another document of this length, or no such document.
            longest = self._longest(min(longest - 1, room))
        return room, repeats

    def _consume(self, entries: list[RunEntry], repeats: int) -> None:
        for length, count, _ in entries:
            if length <= self.largest:  # not a segment, whose document was taken when it was cut
                self.used[length] += repeats * count
                self._take(length, repeats * count)

    def _take(self, length: int, documents: int) -> None:
        self.left[length] -= documents
        if not self.left[length]:
            self.longest_at_most[length] = length - 1

    def _last(self) -> Segment | None:
        """Take the last document out of the order."""
        # A document whose front is gone is shorter than all others, and is cut again.
        if self.rest:
            return self.rest
        # Lengths that ran out never come back, so the search goes on where it stopped.
        while self.shortest and not self.left[self.shortest]:
            self.shortest = next(self.ascending, 0)
        if self.shortest:
            length = self.shortest
            self._take(length, 1)
            # Buckets take documents of a length from the front; the last one of this length is taken here.
            return Segment(self.place[length] + self.used[length] + self.left[length], 0, length)
        # Only documents longer than every bucket are left: the last of these is the shortest.
        if self.next_over < self.end_over:
            self.end_over -= 1
            return Segment(self.end_over, 0, self.over[self.end_over])
        return None

    def _entry(self, segment: Segment) -> RunEntry:
        number = self.rows_of_segments
        self.segments.append(segment)
        self.rows_of_segments += segment.rows
        return self.largest + 1, 1, number

    def _emit(self, capacity: int, bins: int, entries: list[RunEntry]) -> None:
        self.capacity.append(capacity)
        self.runs.append((bins, entries))
