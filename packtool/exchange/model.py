"""The types that all formats share: sequences of tokens, what is known of them, and what a format can hold.

A *sequence* is a document of a token store, or a row of a packed dataset.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from packtool.errors import DataError
from packtool.formats.names import token_dtype
from packtool.formats.schema import ExportedFile
from packtool.places.place import MappedFile
from packtool.planning.plan import I64, INSERTED_EOS, Segments, offsets_of

READ_TOKENS = 1 << 22
"""Ids that a reader hands out at a time."""
FILE_BYTES = 1 << 26
"""Ids in a file, for formats that read a file as a whole."""


@dataclass(frozen=True)
class SequenceBlock:
    """Some consecutive sequences."""

    tokens: npt.NDArray[Any]  # tokens of all sequences, one after the other
    lengths: I64  # length of each sequence; rows may have several lengths
    segments: Segments | None = None  # segments of rows, by row; None for documents, and if segments are not known
    loss: npt.NDArray[np.uint8] | None = None  # 1 for tokens that train, 0 for others; None if all but padding train


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


def cut(blocks: Iterator[SequenceBlock], itemsize: int) -> Iterator[SequenceBlock]:
    """Cut into runs of consecutive sequences with at most `FILE_BYTES` of ids; a longer sequence stays alone.

    A block is never joined with the next, so the cuts depend on the blocks alone.
    """
    for block in blocks:
        offsets = offsets_of(block.lengths)
        for first, last in groups(offsets, FILE_BYTES // itemsize):
            inside = slice(offsets[first], offsets[last])
            segments = None if block.segments is None else block.segments[first:last]
            loss = None if block.loss is None else block.loss[inside]
            yield SequenceBlock(block.tokens[inside], block.lengths[first:last], segments, loss)


@dataclass(frozen=True)
class Part:
    """The contents of one exported shard."""

    number: int
    sequences: int  # sequences in it
    tokens: int  # tokens in it
    first_sequence: int  # sequences before it
    first_token: int  # tokens before it


@dataclass(frozen=True)
class Holdable:
    """What decides whether a format can hold some contents."""

    vocab_size: int  # every id is below it
    row_lengths: list[int]  # distinct row lengths, ascending; empty for documents, and where they are not known
    multiple: int  # documents begin at multiples of this many tokens in its rows
    masked: int | None  # tokens that do not train, padding apart, or whether there are any; None without a loss


@dataclass(frozen=True)
class Contents(Holdable):
    """Everything to be exported.

    Attributes:
        name: of the directory that is exported.
        kind: kind of its sequences.
        eos_id: id of the token that ends a document.
        bounded: whether the starts and ends of documents are known.
        padding, repeated: number of tokens that are padding, or that an earlier row has already.
        batched: whether its rows come in batches of rows of one length.
        lengths: function from a part to the lengths of its sequences.
        blocks: function from a part to its sequences, in order.
        bounds: function from a part to the lengths of its sequences, and the segments of rows, in order, without
            reading tokens.
        files: function that lists the files that are read.
        columns: names of the kept columns of documents.
    """

    name: str
    kind: Literal["documents", "rows"]
    dtype: np.dtype[Any]
    eos_id: int
    parts: tuple[Part, ...]
    bounded: bool
    padding: int
    repeated: int
    batched: bool
    lengths: Callable[[Part], I64]
    blocks: Callable[[Part], Iterator[SequenceBlock]]
    bounds: Callable[[Part], Iterator[tuple[I64, Segments | None]]]
    files: Callable[[], Iterator[MappedFile]]
    columns: Sequence[str] = ()

    @property
    def sequences(self) -> int:
        return sum(part.sequences for part in self.parts)

    @property
    def tokens(self) -> int:
        return sum(part.tokens for part in self.parts)


@dataclass(frozen=True)
class ReadDocuments:
    """Sequences that a reader yields from a file."""

    tokens: npt.NDArray[Any]  # ids, of any integer type
    lengths: I64 | None  # lengths of the documents in `tokens`; None where only EOS tells
    loss: npt.NDArray[np.uint8] | None = None  # 1 for tokens that train, 0 for others; None if all train
    last: int | None = None  # last token of the whole file, where the format has no boundaries
    padding: int = 0  # tokens that a mask marks as padding; they are not in `tokens`
    divided: int = 0  # rows that were divided into several documents
    read_as: Sequence[str] = ()  # in words, what numbers in columns were taken for


@dataclass(frozen=True)
class ReadOptions:
    """Options of readers."""

    dtype: np.dtype[Any]  # type of the ids, for files that do not say it
    field: str | None = None  # column of ids; None for the usual names
    ids_only: bool = False  # read the ids alone, without columns that describe them
    asked: bool = False  # whether the user gave the type of the ids, so that no warning about it is needed
    tokens: int = READ_TOKENS  # ids of rows to hand out at a time, about


@dataclass(frozen=True)
class Format:
    """One format of another tool.

    Attributes:
        name: as on the command line.
        readers: the tools that read it.
        summary: its contents, in a line.
        files: glob pattern of its files' names, by which `packtool import` finds them in a directory.
        dtypes: the types in which it stores tokens of 2 and of 4 bytes; None for a size that it can't store.
        documents: whether it keeps the ends of the documents of a token store.
        blocks: whether its readers divide each file into rows of their own length, and leave out what fills none.
        boundaries: whether it keeps the starts and ends of documents inside rows.
        multiples: whether it keeps the lengths of documents that have padding between them.
        labels: whether it keeps which tokens are padding.
        loss: whether it keeps which tokens train.
        several_lengths: whether its rows may have several lengths.
        largest_vocab: the largest size of a vocabulary.
        shared: whether all parts fill one file.
        bare: whether its files, or some of them, lack the type of the ids.
        columns: whether its sequences have columns with names.
        companions: function from a file to the files that are read with it; None if files are read alone.
        inside: function from a directory to the files that its index names, or None without an index; None for a format
            without an index.
        part: function of (directory, contents, part) that writes one part; None for a format that is only imported.
        finish: function of (directory, contents, files written by the parts, in order) that writes the files of the
            whole.
        read: function from (file, options) to its contents; None for a format that is only exported.
    """

    name: str
    readers: str
    summary: str
    files: str
    dtypes: Mapping[int, str | None] = field(default_factory=lambda: {2: "<u2", 4: "<u4"})
    documents: bool = False
    blocks: bool = False
    boundaries: bool = False
    multiples: bool = False
    labels: bool = False
    loss: bool = False
    several_lengths: bool = False
    largest_vocab: int = 1 << 32
    shared: bool = False
    bare: bool = False
    columns: bool = False
    companions: Callable[[Path], list[Path]] | None = None
    inside: Callable[[Path], list[Path] | None] | None = None
    part: Callable[[Path, Contents, Part], list[ExportedFile]] | None = None
    finish: Callable[[Path, Contents, list[ExportedFile]], list[ExportedFile]] | None = None
    read: Callable[[Path, ReadOptions], Iterator[ReadDocuments]] | None = None

    def read_with(self, path: Path) -> list[Path]:
        """List a file that is read, and its companions."""
        if not self.companions:
            return [path]
        return [path, *filter(Path.is_file, self.companions(path))]

    def dtype(self, contents: Contents) -> np.dtype[Any]:
        """Return the type that tokens are stored as."""
        return np.dtype(self.dtypes[contents.dtype.itemsize])

    def reject(self, contents: Holdable) -> ExportReject | None:
        """Return why the format can't hold the contents; None where it can."""
        for reject in _REJECTS:
            if not reject.holds(self, contents):
                return reject
        return None

    def lost(self, contents: Contents) -> list[str]:
        """List the parts of the contents that the format does not keep."""
        return [loss.told(contents) for loss in _LOSSES if loss.applies(contents) and not loss.kept(self)]

    @property
    def losses(self) -> list[str]:
        """The parts of packed rows that it never keeps, in one word each; only parts that occur in it."""
        return [loss.word for loss in _LOSSES if loss.word and not loss.kept(self) and loss.comes(self)]


