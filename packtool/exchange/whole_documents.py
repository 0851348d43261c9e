"""Turn rows of other tools, token ids with columns beside them, into whole documents.

Columns are obeyed where they are clear: a mask of padding cuts tokens out, numbers of documents divide a row, labels
and loss masks say which tokens train. What would be lost or is not clear is refused by name, unless the ids alone are
wanted.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from packtool.errors import DataError
from packtool.exchange.model import ReadDocuments, ReadOptions
from packtool.planning.plan import I64, offsets_of
from packtool.reading.batch import IGNORED
from packtool.support.sizes import plural
from packtool.text.corpus import token_columns

IDS = ("input_ids", "tokens", "token_ids", "ids")
"""Columns to look for ids in, in this order, unless one is named."""
_OTHERS = (*IDS, "token_type_ids", "special_tokens_mask", "length", "lengths")
"""Columns whose values say nothing that a store would lose."""
_ONLY_LISTS = (*token_columns.NUMBERS, *token_columns.SIZES)
"""Columns that matter only where they hold lists: a single value is the name or the length of the record."""
Bools = npt.NDArray[np.bool_]


class Column(NamedTuple):
    """A column of lists of numbers, for some rows."""

    values: npt.NDArray[Any]  # the values of all rows, one after the other
    lengths: I64  # the length of the list of each row


def id_column(names: Collection[str], options: ReadOptions, where: str) -> str:
    """Return the name of the column of ids.

    Raises:
        DataError: there is no column of ids, or not the one that `--field` names.

    >>> id_column(["text", "ids", "labels"], ReadOptions(np.dtype("<u2")), "a.parquet")
    'ids'
    """
    for name in [options.field] if options.field else IDS:
        if name in names:
            return name
    wanted = options.field or f"called {', '.join(IDS[:-1])} or {IDS[-1]}"
    what = f"no column {wanted}; there are {', '.join(names)}"
    raise DataError("missing-ids", what, remedy="name the column of ids with --field", where=where)


def beside(name: str, *, is_list: bool) -> bool:
    """Return whether a column is read with the ids: its name is known, or it may hold a number for every token.

    >>> beside("labels", is_list=False), beside("document_id", is_list=False), beside("score", is_list=False)
    (True, False, False)
    """
    if name in _ONLY_LISTS or name not in token_columns.KNOWN:
        return is_list and name not in _OTHERS
    return True


class ForeignRow(NamedTuple):
    """A row of a file: where it stands, for messages; its ids; and the columns that may say more of them."""

    where: str
    ids: npt.NDArray[Any]
    columns: Mapping[str, npt.NDArray[Any]]


def documents(rows: Iterable[ForeignRow], options: ReadOptions) -> Iterator[ReadDocuments]:
    """Yield the documents of rows, some at a time.

    Raises:
        DataError: a known column is in some rows and not in others; or see `RowReader`.
    """
    reader, batch, tokens = RowReader(), list[ForeignRow](), 0
    first: ForeignRow | None = None
    for row in rows:
        first = first or row
        _require_same_columns(row, first)
        batch.append(row)
        tokens += len(row.ids)
        if tokens >= options.tokens:
            yield _documents(reader, batch)
            batch, tokens = [], 0
    if batch:
        yield _documents(reader, batch)


def _require_same_columns(row: ForeignRow, first: ForeignRow) -> None:
    known = set(token_columns.KNOWN)
    here, there = sorted(known.intersection(row.columns)), sorted(known.intersection(first.columns))
    if here != there:
        what = f"{', '.join(here) or 'no column'} says more of the ids, but {', '.join(there) or 'no column'} in the"
        raise bad_mask(f"{what} first record", row.where)


def _documents(reader: RowReader, batch: list[ForeignRow]) -> ReadDocuments:
    """Return the documents of rows; an unknown column that not all of them have can't be about every token."""
    shared = set(batch[0].columns)
    for row in batch:
        shared.intersection_update(row.columns)
    columns = {}
    for name in sorted(shared):
        columns[name] = _column([row.columns[name] for row in batch])
    return reader.documents(_column([row.ids for row in batch]), columns, lambda row: batch[row].where)


def _column(arrays: list[npt.NDArray[Any]]) -> Column:
    return Column(np.concatenate(arrays), np.array(list(map(len, arrays)), np.int64))


