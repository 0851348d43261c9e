"""Tally rows, batch by batch: every token of every row goes to one account."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import numpy as np
import numpy.typing as npt

from packtool.planning.metrics.homogeneity import HomogeneityCounts
from packtool.planning.plan import I64, INSERTED_EOS, PADDING, Ints, Segments, distinct, offsets_of, ranges

_COUNTS = (
    *("rows", "stored_eos", "eos_inserted", "padding", "rounding", "placed", "repeated"),
    "intact",
    *("trained", "trained_again"),
)

_FEW = 1 << 12


class TallyCounts(msgspec.Struct, frozen=True):
    """The counts of a tally alone, to be stored or sent to another process.

    Attributes:
        counts: single counts by name.
        piece_lengths, documents_in_row: the histograms, as the values that occur and how often.
        overlaps: documents with tokens in more than one row, ascending.
    """

    counts: dict[str, int]
    homogeneity: HomogeneityCounts
    piece_lengths: tuple[list[int], list[int]]
    documents_in_row: tuple[list[int], list[int]]
    overlaps: list[int]


class Tally:
    """Counts of the rows of one sequence length, added batch by batch; every token is in one account.

    ``output = placed + repeated + eos + padding``, in tokens.

    A tally keeps two histograms of `sequence_length` + 1 numbers and, where many documents overlap, one byte for each
    document, however many rows there are. The caller makes sure that one thread at a time adds.

    Args:
        lengths: length of every document of the dataset, its stored EOS included.
        sequence_length: tokens in a row.
        multiple: pieces begin at multiples of this many tokens.

    >>> one = np.array
    >>> tally = Tally(lengths=one([5, 3, 6]), sequence_length=8)
    >>> rows = Segments(one([0, 1, 2, PADDING]), one([0, 0, 0, 0]), one([5, 3, 6, 2]), one([0] * 4), one([0, 2, 4]))
    >>> tally.add(rows)
    >>> tally.rows, tally.placed, tally.repeated, tally.eos, tally.padding, tally.output
    (2, 11, 0, 3, 2, 16)
    """

    def __init__(self, lengths: Ints, sequence_length: int, multiple: int = 1) -> None:
        self.lengths = lengths
        self.sequence_length = sequence_length
        self.multiple = multiple
        self.rows = 0
        self.stored_eos = 0
        self.eos_inserted = 0
        """EOS tokens that no stored document has."""
        self.padding = 0
        self.rounding = 0
        """Padding tokens up to the next multiple after a piece; other padding only fills a row."""
        self.placed = 0
        """Text tokens (BOS included, EOS not), each counted once."""
        self.repeated = 0
        """Text tokens that an earlier row already has."""
        self.intact = 0
        """Documents whose text lies in one segment of one row."""
        self.trained = 0
        """Tokens that train, where it is known which do."""
        self.trained_again = 0
        """Trained tokens that an earlier row already has, or that no stored document has."""
        self.piece_lengths: I64 = np.zeros(sequence_length + 1, np.int64)
        """Segments of documents, by their number of tokens."""
        self.documents_in_row: I64 = np.zeros(sequence_length + 1, np.int64)
        """Rows, by the number of distinct documents in them."""
        self.homogeneity = HomogeneityCounts()
        self._overlaps: npt.NDArray[np.bool_] | None = None
        self._named: list[I64] = []  # overlapping documents by number, not marked yet: few in a part of the rows

    def add(self, rows: Segments) -> None:
        """Count rows, padding included, as `packtool.writing.layout.Layout.segments` gives them."""
        if rows.groups == 0:
            return
        self.rows += rows.groups
        rows = self._without_filler(rows)
        text = self.lengths.take(rows.document).astype(np.int64) - 1
        # A segment that reaches the end of its document has the EOS. A copy's EOS is one more that is written, and no
        # repeated text.
        has_eos = rows.start + rows.length > text
        again = np.minimum(rows.repeated, rows.length - has_eos)
        stored_eos, repeated = int(np.count_nonzero(has_eos)), int(again.sum())
        self.stored_eos += stored_eos
        self.repeated += repeated
        self.placed += int(rows.length.sum()) - stored_eos - repeated
        # The text is in one piece, wherever the EOS is. A copy of all text was counted where it came first, and an EOS
        # alone has no text.
        intact = (rows.start == 0) & (rows.length >= text) & (text > again)
        self.intact += int(np.count_nonzero(intact))
        self.piece_lengths += np.bincount(rows.length, minlength=self.sequence_length + 1)
        self._count_documents(rows)
        copies = rows.repeated > 0
        if copies.any():
            self._name(distinct(rows.document[copies]))
        self.homogeneity.add(rows)

    def add_loss(self, rows: Segments, loss: npt.NDArray[np.uint8]) -> None:
        """Count which tokens of rows train.

        Args:
            rows: as `add` takes them.
            loss: 0 or 1 for each of their tokens, row after row.
        """
        loss = loss.reshape(-1)
        self.trained += int(np.count_nonzero(loss))
        again = np.where(rows.document == INSERTED_EOS, rows.length, rows.repeated)
        some = np.flatnonzero(again)
        if len(some):
            count = again[some]
            places = ranges(offsets_of(rows.length)[some], count, offsets_of(count))
            self.trained_again += int(np.count_nonzero(loss[places]))

    def _without_filler(self, rows: Segments) -> Segments:
        """Count padding and inserted EOS, and leave them out."""
        own = rows.document >= 0
        filler = np.flatnonzero(~own)
        if not len(filler):
            return rows
        length, document = rows.length[filler], rows.document[filler]
        self.padding += int(length[document == PADDING].sum())
        self.eos_inserted += int(length[document == INSERTED_EOS].sum())
        if self.multiple > 1:
            # Rows are multiples, so places in all rows laid end to end will do. Padding begins where a piece ends.
            place = offsets_of(rows.length)[filler[document == PADDING]]
            self.rounding += int(np.minimum(-place % self.multiple, length[document == PADDING]).sum())
        return rows.where(own)

    def _count_documents(self, rows: Segments) -> None:
        """Count the distinct documents in each row."""
        documents = max(1, len(self.lengths))
        # One number for each row and document. They come row by row, so long stretches are sorted already: NumPy's
        # stable sort makes use of that, and takes a quarter of the time of the default.
        pairs = rows.group_of() * documents + rows.document
        pairs.sort(kind="stable")
        again = np.flatnonzero(pairs[1:] == pairs[:-1])
        in_row = np.diff(rows.offsets) - np.bincount(pairs[again] // documents, minlength=rows.groups)
        self.documents_in_row += np.bincount(in_row, minlength=self.sequence_length + 1)

    @property
    def eos(self) -> int:
        """EOS tokens, stored or inserted."""
        return self.stored_eos + self.eos_inserted

    @property
    def output(self) -> int:
        """All tokens of the rows."""
        return self.rows * self.sequence_length

    def counts(self) -> TallyCounts:
        """Copy all counts so far.

        >>> part, whole = Tally(np.array([4]), sequence_length=4), Tally(np.array([4]), sequence_length=4)
        >>> part.add(Segments(np.array([0]), np.array([0]), np.array([4]), np.array([0]), np.array([0, 1])))
        >>> whole.include(part.counts())
        >>> whole.counts() == part.counts()
        True
        """
        return TallyCounts(
            counts={name: getattr(self, name) for name in _COUNTS},
            homogeneity=replace(self.homogeneity),
            piece_lengths=_listed(self.piece_lengths),
            documents_in_row=_listed(self.documents_in_row),
            overlaps=self._named_documents().tolist(),
        )

    def include(self, part: TallyCounts) -> None:
        """Add the counts of other rows of the same dataset and sequence length."""
        for name, value in part.counts.items():
            setattr(self, name, getattr(self, name) + value)
        self.homogeneity += part.homogeneity
        for histogram, (values, times) in (
            (self.piece_lengths, part.piece_lengths),
            (self.documents_in_row, part.documents_in_row),
        ):
            histogram[values] += np.array(times, np.int64)
        if part.overlaps:
            self._name(np.array(part.overlaps, np.int64))

    def _name(self, documents: I64) -> None:
        """Record documents with tokens in more than one row, by number while they are few."""
        self._named.append(documents)
        if sum(map(len, self._named)) > max(len(self.lengths) // 64, _FEW):
            self._mark()

    def _mark(self) -> None:
        if self._overlaps is None:
            self._overlaps = np.zeros(len(self.lengths), np.bool_)
        for documents in self._named:
            self._overlaps[documents] = True
        self._named.clear()

    def _named_documents(self) -> I64:
        """List documents with tokens in more than one row, ascending."""
        if self._overlaps is not None:
            return np.flatnonzero(self.overlaps)
        return distinct(np.concatenate([np.empty(0, np.int64), *self._named]))

    @property
    def overlaps(self) -> npt.NDArray[np.bool_]:
        """A flag for each document with tokens in more than one row; empty if there is none."""
        if self._named:
            self._mark()
        return np.zeros(0, np.bool_) if self._overlaps is None else self._overlaps


def _listed(histogram: I64) -> tuple[list[int], list[int]]:
    """List the values that occur, and how often."""
    values = np.flatnonzero(histogram)
    return values.tolist(), histogram[values].tolist()
