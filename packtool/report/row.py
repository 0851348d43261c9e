"""One decoded row of a packed dataset, or document of a token store, as `show` returns it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from packtool.support.sizes import plural


@dataclass(frozen=True)
class Run:
    """Consecutive tokens that all train, or all do not.

    Attributes:
        trained: which of the two.
        tokens: their ids.
        text: decoded; None without a tokenizer.
    """

    trained: bool
    tokens: list[int]
    text: str | None


@dataclass(frozen=True)
class RowPart:
    """Consecutive tokens of a text that was rearranged to fill in the middle.

    Attributes:
        role: ``prefix``, ``suffix``, ``middle``, ``sentinel``, or ``text`` for all else.
        tokens: their ids.
        text: decoded; None without a tokenizer.
    """

    role: str
    tokens: list[int]
    text: str | None


@dataclass(frozen=True)
class RowSegment:
    """A segment of a row.

    Attributes:
        kind: ``document``, ``eos`` (one that the strategy inserted), ``padding``, or ``unknown`` without segments.
        tokens: its ids.
        text: the tokens decoded; None without a tokenizer.
        repeated: how many leading tokens an earlier row already has.
        repeated_text: the repeated tokens decoded; `text` continues after them.
        document: its number in the dataset; None if it is unknown. So is None in what follows.
        source: number of the input store it came from.
        number: its number in that store.
        start: first token of the segment, counted from the document's first.
        document_length: tokens of the document, EOS included.
        origin: input file and line of the document, where the stores were given or found.
        id: the document's, where the stores were given or found, and have ids.
        runs: its tokens behind the repeated ones, divided by whether they train; no runs if all tokens train.
        parts: the same tokens, divided by prefix, suffix and middle; no parts if no sentinel is among its tokens.
        columns: what the columns that were kept say of the document, by name; None where one says nothing.
    """

    kind: str
    tokens: list[int]
    text: str | None
    repeated: int = 0
    repeated_text: str | None = None
    document: int | None = None
    source: int | None = None
    number: int | None = None
    start: int | None = None
    document_length: int | None = None
    origin: str | None = None
    id: str | None = None
    runs: list[Run] = field(default_factory=list)
    parts: list[RowPart] = field(default_factory=list)
    columns: dict[str, str | float | None] = field(default_factory=dict)


@dataclass(frozen=True)
class Row:
    """One row; or one document of a token store, as the only segment of a row.

    Attributes:
        path: the dataset or store.
        row: its number in the bucket; of the document, in the store.
        rows: in the bucket; documents in the store.
        sequence_length: its tokens.
        segments: in order; those of the first 1,048,576 tokens, where it has more.
        missing_stores: names of the packed stores; with them, files and lines would be known.
        kind: ``row`` or ``document``.
        others: numbers of the other documents that were asked for: they have the same id, or came from the same line.
        left_out: tokens at its end that are in no segment here; 0 where all are shown.
    """

    path: Path | str
    row: int
    rows: int
    sequence_length: int
    segments: list[RowSegment]
    missing_stores: list[str] = field(default_factory=list)
    kind: Literal["row", "document"] = "row"
    others: list[int] = field(default_factory=list)
    left_out: int = 0

    def __repr__(self) -> str:
        size = f"{plural(self.sequence_length, 'token')} in {plural(len(self.segments), 'segment')}"
        return f"<Row: {self.path}, {self.kind} {self.row:,} of {self.rows:,}, {size}>"
