"""The kinds of plan that strategies make: long documents and bins, a stream, and any of them of reordered documents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from packtool.planning.arrays import IN_MEMORY, Arrays
from packtool.planning.packing.bins.mix import mix
from packtool.planning.plan import I64, Ints, Mask, Plan, Segments, index_type, offsets_of, pieces_of, ranges, stages_of

_BATCH = 1 << 20  # segments looked up at a time
INDEXED_UNIT = 64
"""For units of at least this many tokens the first document is looked up in advance: searching the documents in
order costs far less than in the random order of a shuffle, and the index stays small compared with the tokens."""
_Int = TypeVar("_Int", bound=np.integer[Any])


def _none() -> I64:
    return np.empty(0, np.int64)


@dataclass(frozen=True)
class LongRows:
    """Rows that hold tokens of one document alone, document after document."""

    document: Ints  # the document of each row
    start: Ints  # first token of each row in its document
    overlap: bool = False  # some rows begin with tokens of the row before

    @classmethod
    def of(cls, document: Ints, rows: I64, lengths: Ints, sequence_length: int) -> LongRows:
        """Cut documents to rows.

        Let a document have `len` tokens and k rows of L tokens. If k rows hold no more than `len` tokens, they are
        consecutive; if they hold more they overlap, and row i begins at token floor(i * (len - L) / (k - 1)).

        Args:
            document: the documents, ascending.
            rows: number of rows of each document.
            lengths: tokens of all documents.
            sequence_length: tokens in a row, L.
        """
        first, tokens = offsets_of(rows), lengths.take(document).astype(np.int64)
        kind = np.promote_types(lengths.dtype, index_type(int(first[-1])))
        start = np.arange(first[-1], dtype=kind)
        start -= np.repeat(first[:-1].astype(kind), rows)
        start *= kind.type(sequence_length)
        slides = np.flatnonzero(rows * sequence_length > tokens)
        if len(slides):
            at = ranges(first[slides], rows[slides], offsets_of(rows[slides]))
            room, gaps = tokens[slides] - sequence_length, np.maximum(rows[slides] - 1, 1)
            number = start[at].astype(np.int64) // sequence_length
            start[at] = number * np.repeat(room, rows[slides]) // np.repeat(gaps, rows[slides])
        return cls(np.repeat(document.astype(index_type(len(lengths))), rows), start, len(slides) > 0)

    @classmethod
    def join(cls, parts: Sequence[LongRows], lengths: Ints, firsts: Sequence[int], arrays: Arrays) -> LongRows:
        """Join the long rows of consecutive windows; arguments as of `RowsPlan.join`."""
        kind, none = index_type(len(lengths)), [0] * len(parts)
        return cls(
            arrays.concatenated((part.document for part in parts), kind, firsts),
            arrays.concatenated((part.start for part in parts), lengths.dtype, none),
            any(part.overlap for part in parts),
        )

    def repeated(self, rows: I64, sequence_length: int) -> I64:
        """Count the tokens of each row that the row before it has, too."""
        before = np.maximum(rows - 1, 0)
        end = self.start.take(before).astype(np.int64) + sequence_length
        same = (before < rows) & (self.document.take(before) == self.document.take(rows))
        return np.where(same, np.maximum(end - self.start.take(rows), 0), 0)


@dataclass(frozen=True)
class Bins:
    """Rows that hold segments of several documents.

    Attributes:
        document: document of each segment.
        offsets: bins + 1; bin i holds segments ``offsets[i]:offsets[i + 1]``.
        middle_pieces: the segments, ascending, that are given by their start and length; others run to their document's
            end and begin at the last multiple of L (or, in a plan of whole documents, at its first token).
        start: first token of each middle piece.
        length: tokens of each middle piece.
    """

    document: Ints
    offsets: I64
    middle_pieces: I64 = field(default_factory=_none)
    start: I64 = field(default_factory=_none)
    length: I64 = field(default_factory=_none)

    @classmethod
    def join(cls, parts: Sequence[Bins], lengths: Ints, firsts: Sequence[int], arrays: Arrays) -> Bins:
        """Join the bins of consecutive windows; arguments as of `RowsPlan.join`."""
        kind, none = index_type(len(lengths)), [0] * len(parts)
        segments = offsets_of(np.array([len(part.document) for part in parts]))[:-1].tolist()
        return cls(
            arrays.concatenated((part.document for part in parts), kind, firsts),
            _chain([part.offsets for part in parts], arrays),
            arrays.concatenated((part.middle_pieces for part in parts), np.int64, segments),
            arrays.concatenated((part.start for part in parts), np.int64, none),
            arrays.concatenated((part.length for part in parts), np.int64, none),
        )

    def at(self, places: Ints, offsets: I64) -> Bins:
        """Put the segments at these places, all of them in another order, into bins that begin at these offsets."""
        is_middle = np.zeros(len(places), np.bool_)
        is_middle[self.middle_pieces] = True
        middle = np.flatnonzero(is_middle[places])
        before = np.searchsorted(self.middle_pieces, places[middle])
        return Bins(self.document[places], offsets, middle, self.start[before], self.length[before])

    def continued(self) -> Mask:
        """Mark the middle pieces that continue the segment before them in the bin: the next tokens of one document."""
        continued = np.zeros(len(self.document), np.bool_)
        middle = self.middle_pieces
        if len(middle) > 1:
            document = self.document[middle]
            follows = (document[1:] == document[:-1]) & (self.start[1:] == self.start[:-1] + self.length[:-1])
            beside = np.diff(middle) == 1
            continued[middle[1:][follows & beside]] = True
            begins = self.offsets[:-1]
            # The first segment of a bin continues none, even if the bin before ends with the tokens before its own.
            continued[begins[begins < len(continued)]] = False
        return continued


class RowsPlan(Plan):
    """Long rows, then bins. A row of either is a unit; tokens of a bin beyond L are left out.

    Args:
        sequence_length: tokens in a row, L.
        lengths: tokens of each document with its EOS.
        long: rows that hold one document alone; None if there are no such rows.
        bins: rows of several.
        whole: segments of bins are whole documents, not the part of one beyond its last multiple of L.
        dropped: text tokens that no row holds.
        eos_omitted: stored EOS that no row holds.
        stages: see `Plan`.

    >>> bins = Bins(np.array([2, 0]), np.array([0, 2]))
    >>> lengths = np.array([3, 16, 12])
    >>> rows = RowsPlan(8, lengths, long=LongRows.of(np.array([1, 2]), np.array([2, 1]), lengths, 8), bins=bins)
    >>> segments = rows.segments(np.array([3, 1]))
    >>> segments.document, segments.start, segments.length
    (array([2, 0, 1]), array([8, 0, 8]), array([4, 3, 8]))
    """

    def __init__(
        self,
        sequence_length: int,
        lengths: Ints,
        *,
        long: LongRows | None = None,
        bins: Bins,
        whole: bool = False,
        dropped: int = 0,
        eos_omitted: int = 0,
        stages: Mapping[str, int] | None = None,
    ) -> None:
        long = long or LongRows(_none(), _none())
        super().__init__(
            sequence_length=sequence_length,
            unit=sequence_length,
            units=len(long.document) + len(bins.offsets) - 1,
            dropped=dropped,
            eos_omitted=eos_omitted,
            stages=stages or {},
        )
        self._lengths = lengths
        self._long = long
        self._bins = bins
        self._whole = whole

    @classmethod
    def join(cls, plans: Sequence[RowsPlan], lengths: Ints, firsts: Sequence[int], arrays: Arrays) -> RowsPlan:
        """Join the plans of consecutive windows: all long rows, then all bins, both in the windows' order.

        Args:
            plans: of each window, one row length; documents are counted from the window's first.
            lengths: tokens of each document of all windows, with its EOS.
            firsts: first document of each window.
            arrays: allocates the arrays of the plan.
        """
        return cls(
            plans[0].sequence_length,
            lengths,
            long=LongRows.join([plan._long for plan in plans], lengths, firsts, arrays),
            bins=Bins.join([plan._bins for plan in plans], lengths, firsts, arrays),
            whole=plans[0]._whole,
            dropped=sum(plan.dropped for plan in plans),
            eos_omitted=sum(plan.eos_omitted for plan in plans),
            stages=stages_of(plans),
        )

    @property
    def bins(self) -> Bins:
        """Rows of several documents."""
        return self._bins

    @property
    def documents(self) -> int:
        """Number of documents that were planned."""
        return len(self._lengths)

    def mixed(self, seed: int, window: int) -> RowsPlan:
        """Exchange segments between bins, so that each holds many lengths; each bin keeps its tokens.

        Rows of one document alone stay.

        Args:
            seed: for all draws.
            window: a number that differs from one plan of the same corpus to the next.
        """
        bins, segments = self._bins, self._bins.document
        # Where each document has one segment, its number tells which; elsewhere segments are known by their places.
        by_place = len(bins.middle_pieces) > 0
        if by_place:
            segments = np.arange(len(bins.document))
        mixed, offsets = mix(segments, self.bin_lengths(), bins.offsets, self.sequence_length, seed=seed, window=window)
        if by_place:
            return self.with_bins(bins.at(mixed, offsets))
        return self.with_bins(Bins(mixed, offsets))

    def limited(self, most: int) -> RowsPlan:
        """Move the shortest segments of every bin that holds too many to new bins, at the end.

        If a row has more than `most` segments, the segments after its longest `most` have less than L / `most` tokens,
        so any `most` of them fit a row: the number of new rows is the number of moved segments divided by `most`.
        Consecutive pieces of a document that mixing put side by side count as one segment of the row.

        Args:
            most: segments in a bin.

        Returns:
            The plan; its stages have the number of rows that were filled and added.

        >>> rows = RowsPlan(8, np.array([1, 5, 2]), bins=Bins(np.array([0, 1, 2]), np.array([0, 3])), whole=True)
        >>> segments = rows.limited(2).segments(np.array([0, 1]))
        >>> segments.document, segments.offsets
        (array([1, 2, 0]), array([0, 2, 3]))
        >>> rows.limited(2).stages
        {'filled': 1, 'added': 1}
        """
        bins = self._bins
        # A group is what the row counts as one segment: a segment, with all that continue it.
        firsts = np.flatnonzero(~bins.continued())
        offsets = np.searchsorted(firsts, bins.offsets)  # of bins, in groups
        counts = np.diff(offsets)
        if counts.max(initial=0) <= most:
            return self.with_bins(bins, {"filled": self.rows, "added": 0})
        lengths = np.add.reduceat(self.bin_lengths().astype(np.int64), firsts)
        moves = _beyond_longest(lengths, offsets, most)
        # What stays remains in its bin. What moves comes after all of that: every `most` groups fill a new bin.
        staying, moving = np.flatnonzero(~moves), np.flatnonzero(moves)
        order = np.append(staying, moving)
        old_offsets = offsets_of(np.minimum(counts, most))
        new_ends = np.append(np.arange(most, len(moving), most), len(moving))
        new_offsets = np.append(old_offsets, old_offsets[-1] + new_ends)
        # From groups back to their segments.
        sizes = np.diff(firsts, append=len(bins.document))[order]
        segment_offsets = offsets_of(sizes)
        places = ranges(firsts[order], sizes, segment_offsets)
        limited = bins.at(places, segment_offsets[new_offsets])
        return self.with_bins(limited, {"filled": self.rows, "added": len(new_ends)})

    def with_bins(self, bins: Bins, stages: Mapping[str, int] | None = None) -> RowsPlan:
        """Hold the same documents in other bins, perhaps more of them, made by the same steps or others."""
        return RowsPlan(
            self.sequence_length,
            self._lengths,
            long=self._long,
            bins=bins,
            whole=self._whole,
            dropped=self.dropped,
            eos_omitted=self.eos_omitted,
            stages=stages or self.stages,
        )

    def segments(self, units: Ints) -> Segments:
        rows: I64 = np.asarray(units, np.int64)
        bins = rows - len(self._long.document)
        in_bins, long = np.flatnonzero(bins >= 0), np.flatnonzero(bins < 0)
        if not len(long):  # as in every plan of documents that all fit a row: nothing to put in between
            return self._clip(self._of_bins(bins))
        both = Segments.concatenate([self._of_long(rows.take(long)), self._of_bins(bins.take(in_bins))])
        # Both are in the order of `units`: back to their places among the other.
        group = np.empty(len(rows), np.int64)
        group[np.append(long, in_bins)] = np.arange(len(rows))
        counts = np.diff(both.offsets).take(group)
        offsets = offsets_of(counts)
        return self._clip(both.at(ranges(both.offsets.take(group), counts, offsets), offsets))

    def _of_long(self, rows: I64) -> Segments:
        """Return the segments of long rows, one in every row."""
        repeated = np.zeros_like(rows)
        if self._long.overlap:
            repeated = self._long.repeated(rows, self.sequence_length)
        return Segments(
            self._long.document.take(rows).astype(np.int64),
            self._long.start.take(rows).astype(np.int64),
            np.full(len(rows), self.sequence_length, np.int64),
            repeated,
            np.arange(len(rows) + 1),
        )

    def _of_bins(self, bins: I64) -> Segments:
        """Return the segments of bins: the ends of documents, except for middle pieces."""
        first = self._bins.offsets.take(bins)
        counts = self._bins.offsets.take(bins + 1) - first
        offsets = offsets_of(counts)
        place = ranges(first, counts, offsets)
        document = self._bins.document.take(place).astype(np.int64)
        tokens = self._tokens(document)
        tails = tokens if self._whole else self._tails(tokens)
        start, length = (tokens - tails).astype(np.int64), tails.astype(np.int64)
        middle = self._bins.middle_pieces
        if len(middle):
            # The next middle piece from each place on; the last one serves places behind all, and is not at theirs.
            which = np.minimum(np.searchsorted(middle, place), len(middle) - 1)
            is_middle = middle[which] == place
            start[is_middle] = self._bins.start[which[is_middle]]
            length[is_middle] = self._bins.length[which[is_middle]]
        return Segments(document, start, length, np.zeros_like(document), offsets)

    def bin_lengths(self) -> Ints:
        """Count the tokens of each segment in a bin, in the smallest type that holds them."""
        bins = self._bins
        out = np.empty(len(bins.document), np.min_scalar_type(self.sequence_length))
        for first in range(0, len(out), _BATCH):
            tokens = self._tokens(bins.document[first : first + _BATCH])
            out[first : first + _BATCH] = tokens if self._whole else self._tails(tokens)
        out[bins.middle_pieces] = bins.length
        return out

    def _tokens(self, document: Ints) -> Ints:
        """Look up the tokens of documents, in a type that holds L, too."""
        kind = np.promote_types(self._lengths.dtype, np.min_scalar_type(self.sequence_length))
        tokens: Ints = self._lengths.take(document).astype(kind, copy=False)
        return tokens

    def _tails(self, tokens: npt.NDArray[_Int]) -> npt.NDArray[_Int]:
        """Compute the tokens beyond the last multiple of L, faster than NumPy's remainder."""
        whole: npt.NDArray[_Int] = tokens // self.sequence_length * self.sequence_length
        return tokens - whole

    def _clip(self, rows: Segments) -> Segments:
        """Leave out the tokens of rows beyond L."""
        if not self.dropped and not self.eos_omitted:
            return rows
        ends = offsets_of(rows.length)
        begins = ends.take(rows.offsets)
        if (np.diff(begins) <= self.sequence_length).all():
            return rows
        excess = ends[1:] - np.repeat(begins[:-1], np.diff(rows.offsets)) - self.sequence_length
        length = rows.length - np.maximum(excess, 0)
        kept = length > 0
        return replace(rows, length=length).where(kept)


