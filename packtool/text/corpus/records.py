"""The types that all readers share: files and spans of them, fields to read, batches of documents and rejects."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, Protocol

import msgspec

from packtool.text.conversations.contract import is_label
from packtool.text.conversations.layouts import MARKS, MEDIA, NAMES, RecordLayout, beside
from packtool.text.faults import Fault
from packtool.text.paths import top_of

RECORD_BYTES = 1 << 26
"""Default limit of a record's size, uncompressed: what is larger is hardly a document."""
EXCERPT = 1 << 16
"""Bytes that are kept of a record that can't be used."""


class Readable(Protocol):
    """The methods of a stream that readers need; readers of a part of a file also need `seek`."""

    def read(self, size: int, /) -> bytes: ...

    def close(self) -> None: ...


def shown(path: str) -> str:
    """Write a path as messages and manifests have it: the same in every locale, and text even if its bytes are not
    UTF-8.

    >>> shown("caf\\udce9.txt")
    'caf\\\\xe9.txt'
    """
    return os.fsencode(path).decode("utf-8", "backslashreplace")


class CorpusFile(msgspec.Struct, frozen=True):
    """One file of the corpus."""

    name: str  # name in manifest and messages: relative to the argument that led to it
    location: str  # local path or URL
    bytes: int  # size as it lies there
    format: str  # one of those that `--format` takes
    compression: str = ""  # gzip, zstd, bz2, xz, or ""
    modified: int = 0  # modification time in ns
    inode: int = 0  # inode of a local file, else 0; with size and time it tells a file that changed
    fault: Fault | None = None  # why it can't be read; None if nothing is known against it
    separator: str = ""  # text between the documents of a text file; "" where it is one document
    copied: bool = False  # it is a copy of an input that can be read only once

    @property
    def shown(self) -> str:
        """What messages call it."""
        if self.copied:
            return self.name
        return shown(self.location)


class Span(msgspec.Struct, frozen=True):
    """A part of one file that one task reads.

    Attributes:
        file: number of the file in the corpus.
        start, stop: bytes of an uncompressed file (records that begin there belong to the span), or row groups of a
            Parquet file. `stop` is -1 for "to the end".
    """

    file: int
    start: int = 0
    stop: int = -1

    @property
    def whole(self) -> bool:
        """Whether it is the whole file."""
        return self.start == 0 and self.stop == -1


Block = tuple[Span, ...]
"""The input of one task: a part of a big file, or several small files together."""


class Fields(msgspec.Struct, frozen=True):
    """The fields of a record that are read: paths, as `value_at` follows them.

    Attributes:
        text: what is tokenized, where that is a text or ids. Several fields have commas between, and are joined with a
            blank line; a record that has one of the whole name has that.
        ids: it holds a list of token ids.
        columns: scalars that are kept.
        required: the one of them that no record may lack; "" if records may lack any.
        layout: of conversations; None where documents are texts or ids.
        by_name: no option names a document, so each record tells what it holds by the names of its fields.
        beside: fields that may say more of the ids; a record in which one does can't be used.
        first: the layout of the first record, if that is a conversation.
        known: fields of the first record that hold something: others that a conversation does not read are counted.
    """

    text: str = "text"
    ids: bool = False
    columns: tuple[str, ...] = ()
    required: str = ""
    layout: RecordLayout | None = None
    by_name: bool = False
    beside: frozenset[str] = frozenset()
    first: RecordLayout | None = None
    known: frozenset[str] = frozenset()

    @property
    def chat(self) -> bool:
        """Whether documents are conversations."""
        return self.layout is not None

    @property
    def document(self) -> tuple[str, ...]:
        """The paths that make a document, if a record has them."""
        if self.by_name:
            return (*NAMES, *(self.layout.paths if self.layout is not None else ()))
        if self.layout is not None:
            return (*self.layout.paths, *beside(self.layout))
        return (self.text, *self.texts, *sorted(self.beside))

    def told_by(self, names: Iterable[str], *, known: bool = False) -> list[str]:
        """List the fields, of these and beside those of the document, of which only counts whether they hold something.

        These are labels; marks and media, which refuse a conversation that is known by its name; and what nothing
        reads, and the first record lacks, unless what it has is asked for, too.
        """
        if self.layout is None:
            return []
        read = set(map(top_of, self.document))
        told = []
        for name in names:
            refuses = is_label(name) or (self.by_name and name in (*MARKS, *MEDIA))
            if name not in read and (known or refuses or name not in self.known):
                told.append(name)
        return told

    @property
    def optional(self) -> tuple[str, ...]:
        """What options name that some records may lack, but not all."""
        return self.texts if self.layout is None else self.layout.optional

    @property
    def texts(self) -> tuple[str, ...]:
        """The fields whose texts are joined; no fields if one field is the document."""
        several = "," in self.text and not self.chat and not self.ids
        return tuple(self.text.split(",")) if several else ()

    @property
    def plain(self) -> bool:
        """Whether one field is the document as it is."""
        return not self.chat and not self.texts and not self.beside

    def lacking(self, names: Collection[str]) -> str:
        """Say what records with these fields lack to have a document; "" if nothing.

        >>> Fields("body").lacking(["text"])
        "no text field 'body'"
        """
        if self.layout is not None:
            return self.layout.lacking(names)
        if self.text in names or not set(names).isdisjoint(self.texts):
            return ""
        return f"no field of ids {self.text!r}" if self.ids else f"no text field {self.text!r}"


