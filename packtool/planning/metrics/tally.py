"""Count the tokens of rows, batch by batch: every token of every row goes to one account."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import numpy as np
import numpy.typing as npt

from packtool.planning.metrics.homogeneity import HomogeneityCounts
from packtool.planning.plan import I64, INSERTED_EOS, PADDING, Ints, Segments, cut_off, distinct, offsets_of, ranges

_COUNTS = (
    *("rows", "stored_eos", "eos_inserted", "padding", "rounding", "placed", "repeated"),
    *("intact", "trained", "trained_again", "without_target"),
)
"""Attributes of a tally that `TallyCounts.counts` holds."""
_FEW = 1 << 12
"""Documents that may always be listed by number; more, and more than 1/64 of all, get flags: lists grow with rows."""


class TallyCounts(msgspec.Struct, frozen=True):
    """The counts of a tally, without the lengths of documents, to be stored or sent to another process."""

    counts: dict[str, int]  # counts that are single numbers, by name
    homogeneity: HomogeneityCounts
    piece_lengths: tuple[list[int], list[int]]  # histogram: (lengths of pieces, how often each occurs)
    documents_in_row: tuple[list[int], list[int]]  # histogram: (documents in a row, how often each number occurs)
    overlaps: list[int]  # documents with a token that is in more than one row, ascending


class Tally:
    """Counts of the rows of one sequence length, added batch by batch; every token is in one account.

    ``output = placed + repeated + eos + padding``, in tokens.

    The memory of a tally does not grow with the rows: it is two histograms of `sequence_length` + 1 numbers and, if
    many documents have repeated tokens, a byte for every document. Only one thread at a time may add to it.

    Args:
        lengths: length of every document of the dataset, its stored EOS included.
        sequence_length: tokens in a row.
        multiple: pieces begin at multiples of this many tokens.

    >>> one = np.array
    >>> tally = Tally(lengths=one([5, 3, 6]), sequence_length=8)
    >>> rows = Segments(
    ...     document=one([0, 1, 2, PADDING]),
    ...     start=one([0] * 4),
    ...     length=one([5, 3, 6, 2]),
    ...     repeated=one([0] * 4),
    ...     offsets=one([0, 2, 4]),
    ... )
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
        """EOS tokens that packing inserted: no stored document has them."""
        self.padding = 0
        self.rounding = 0
        """Padding tokens between the end of a piece and the next multiple; the rest of the padding fills rows."""
        self.placed = 0
        """Text tokens (BOS included, EOS not), without repetitions."""
        self.repeated = 0
        """Text tokens that an earlier row already has."""
        self.intact = 0
        """Documents whose text lies in one segment of one row."""
        self.trained = 0
        """Tokens that train; 0 if the dataset does not distinguish them."""
        self.trained_again = 0
        """Trained tokens that an earlier row already has, or that no stored document has."""
        self.without_target = 0
        """Rows in which no token is a target: of texts, those that hold one token."""
        self.piece_lengths: I64 = np.zeros(sequence_length + 1, np.int64)
        """Segments of documents, by their number of tokens."""
        self.documents_in_row: I64 = np.zeros(sequence_length + 1, np.int64)
        """Rows, by the number of distinct documents in them."""
        self.homogeneity = HomogeneityCounts()
        self._overlaps: npt.NDArray[np.bool_] | None = None
        self._overlap_numbers: list[I64] = []  # numbers of overlapping documents that have no flag in `_overlaps` yet

    def add(self, rows: Segments) -> None:
        """Count the tokens of rows.

        Args:
            rows: their segments, padding included, a group for every row. A segment has the tokens of `document` from
                `start` on, `length` of them, EOS included; an earlier row already has the first `repeated` ones.
        """
        if rows.groups == 0:
            return
        self.rows += rows.groups
        self.without_target += self._alone(rows)
        rows = self._count_filler(rows)
        text = self.lengths.take(rows.document).astype(np.int64) - 1  # of the whole document, without its EOS
        # A segment that ends behind the text has the EOS. It may be one of the repeated tokens: even then it counts as
        # an EOS, not as repeated text.
        has_eos = rows.start + rows.length > text
        again = np.minimum(rows.repeated, rows.length - has_eos)
        stored_eos, repeated = int(np.count_nonzero(has_eos)), int(again.sum())
        self.stored_eos += stored_eos
        self.repeated += repeated
        self.placed += int(rows.length.sum()) - stored_eos - repeated
        # Whether a segment has all text of its document; the EOS may lie in another one. `text > again` leaves out a
        # segment that only repeats text, which was counted when the text came first, and a document without text.
        intact = (rows.start == 0) & (rows.length >= text) & (text > again)
        self.intact += int(np.count_nonzero(intact))
        self.piece_lengths += np.bincount(rows.length, minlength=self.sequence_length + 1)
        self._count_documents(rows)
        copies = rows.repeated > 0  # here an EOS that is repeated counts, too
        if copies.any():
            self._record_overlaps(distinct(rows.document[copies]))
        self.homogeneity.add(rows)

    def add_loss(self, rows: Segments, loss: npt.NDArray[np.uint8]) -> None:
        """Count which tokens of rows train.

        Args:
            rows: as in `add`.
            loss: 0 or 1 for every token of the rows, row after row.
        """
        loss = loss.reshape(-1)
        self.trained += int(np.count_nonzero(loss))
        targets = loss != 0
        # Nothing predicts these tokens, whether they train or not.
        targets[offsets_of(rows.length)[rows.offsets[:-1]]] = False
        targets[cut_off(rows, rotated=False)] = False
        without = int(np.count_nonzero(~targets.reshape(-1, self.sequence_length).any(axis=1)))
        self.without_target += without - self._alone(rows)  # which `add` has counted
        # The first tokens of a segment are those that come again. An inserted EOS counts as such, so that the ledger
        # balances: what is trained is the stored tokens that train, and the ones that are trained again.
        again = np.where(rows.document == INSERTED_EOS, rows.length, rows.repeated)
        some = np.flatnonzero(again)
        if len(some):
            count = again[some]
            places = ranges(offsets_of(rows.length)[some], count, offsets_of(count))
            self.trained_again += int(np.count_nonzero(loss[places]))

    def _alone(self, rows: Segments) -> int:
        """Count the rows that hold fewer than two tokens besides padding: nothing predicts the first token of a row."""
        padding = np.flatnonzero(rows.document == PADDING)
        if not len(padding) and self.sequence_length > 1:
            return 0
        row = np.searchsorted(rows.offsets, padding, side="right") - 1
        filler = np.bincount(row, weights=rows.length[padding], minlength=rows.groups)
        return int(np.count_nonzero(filler > self.sequence_length - 2))

    def _count_filler(self, rows: Segments) -> Segments:
        """Count padding and inserted EOS; return the segments of documents."""
        own = rows.document >= 0  # `PADDING` and `INSERTED_EOS` are negative
        filler = np.flatnonzero(~own)
        if not len(filler):
            return rows
        length, document = rows.length[filler], rows.document[filler]
        self.padding += int(length[document == PADDING].sum())
        self.eos_inserted += int(length[document == INSERTED_EOS].sum())
        if self.multiple > 1:
            # Padding begins where a piece ends. Rows are multiples long, so a place in all rows laid end to end is as
            # far from the next multiple as the same place in its row.
            # A negative remainder is the distance up to the next multiple.
            place = offsets_of(rows.length)[filler[document == PADDING]]
            self.rounding += int(np.minimum(-place % self.multiple, length[document == PADDING]).sum())
        return rows.where(own)

    def _count_documents(self, rows: Segments) -> None:
        """Count the distinct documents in each row."""
        documents = max(1, len(self.lengths))  # it divides below
        # One number for every segment, equal for segments of one document in one row. Segments come row by row, so the
        # numbers are largely sorted: NumPy's stable sort uses that, and takes a quarter of the default's time.
        pairs = rows.group_of() * documents + rows.document
        pairs.sort(kind="stable")
        again = np.flatnonzero(pairs[1:] == pairs[:-1])
        # Of several segments of one document in a row, one counts.
        in_row = np.diff(rows.offsets) - np.bincount(pairs[again] // documents, minlength=rows.groups)
        self.documents_in_row += np.bincount(in_row, minlength=self.sequence_length + 1)

    @property
    def eos(self) -> int:
        """The number of EOS tokens, stored or inserted."""
        return self.stored_eos + self.eos_inserted

    @property
    def output(self) -> int:
        """The number of tokens of the rows."""
        return self.rows * self.sequence_length

    def counts(self) -> TallyCounts:
        """Return all counts so far.

        >>> part, whole = Tally(np.array([4]), sequence_length=4), Tally(np.array([4]), sequence_length=4)
        >>> part.add(Segments(np.array([0]), np.array([0]), np.array([4]), np.array([0]), np.array([0, 1])))
        >>> whole.include(part.counts())
        >>> whole.counts() == part.counts()
        True
        """
        return TallyCounts(
            counts={name: getattr(self, name) for name in _COUNTS},
            homogeneity=replace(self.homogeneity),  # a copy: later rows are added in place
            piece_lengths=_counts_by_value(self.piece_lengths),
            documents_in_row=_counts_by_value(self.documents_in_row),
            overlaps=self._overlapping_documents().tolist(),
        )

    def include(self, part: TallyCounts) -> None:
        """Add the counts of other rows, of the same dataset and sequence length."""
        for name, value in part.counts.items():
            setattr(self, name, getattr(self, name) + value)
        self.homogeneity += part.homogeneity
        for histogram, (values, times) in (
            (self.piece_lengths, part.piece_lengths),
            (self.documents_in_row, part.documents_in_row),
        ):
            histogram[values] += np.array(times, np.int64)  # values differ: of equal ones NumPy would add one alone
        if part.overlaps:
            self._record_overlaps(np.array(part.overlaps, np.int64))

    def _record_overlaps(self, documents: I64) -> None:
        """Record documents with repeated tokens: by their numbers while they are few, then by flags."""
        self._overlap_numbers.append(documents)
        # A number takes 8 bytes, so a list of 1/64 of the documents takes an eighth of the memory of flags.
        if sum(map(len, self._overlap_numbers)) > max(len(self.lengths) // 64, _FEW):
            self._mark()

    def _mark(self) -> None:
        """Set the flags of the documents that are listed by number, and clear the list."""
        if self._overlaps is None:
            self._overlaps = np.zeros(len(self.lengths), np.bool_)
        for documents in self._overlap_numbers:
            self._overlaps[documents] = True
        self._overlap_numbers.clear()

    def _overlapping_documents(self) -> I64:
        """Return the numbers of documents with repeated tokens, ascending."""
        if self._overlaps is not None:
            return np.flatnonzero(self.overlaps)  # the property: it sets the flags of documents that are still listed
        # NumPy can't concatenate no arrays.
        return distinct(np.concatenate([np.empty(0, np.int64), *self._overlap_numbers]))

    @property
    def overlaps(self) -> npt.NDArray[np.bool_]:
        """Whether each document has repeated tokens: a flag for every document; no flags if none has."""
        if self._overlap_numbers:
            self._mark()
        if self._overlaps is None:
            return np.zeros(0, np.bool_)
        return self._overlaps


def _counts_by_value(histogram: I64) -> tuple[list[int], list[int]]:
    """Return the values that occur, and how often each occurs.

    >>> _counts_by_value(np.array([0, 3, 0, 2]))
    ([1, 3], [3, 2])
    """
    values = np.flatnonzero(histogram)
    return values.tolist(), histogram[values].tolist()