class RowReader:
    """Reads the rows of one file, block by block. What 0 means in a column may follow from an earlier block alone."""

    def __init__(self) -> None:
        self._zero: dict[str, str] = {}
        """What the number 0 stands for in a column: the first document of a row, or padding after the last one."""
        self._last: dict[str, int] = {}
        """The number of the last document of the row before."""
        self._read_as: dict[str, None] = {}
        """What numbers in columns were taken for, in words, each once."""

    def documents(self, ids: Column, columns: Mapping[str, Column], place: Callable[[int], str]) -> ReadDocuments:
        """Return the documents of a block of rows, and which of their tokens train.

        Args:
            ids: of each row.
            columns: beside them, by name.
            place: the number of a row in the block to the words that name it, such as "a.jsonl:3".

        Raises:
            DataError: a column that would be lost, or that makes no sense.

        >>> columns = {"attention_mask": Column(np.array([1, 1, 2, 0]), np.array([4]))}
        >>> found = RowReader().documents(Column(np.array([5, 6, 7, 9]), np.array([4])), columns, str)
        >>> found.tokens, found.lengths, found.padding, found.divided
        (array([5, 6, 7]), array([2, 1]), 1, 1)
        """
        if not columns:
            return ReadDocuments(ids.values, ids.lengths)
        block = _Block(ids, columns, place)
        kept = np.ones(len(ids.values), np.bool_)
        for name in block.of(token_columns.PADDING):
            kept &= self._not_padding(f"{name} 0 is padding", block.counted(name) == 0)
        masked = bool(block.of(token_columns.PADDING))
        for name in block.of(token_columns.NUMBERS):
            numbers = block.numbers(name)
            kept &= self._not_padding(f"{name} below 0 is padding", numbers < 0)
            if not masked:  # else the mask of padding tells what is padding, and 0 is a document
                kept &= self._without_padding(name, block, numbers, kept)
        keys = np.zeros(len(kept), np.int64)
        for name in block.of((*token_columns.PADDING, *token_columns.NUMBERS)):
            numbers = block.numbers(name)
            self._require_ended(name, block, numbers, kept)
            keys = _paired(keys, numbers)
        block.require_constant(token_columns.UNCLEAR)
        begins = block.begins(keys, kept)
        lengths = np.diff(np.append(np.flatnonzero(begins[kept]), np.count_nonzero(kept)))
        block.require_places(begins, kept)
        block.require_known()
        loss = block.trained(kept)
        rows = np.bincount(block.row[begins], minlength=len(ids.lengths))
        empty = np.zeros(int(np.count_nonzero(rows == 0)), np.int64)
        return ReadDocuments(
            tokens=ids.values[kept],
            lengths=np.concatenate([lengths, empty]),
            loss=loss,
            padding=int(np.count_nonzero(~kept)),
            divided=int(np.count_nonzero(rows > 1)),
            read_as=list(self._read_as),
        )

    def _not_padding(self, what: str, padding: Bools) -> Bools:
        """Return which tokens are not padding; keep what says so, in words, if any are."""
        if padding.any():
            self._read_as[what] = None
        return ~padding

    def _without_padding(self, name: str, block: _Block, numbers: I64, kept: Bools) -> Bools:
        """Return which tokens are not padding by a column that numbers documents.

        Some tools count documents from 0, others from 1 and write 0 for the padding after them. That is a guess: the
        first zero of the file that tells decides, and is told, and a later one that contradicts it is refused.
        """
        zeros = kept & (numbers == 0)
        if not zeros.any():
            return np.ones(len(kept), np.bool_)
        for row in np.unique(block.row[zeros]).tolist():
            here = block.inside(row)
            # Zeros that begin a row are its first document; behind larger numbers they are padding, if the ids agree.
            meaning = _meaning_of_zero(numbers[here][kept[here]], block.ids.values[here][kept[here]])
            # In every row of the file 0 means what it meant in the first row that had one.
            if meaning is None or self._zero.setdefault(name, meaning) != meaning:
                what = f"column {name} has the number 0, which may be a document or padding"
                raise _loses(what, "give an attention_mask, which is 0 for padding", block.place(row))
        if self._zero[name] == "padding":
            return self._not_padding(f"{name} 0 is padding, since it follows the documents of a row", zeros)
        self._read_as[f"{name} 0 is a document, since it begins a row"] = None
        return np.ones(len(kept), np.bool_)

    def _require_ended(self, name: str, block: _Block, numbers: I64, kept: Bools) -> None:
        """Refuse numbers that go on from one row to the next: a document is cut there.

        The numbers 0 and 1 are not refused: if rows count their own documents, they come in every row.
        """
        rows, begins = np.unique(block.row[kept], return_index=True)
        if not len(rows):
            return
        firsts = numbers[kept][begins]
        lasts = numbers[kept][np.append(begins[1:], np.count_nonzero(kept)) - 1]
        before = np.append(self._last.get(name, 0), lasts[:-1])
        going_on = np.flatnonzero((firsts == before) & (firsts > 1))
        self._last[name] = int(lasts[-1])
        if len(going_on):
            at = int(going_on[0])
            what = f"column {name}: document {firsts[at]} goes on from the row before"
            raise rows_not_documents(what, block.place(int(rows[at])))