@dataclass(frozen=True)
class ExportReject:
    """A reason why a format can't hold some contents."""

    code: str
    holds: Callable[[Format, Holdable], bool]  # whether the format can
    told: Callable[[Format, Holdable], str]  # why not, in a sentence about the format
    otherwise: str = ""  # what can be done besides choosing another format, or ""


@dataclass(frozen=True)
class _Loss:
    """A part of some contents that a format may not keep."""

    word: str  # word for a table of formats, where packed rows have the part; else ""
    applies: Callable[[Contents], bool]  # whether the contents have it
    kept: Callable[[Format], bool]  # whether the format keeps it
    told: Callable[[Contents], str]  # the part, in words
    comes: Callable[[Format], bool] = lambda _: True  # whether contents with it can be in the format at all


_REJECTS = (
    ExportReject(
        "format-too-small",
        lambda kind, contents: kind.dtypes[token_dtype(contents.vocab_size).itemsize] is not None,
        lambda kind, contents: f"{kind.name} holds ids of 16 bits, but the vocabulary has {contents.vocab_size} tokens",
    ),
    ExportReject(
        "format-too-small",
        lambda kind, contents: contents.vocab_size <= kind.largest_vocab,
        lambda kind, contents: (
            f"{kind.name} holds ids below {kind.largest_vocab}, but the vocabulary has {contents.vocab_size} tokens"
        ),
    ),
    ExportReject(
        "format-too-small",
        lambda kind, contents: kind.several_lengths or len(contents.row_lengths) <= 1,
        lambda kind, contents: (
            f"{kind.name} holds rows of one length, but the dataset has rows of "
            + ", ".join(map(str, contents.row_lengths))
        ),
    ),
    ExportReject(
        "format-too-small",
        lambda kind, contents: kind.multiples or contents.multiple == 1,
        lambda kind, _: f"{kind.name} has no place for padding between documents, which begin at multiples here",
        otherwise="pack without --document-multiple",
    ),
    ExportReject(
        "format-without-loss",
        lambda kind, contents: kind.loss or not contents.masked,
        lambda kind, _: f"{kind.name} can't say which tokens train, and some of them do not",
    ),
)
_LOSSES = (
    _Loss(
        "",
        lambda contents: contents.kind == "documents",
        lambda kind: kind.documents,
        lambda _: "where documents end, except for the EOS after each",
    ),
    _Loss(
        "",
        lambda contents: contents.kind == "documents",
        lambda kind: not kind.blocks,
        lambda _: "the tokens at the end of each file that fill no row of its reader",
    ),
    _Loss(
        "boundaries",
        lambda contents: contents.kind == "rows" and contents.bounded,
        lambda kind: kind.boundaries,
        lambda _: "where documents begin and end in a row",
    ),
    _Loss(
        "padding",
        lambda contents: contents.padding > 0,
        lambda kind: kind.labels,
        lambda contents: f"which tokens are padding ({contents.padding} are)",
    ),
    _Loss(
        "batches",
        lambda contents: contents.batched,
        lambda _: False,
        lambda _: "which rows make a batch",
        comes=lambda kind: kind.several_lengths,
    ),
    _Loss(
        "repeated",
        lambda contents: contents.repeated > 0,
        lambda _: False,
        lambda contents: f"which tokens are repeated ({contents.repeated} are)",
    ),
    _Loss(
        "columns",
        lambda contents: len(contents.columns) > 0,
        lambda _: False,
        lambda contents: f"the columns of documents ({', '.join(contents.columns)})",
    ),
)


def damaged(path: Path, what: str) -> DataError:
    """Return the error for a file that does not conform to its format."""
    return DataError("damaged-input", what, remedy="check the file, or make it again", where=str(path))
