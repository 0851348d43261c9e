"""The types that all formats share: sequences of tokens, what is known of them, and what a format can hold.

A *sequence* is a document of a token store, or a row of a packed dataset.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from packtool.errors import DataError, UsageError
from packtool.formats.schema import ExportedFile
from packtool.places.place import MappedFile
from packtool.planning.plan import I64, INSERTED_EOS, Segments, offsets_of

FILE_BYTES = 1 << 26
"""Ids in a file, for formats that read a file as a whole."""


@dataclass(frozen=True)
class Block:
    """Some consecutive sequences.

    Attributes:
        tokens: of all of them, one after the other.
        lengths: of each; rows may have several.
        segments: which segment of which document lies where in each row; None for documents, and where it is not known.
        loss: whether each token trains, 1 or 0; None where all do, but padding.
    """

    tokens: npt.NDArray[Any]
    lengths: I64
    segments: Segments | None = None
    loss: npt.NDArray[np.uint8] | None = None


def groups(offsets: I64, tokens: int) -> Iterator[tuple[int, int]]:
    """Group consecutive sequences up to this many tokens; a longer one stays alone. Yield first and one after the last.

    Args:
        offsets: where each sequence begins, and the last ends.

    >>> list(groups(np.array([0, 2, 4, 9, 10]), 4))
    [(0, 2), (2, 3), (3, 4)]
    """
    first = 0
    while first < len(offsets) - 1:
        last = int(np.searchsorted(offsets, offsets[first] + tokens, side="right")) - 1
        last = max(last, first + 1)
        yield first, last
        first = last


def pieces(rows: Segments) -> tuple[I64, I64]:
    """Return the lengths of the pieces that rows are divided into, and how many pieces each row has.

    A piece is a document's part in a row, or padding. An EOS that a strategy inserted belongs to the piece before it.

    >>> rows = Segments(np.array([0, INSERTED_EOS, 1]), np.zeros(3), np.array([4, 1, 3]), np.zeros(3), np.array([0, 3]))
    >>> pieces(rows)
    (array([5, 3]), array([2]))
    """
    begins = rows.document != INSERTED_EOS
    begins[rows.offsets[:-1]] = True
    counts = np.add.reduceat(begins, rows.offsets[:-1], dtype=np.int64)
    return np.add.reduceat(rows.length, np.flatnonzero(begins)), counts


def cut(blocks: Iterator[Block], itemsize: int) -> Iterator[Block]:
    """Cut into runs of consecutive sequences with at most `FILE_BYTES` of ids; a longer sequence stays alone.

    A block is never joined with the next, so the cuts depend on the blocks alone.
    """
    for block in blocks:
        offsets = offsets_of(block.lengths)
        for first, last in groups(offsets, FILE_BYTES // itemsize):
            inside = slice(offsets[first], offsets[last])
            segments = None if block.segments is None else block.segments[first:last]
            loss = None if block.loss is None else block.loss[inside]
            yield Block(block.tokens[inside], block.lengths[first:last], segments, loss)


@dataclass(frozen=True)
class Part:
    """The contents of one exported shard.

    Attributes:
        sequences, tokens: in it.
        first_sequence, first_token: before it.
    """

    number: int
    sequences: int
    tokens: int
    first_sequence: int
    first_token: int


@dataclass(frozen=True)
class Contents:
    """Everything to be exported.

    Attributes:
        name: of the directory it comes from.
        kind: what its sequences are.
        vocab_size: every id is below it.
        eos_id: what ends a document.
        row_lengths: the different lengths of its rows, ascending; none for documents.
        bounded: it is known where documents begin and end.
        padding, repeated: tokens that are padding, or that an earlier row has already.
        batched: its rows come in batches of one length each.
        multiple: documents begin at multiples of this many tokens in its rows.
        lengths: (part) to the length of each of its sequences.
        blocks: (part) to its sequences, in order.
        files: that they are read from.
        masked: tokens that do not train, padding apart; None where it is not said which do.
    """

    name: str
    kind: Literal["documents", "rows"]
    dtype: np.dtype[Any]
    vocab_size: int
    eos_id: int
    row_lengths: list[int]
    parts: tuple[Part, ...]
    bounded: bool
    padding: int
    repeated: int
    batched: bool
    lengths: Callable[[Part], I64]
    blocks: Callable[[Part], Iterator[Block]]
    files: Callable[[], Iterator[MappedFile]]
    masked: int | None = None
    multiple: int = 1

    @property
    def sequences(self) -> int:
        return sum(part.sequences for part in self.parts)

    @property
    def tokens(self) -> int:
        return sum(part.tokens for part in self.parts)


@dataclass(frozen=True)
class Found:
    """Sequences that a reader yields from a file.

    Attributes:
        tokens: ids, of any integer type.
        lengths: of the documents in `tokens`; None where the format has no boundaries, and only EOS tells.
        loss: whether each token trains, 1 or 0; None where all do.
    """

    tokens: npt.NDArray[Any]
    lengths: I64 | None
    loss: npt.NDArray[np.uint8] | None = None


@dataclass(frozen=True)
class ReadOptions:
    """Options of readers.

    Attributes:
        dtype: of the ids, for files that do not say it.
        field: the column of the ids; None for the usual names.
        ids_only: leave out what says which tokens train, or where documents lie in rows, instead of refusing it.
    """

    dtype: np.dtype[Any]
    field: str | None = None
    ids_only: bool = False


@dataclass(frozen=True)
class Format:
    """One format of another tool.

    Attributes:
        name: as on the command line.
        summary: whose format it is, in a line.
        files: what its files are called, as a glob pattern; how `packtool import` finds them in a directory.
        dtypes: the type it stores tokens of 2 and of 4 bytes as; None where it can't.
        documents: it keeps where the documents of a token store end.
        boundaries: it keeps where documents begin and end inside rows.
        multiples: it keeps how long documents are that have padding between them.
        labels: it keeps which tokens are padding.
        loss: it keeps which tokens train.
        several_lengths: its rows may have several lengths.
        shared: all parts fill one file.
        companions: (file) to the files that are read with it; None where there are none.
        part: (directory, contents, part) writes one part; None for what can only be imported.
        finish: (directory, contents, written by the parts, in order) writes what stands for the whole.
        read: (file, options) to what is in it; None for what can only be exported.
        says_loss: (file, options) to whether it says which tokens train; None where files never do.
    """

    name: str
    summary: str
    files: str
    dtypes: Mapping[int, str | None] = field(default_factory=lambda: {2: "<u2", 4: "<u4"})
    documents: bool = False
    boundaries: bool = False
    multiples: bool = False
    labels: bool = False
    loss: bool = False
    several_lengths: bool = False
    shared: bool = False
    companions: Callable[[Path], list[Path]] | None = None
    part: Callable[[Path, Contents, Part], list[ExportedFile]] | None = None
    finish: Callable[[Path, Contents, list[ExportedFile]], list[ExportedFile]] | None = None
    read: Callable[[Path, ReadOptions], Iterator[Found]] | None = None
    says_loss: Callable[[Path, ReadOptions], bool] | None = None

    def read_with(self, path: Path) -> list[Path]:
        """List a file that is read, and its companions."""
        return [path, *(other for other in (self.companions(path) if self.companions else []) if other.is_file())]

    def dtype(self, contents: Contents) -> np.dtype[Any]:
        """Return the type that tokens are stored as."""
        return np.dtype(self.dtypes[contents.dtype.itemsize])

    def check(self, contents: Contents) -> None:
        """Check that the format can hold the contents.

        Raises:
            UsageError: it can't, and what can.
        """
        if self.dtypes[contents.dtype.itemsize] is None:
            what = f"{self.name} holds ids of 16 bits, but the vocabulary has {contents.vocab_size} tokens"
        elif len(contents.row_lengths) > 1 and not self.several_lengths:
            lengths = ", ".join(map(str, contents.row_lengths))
            what = f"{self.name} holds rows of one length, but the dataset has rows of {lengths}"
        elif contents.multiple > 1 and not self.multiples:
            what = f"{self.name} has no place for padding between documents, which begin at multiples here"
            remedy = "choose megatron-bridge, or pack without --document-multiple"
            raise UsageError("format-too-small", what, remedy=remedy, where="--format")
        elif contents.masked and not self.loss:
            what = f"{self.name} can't say which tokens train, and {contents.masked:,} of them do not"
            remedy = "choose one that can: arrow, datatrove, megatron-bridge or parquet"
            raise UsageError("format-without-loss", what, remedy=remedy, where="--format")
        else:
            return
        raise UsageError("format-too-small", what, remedy="choose another format", where="--format")

    def lost(self, contents: Contents) -> list[str]:
        """List the parts of the contents that the format does not keep."""
        lost = []
        if contents.kind == "documents" and not self.documents:
            lost.append("where documents end, except for the EOS after each")
        if contents.kind == "rows" and contents.bounded and not self.boundaries:
            lost.append("where documents begin and end in a row")
        if contents.padding and not self.labels:
            lost.append(f"which tokens are padding ({contents.padding} are)")
        if contents.repeated:
            lost.append(f"which tokens are repeated ({contents.repeated} are)")
        if contents.batched:
            lost.append("which rows make a batch")
        return lost


def damaged(path: Path, what: str) -> DataError:
    """Return the error for a file that is not what its format says."""
    return DataError("damaged-input", what, remedy="check the file, or make it again", where=str(path))