class _Block:
    """Some rows: their ids, and the columns beside them."""

    def __init__(self, ids: Column, columns: Mapping[str, Column], place: Callable[[int], str]) -> None:
        self.ids = ids
        self.columns = columns
        self.place = place
        self.offsets = offsets_of(ids.lengths)
        self.row = np.repeat(np.arange(len(ids.lengths)), ids.lengths)
        """The number of the row that each token is in: (tokens)."""
        for name in self.of(token_columns.KNOWN):
            if name not in token_columns.SIZES + token_columns.BOUNDS:
                self._require_covered(name)

    def of(self, names: tuple[str, ...]) -> list[str]:
        """List the columns of one kind that there are."""
        return [name for name in self.columns if name in names]

    def inside(self, row: int) -> slice:
        """Return where the tokens of a row are."""
        return slice(int(self.offsets[row]), int(self.offsets[row + 1]))

    def _require_covered(self, name: str) -> None:
        values, lengths = self.columns[name]
        wrong = np.flatnonzero(lengths != self.ids.lengths)
        if len(wrong):
            row = int(wrong[0])
            ids = plural(int(self.ids.lengths[row]), "id")
            what = f"column {name} has {plural(int(lengths[row]), 'value')} for {ids}"
            raise bad_mask(what, self.place(row))
        if values.dtype.kind == "f" and not np.isfinite(values).all():
            row = int(self.row[np.flatnonzero(~np.isfinite(values))[0]])
            raise bad_mask(f"column {name} has a value that is no number", self.place(row))

    def numbers(self, name: str) -> I64:
        """Return a column of whole numbers: (tokens)."""
        values = self.columns[name].values
        with np.errstate(invalid="ignore"):  # what has no whole number is refused below
            numbers = values.astype(np.int64)
        self._require(numbers == values, name, "has the value {} where whole numbers are needed")
        return numbers

    def counted(self, name: str) -> I64:
        """Return a column of whole numbers from 0: (tokens)."""
        numbers = self.numbers(name)
        self._require(numbers >= 0, name, "has the value {}, which is below 0")
        return numbers

    def _require(self, holds: Bools, name: str, what: str) -> None:
        """Raise the error for a column whose values don't fit the ids; `what` has a place for the value."""
        wrong = np.flatnonzero(~holds)
        if not len(wrong):
            return
        at, row = int(wrong[0]), int(self.row[wrong[0]])
        place = at - int(self.offsets[row])
        fault = what.format(self.columns[name].values[at])
        remedy = "mend the column, or give --ids-only=True"
        what = f"{name} {fault} (token {place}, whose id is {self.ids.values[at]})"
        raise DataError("bad-mask", what, remedy=remedy, where=self.place(row))

    def begins(self, keys: I64, kept: Bools) -> Bools:
        """Return whether a document begins at each token: where its key differs from the last one, or after padding."""
        before = np.append(False, kept[:-1])
        same = np.append(False, (keys[1:] == keys[:-1]) & (self.row[1:] == self.row[:-1]))
        begins: Bools = kept & ~(before & same)
        places = np.flatnonzero(begins)
        runs = _paired(self.row[places], keys[places])
        _, first, counts = np.unique(runs, return_index=True, return_counts=True)
        if (counts > 1).any():
            row = int(self.row[places[first[counts > 1]]].min())
            names = " and ".join(self.of((*token_columns.PADDING, *token_columns.NUMBERS)))
            what = f"{names}: a document goes on after padding or after another one"
            raise _loses(what, "make the documents contiguous", self.place(row))
        return begins

    def require_constant(self, names: tuple[str, ...]) -> None:
        """Refuse columns that differ within a row, where it is not clear what they say."""
        for name in self.of(names):
            values = self.columns[name].values
            differs = (values[1:] != values[:-1]) & (self.row[1:] == self.row[:-1])
            if differs.any():
                row = int(self.row[np.flatnonzero(differs)[0]])
                what = f"column {name} marks padding, but not whether as 0 or as 1"
                raise _loses(what, "give an attention_mask, which is 0 for padding", self.place(row))

    def require_places(self, begins: Bools, kept: Bools) -> None:
        """Refuse columns that divide rows otherwise than at `begins`: the documents there may be cut."""
        starts = np.flatnonzero(begins)
        # The places of tokens in their documents. The places of padding do not matter, even before the first document.
        places = np.cumsum(kept) - 1
        document = np.maximum(np.cumsum(begins) - 1, 0)
        if len(starts):
            places -= places[starts][document]
        for name in self.of(token_columns.POSITIONS):
            numbers = self.numbers(name)
            wrong = kept & (numbers != places)
            if wrong.any():
                raise self._packed(name, int(self.row[np.flatnonzero(wrong)[0]]))
        for name in self.of((*token_columns.SIZES, *token_columns.BOUNDS)):
            self._require_bounds(name, starts)

    def _require_bounds(self, name: str, starts: I64) -> None:
        values, lengths = self.columns[name]
        ends = offsets_of(lengths).tolist()
        first = np.searchsorted(starts, self.offsets).tolist()
        for row, size in enumerate(self.ids.lengths.tolist()):
            begins = (starts[first[row] : first[row + 1]] - self.offsets[row]).tolist()
            given = values[ends[row] : ends[row + 1]].tolist()
            sizes = np.diff([*begins, size]).tolist()
            fits = given == sizes if name in token_columns.SIZES else given in (begins, [*begins, size])
            if not fits:
                raise self._packed(name, row)

    def _packed(self, name: str, row: int) -> DataError:
        return rows_not_documents(f"column {name} says that these are packed rows", self.place(row))

    def require_known(self) -> None:
        """Refuse columns of unknown names with a number for every token: they may mark tokens in an unknown way."""
        for name, (_, lengths) in self.columns.items():
            if name not in token_columns.KNOWN and np.array_equal(lengths, self.ids.lengths) and (lengths > 1).any():
                what = f"column {name} has a number for each token, and nothing says what it means"
                raise _loses(what, "leave the column out", self.place(0))

    def trained(self, kept: Bools) -> npt.NDArray[np.uint8] | None:
        """Return the loss of the kept tokens, 1 for tokens that train, 0 for others; None if no column has it.

        A token trains where all columns say so.
        """
        names = self.of((*token_columns.LABELS, *token_columns.WEIGHTS))
        if not names:
            return None
        trains = np.ones(len(kept), np.bool_)
        for name in names:
            values = self.columns[name].values
            if name in token_columns.LABELS:
                here = values != IGNORED
                fault = "has the label {}, another token than the id, as if labels were shifted"
                self._require(~kept | ~here | (values == self.ids.values), name, fault)
            else:
                here = values == 1
                self._require(~kept | here | (values == 0), name, "has the value {}, neither 0 nor 1")
            trains &= here
        return trains[kept].view(np.uint8)