def _beyond_longest(lengths: I64, offsets: I64, most: int) -> Mask:
    """Mark the segments of each bin other than its longest `most`; of equally long segments the last ones are marked.

    Args:
        lengths: of the segments, bin after bin, in tokens.
        offsets: (bins + 1), where the segments of each bin begin.
    """
    counts = np.diff(offsets)
    bin = np.repeat(np.arange(len(counts)), counts)
    longest_first = np.lexsort((-lengths, bin))
    rank = np.arange(len(bin)) - np.repeat(offsets[:-1], counts)  # in its bin, of each place in that order
    beyond = np.zeros(len(bin), np.bool_)
    beyond[longest_first] = rank >= most
    return beyond


def _chain(offsets: list[I64], arrays: Arrays) -> I64:
    """Join offsets, each counted on from the one before."""
    before = offsets_of(np.array([each[-1] for each in offsets]))[:-1].tolist()
    return arrays.concatenated([offsets[0][:1], *(each[1:] for each in offsets)], np.int64, [0, *before])


class StreamPlan(Plan):
    """Documents one after the other, cut into units of min(A, L) tokens.

    Args:
        sequence_length: tokens in a row, L.
        atom_size: tokens in an atom, A; divides L or is a multiple of it.
        ends: documents + 1 offsets of the documents in the stream: `offsets_of` their lengths.
        documents: which documents the stream holds, in its order; None for all.
        remainder: ``pad`` keeps every token, ``drop`` the tokens that fill rows.
        arrays: allocates the arrays of the plan.

    >>> plan = StreamPlan(4, 4, np.array([0, 3, 9]))
    >>> segments = plan.segments(np.array([0, 2]))
    >>> segments.document, segments.start, segments.length, segments.offsets
    (array([0, 1, 1]), array([0, 0, 5]), array([3, 1, 1]), array([0, 2, 3]))
    """

    def __init__(
        self,
        sequence_length: int,
        atom_size: int,
        ends: I64,
        *,
        documents: Ints | None = None,
        remainder: str = "pad",
        arrays: Arrays = IN_MEMORY,
    ) -> None:
        unit = min(atom_size, sequence_length)
        tokens = int(ends[-1])
        kept = tokens if remainder == "pad" else tokens - tokens % sequence_length
        omitted = len(ends) - int(np.searchsorted(ends, kept, side="right"))
        super().__init__(
            sequence_length=sequence_length,
            unit=unit,
            units=-(-kept // unit),
            dropped=tokens - kept - omitted,
            eos_omitted=omitted,
            atom_units=atom_size // unit,
            last_atom_stays=kept % atom_size > 0,
        )
        self._ends = ends
        self._documents = documents
        self._tokens = kept
        self._firsts: I64 | None = None
        if unit >= INDEXED_UNIT:
            self._firsts = arrays.filled(self.units + 1, np.int64, lambda a, b: self._first_document(np.arange(a, b)))

    def _first_document(self, units: Ints) -> I64:
        """Find the document, by its place in the stream, that holds each unit's first token."""
        begin = np.minimum(np.asarray(units, np.int64) * self.unit, self._tokens)
        return np.searchsorted(self._ends, begin, side="right") - 1

    def segments(self, units: Ints) -> Segments:
        begin = np.asarray(units, np.int64) * self.unit
        end = np.minimum(begin + self.unit, self._tokens)
        if self._firsts is None:
            first, last = self._first_document(units), self._first_document(np.asarray(units) + 1)
        else:
            first, last = self._firsts[units], self._firsts[np.asarray(units) + 1]
        counts = last - first + (self._ends[last] < end)
        place, start, length, offsets = pieces_of(self._ends, begin, end, first, counts)
        document = place if self._documents is None else self._documents[place].astype(np.int64)
        return Segments(document, start, length, np.zeros_like(document), offsets)


class RenumberedPlan(Plan):
    """The rows of another plan, whose documents have other numbers.

    Args:
        plan: of the documents in the order in which they were planned.
        order: the numbers that these documents get.
    """

    def __init__(self, plan: Plan, order: Ints) -> None:
        super().__init__(**plan.facts())
        self._plan = plan
        self._order = order

    def segments(self, units: Ints) -> Segments:
        part = self._plan.segments(units)
        stored = part.document >= 0
        document = part.document.copy()
        document[stored] = self._order[document[stored]]
        return replace(part, document=document)