class Literal(str):
    """A number as JSON has it."""


def scalar(value: Any, name: str) -> str | None:
    """Return a scalar as it is stored: text unchanged, other values as JSON writes them.

    Raises:
        Fault: it is not a scalar.

    >>> scalar("a", "x"), scalar(3, "x"), scalar(0.5, "x"), scalar(True, "x"), scalar(None, "x")
    ('a', '3', '0.5', 'true', None)
    """
    if value is None:
        return None
    if isinstance(value, Literal):
        return str(int(value)) if len(value) < 1000 else str(value)
    if isinstance(value, str):
        return value
    if isinstance(value, bool | int | float):
        return json.dumps(value)
    if isinstance(value, list | tuple | dict):
        kind = "an object" if isinstance(value, dict) else "an array"
        raise Fault("bad-field", f"field {name!r} is {kind}, not a scalar")
    return str(value)


def text_in(data: bytes | memoryview, where: str = "") -> str:
    """Return bytes of UTF-8 as text.

    Args:
        where: they stand, before a colon and a space, for messages.

    Raises:
        Fault: they are something else.
    """
    try:
        return str(data, "utf-8")
    except UnicodeDecodeError:
        raise Fault("invalid-utf8", f"{where}not valid UTF-8") from None


def in_words(error: Exception) -> str:
    """Return the first line of a library's error message, or the error's name if it has none.

    >>> in_words(OSError("Truncated file.\\nAt byte 7.")), in_words(EOFError())
    ('Truncated file', 'EOFError')
    """
    return (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")


def first_object(texts: Iterable[bytes]) -> dict[str, Any] | None:
    """Return the first of these texts that is an object of JSON; None if none is."""
    for text in texts:
        try:
            record = json.loads(text)
        except (ValueError, RecursionError):
            continue
        if record and isinstance(record, dict):
            return record
    return None


class Reject(msgspec.Struct, frozen=True):
    """A record that can't be used."""

    record: int  # line or row, counted from 1 within its batch; 0 when the rest of the file is meant
    fault: Fault  # what is wrong with it
    raw: bytes | None = None  # the first EXCERPT of its bytes, where there are any
    size: int = 0  # bytes of the record, where `raw` has not all of them
    lost: int = 0  # bytes of the file that are lost with it, at its end


def require_size(size: int, limit: int) -> None:
    """Refuse a record of more bytes than the limit.

    Raises:
        Fault: `size` is above it.
    """
    if size > limit:
        raise too_large(size, limit)


def too_large(size: int, limit: int) -> Fault:
    """Return the fault of a record of `size` bytes.

    >>> too_large(3_000_000, 1_000_000).what
    'a record of 3,000,000 bytes, above the limit of 1,000,000'
    """
    return Fault("record-too-large", f"a record of {size:,} bytes, above the limit of {limit:,}")


MadeDocument = tuple[Any, list[str | None]]
"""The document of a record, and its scalars."""


@dataclass
class RecordBatch:
    """Consecutive records.

    Attributes:
        fields: that are read of them.
        documents: usable texts, in order; lists of ids where these were asked for, and each `Conversation` that is
            still to be rendered.
        numbers: record of each of them, counted from 1 within the batch.
        columns: of each scalar that is kept, its value for each document.
        rejects: unusable records, in order.
        records: lines (blank ones too), rows or files that were read.
        bytes: that were read for it, uncompressed.
        progress: the same as bytes of the file as it lies there.
        rendered: the document of each text that was rendered from a conversation.
        held: what that conversation holds.
        missing: optional fields that no record had so far.
    """

    fields: Fields
    documents: list[Any] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    columns: list[list[str | None]] = field(init=False)
    rejects: list[Reject] = field(default_factory=list)
    records: int = 0
    bytes: int = 0
    progress: int = 0
    rendered: list[Any] = field(default_factory=list)
    held: list[Any] = field(default_factory=list)
    missing: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.columns = [[] for _ in self.fields.columns]

    def take(self, documents: list[Any], columns: list[list[str | None]]) -> None:
        """Take all records of the batch at once, each of which has a document: several times as fast as one by one."""
        self.documents, self.columns = documents, columns
        self.numbers = list(range(1, len(documents) + 1))

    def add(self, number: int, make: Callable[[Any], MadeDocument | None], raw: Any) -> None:
        """Make the document of a record; what is wrong with it makes it a reject.

        Args:
            number: of the record, counted from 1 within the batch.
            make: returns its document and scalars, or None where it has none; raises a `Fault`. It must not read: a
                fault of the stream is about all that follows, and would become one of this record.
            raw: what it is made of.
        """
        try:
            made = make(raw)
        except Fault as fault:
            self.reject(number, fault, raw)
            return
        if made is None:
            return
        document, values = made
        self.documents.append(document)
        self.numbers.append(number)
        for column, value in zip(self.columns, values, strict=True):
            column.append(value)

    def reject(self, number: int, fault: Fault, raw: Any = None, *, size: int = 0, lost: int = 0) -> None:
        """Reject a record, with an excerpt of its bytes.

        Args:
            number: of the record, counted from 1 within the batch; 0 for the rest of the file.
            raw: its bytes, or the first of `size`; what is not bytes is not kept.
            size: where `raw` is an excerpt already.
            lost: bytes of the file that are lost with it.
        """
        excerpt = None
        if isinstance(raw, bytes | bytearray | memoryview):
            size = size or len(raw)
            excerpt = bytes(raw[:EXCERPT])
        self.rejects.append(Reject(number, fault, excerpt, size if size > EXCERPT else 0, lost))

    def change(self, change: Callable[[Any], Any]) -> None:
        """Change each document; one with which something is wrong makes its record a reject.

        Args:
            change: returns a document in place of one, or raises a `Fault`.
        """
        kept = []
        for place, number in enumerate(self.numbers):
            try:
                self.documents[place] = change(self.documents[place])
                kept.append(place)
            except Fault as fault:
                self.reject(number, fault)
        self.keep(kept)
        self.rejects.sort(key=attrgetter("record"))

    def keep(self, kept: Sequence[int]) -> None:
        """Leave out all documents but these."""
        self.documents = [self.documents[n] for n in kept]
        if self.rendered:
            self.rendered = [self.rendered[n] for n in kept]
            self.held = [self.held[n] for n in kept]
        self.numbers = [self.numbers[n] for n in kept]
        for number, values in enumerate(self.columns):
            self.columns[number] = [values[n] for n in kept]