def _meaning_of_zero(numbers: I64, ids: npt.NDArray[Any]) -> str | None:
    """Return what the number 0 stands for in a row, "document" or "padding"; None if that is not clear.

    Args:
        numbers: (tokens) of the documents that the row's tokens are of; at least one of them is 0.
        ids: (tokens) of the same tokens.

    >>> _meaning_of_zero(np.array([0, 0, 1]), np.array([5, 6, 7])), _meaning_of_zero(np.array([1, 0]), np.array([5, 9]))
    ('document', 'padding')
    """
    of_zero = ids[numbers == 0]
    several = len(of_zero) > 1
    # Padding is one token over and over, and a document hardly ever is. Of a single token that says nothing.
    repeats = several and bool((of_zero == of_zero[0]).all())
    if numbers[0] == 0:
        return None if repeats else "document"
    follows_documents = numbers[-1] == 0
    if not follows_documents or (several and not repeats):
        return None
    return "padding"


def _paired(keys: I64, numbers: I64) -> I64:
    """Return a number for each different pair of a key and a number.

    >>> _paired(np.array([1, 1, 2]), np.array([7, 8, 8]))
    array([0, 1, 3])
    """
    first, second = (np.unique(each, return_inverse=True)[1].astype(np.int64) for each in (keys, numbers))
    paired: I64 = first * (int(second.max(initial=0)) + 1) + second
    return paired


def bad_mask(what: str, where: str) -> DataError:
    """Return the error for a column that does not cover all tokens."""
    remedy = "give every record the same columns, as long as its ids; or give --ids-only=True"
    return DataError("bad-mask", what, remedy=remedy, where=where)


def rows_not_documents(what: str, where: str) -> DataError:
    """Return the error for packed rows where whole documents are wanted."""
    remedy = "import the documents that were packed, or give --ids-only=True to take each row for one document"
    return DataError("import-loses", f"{what}, not whole documents", remedy=remedy, where=where)


def _loses(what: str, remedy: str, where: str) -> DataError:
    remedy = f"{remedy}, or give --ids-only=True to take the ids alone"
    return DataError("import-loses", what, remedy=remedy, where=where)
