"""Look at the first record of a corpus, to tell texts from conversations."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from itertools import chain, islice
from typing import Any, NamedTuple

from packtool.errors import DataError, UsageError
from packtool.text.conversations.turns import holds_text, holds_turns
from packtool.text.corpus.decompress import open_stream
from packtool.text.corpus.delimited import header_of
from packtool.text.corpus.documents import listed, values_at
from packtool.text.corpus.file_bytes import open_raw
from packtool.text.corpus.json_values import json_values
from packtool.text.corpus.layouts import FieldLayout, UnreadLayout, has_conversation, known_layout
from packtool.text.corpus.records import RECORD_BYTES, CorpusFile, Fields, shown
from packtool.text.corpus.table_examples import UNSEEN, example_of, example_row
from packtool.text.corpus.text import LongLine, line_chunks
from packtool.text.corpus.unread import unread
from packtool.text.corpus.unread_answers import unread_answers
from packtool.text.faults import Fault
from packtool.warnings import warn

_FILES = 10
"""Most files to look at, should the first of them hold no record."""
_NAME_FIELDS = "name the field with --conversations, or the fields with --prompt and --completion"
_LINES = 1000
"""Most lines of a file to look at, should the first of them hold no record."""


class FirstRecord(NamedTuple):
    """What records hold.

    Attributes:
        chats: conversations, not texts.
        layout: of their fields, if prompt and answer are in fields of their own; else None.
        why: they are taken for texts, in words.
        remedy: what makes conversations of them.
        field: that holds the conversation, where it has another name than usual.
    """

    chats: bool
    layout: FieldLayout | None = None
    why: str = "no record is found"
    remedy: str = "check the input"
    field: str = ""


def held_by(files: Sequence[CorpusFile], text: str) -> FirstRecord:
    """Tell by the first record of these files what they hold: a text, if it has the field `text`.

    Raises:
        UsageError: it is a preference pair, or it is not clear which of its fields are meant.
    """
    with_records = [file for file in files if file.format not in ("text", "lines")]
    if files and not with_records:
        return FirstRecord(chats=False, why="the input is plain text", remedy="leave it out")
    readable = [file for file in with_records if file.fault is None]
    for file in readable[:_FILES]:
        record = first_record(file)
        if record is not None:
            return held_by_record(record, text, shown(file.location))
    return FirstRecord(chats=False)


def held_by_record(record: Mapping[str, Any], text: str, where: str) -> FirstRecord:
    """Tell what a record holds.

    Raises:
        UsageError: see `held_by`.
    """
    names = [name for name, value in record.items() if value is not None]
    fields = Fields(text)
    odd = unread(record)
    if values_at(record, fields.document):
        _warn_of_both(record, text, where, odd)
        return FirstRecord(chats=False, why=f"the first record has a field {text!r}", remedy=_NAME_FIELDS)
    if odd is not None:
        raise _refused(odd, where)
    if has_conversation(names):
        return FirstRecord(chats=True)
    layout, unclear = _layout(record)
    if layout is None or not all(holds_text(record[name]) for name in (layout.prompt[0], layout.completion)):
        odd = unread_answers(record)
        if odd is not None:
            raise _refused(odd, where)
    if unclear is not None:
        raise UsageError(unclear.code, unclear.what, remedy=unclear.remedy, where=where)
    talks = [name for name in names if holds_turns(record[name])]
    if layout is None and len(talks) == 1:
        return FirstRecord(chats=True, field=talks[0])
    why, remedy = f"no conversation is known in it; {listed(names)}", _NAME_FIELDS
    if talks:
        remedy = f"give --conversations {talks[0]}"
    return FirstRecord(layout is not None, layout, why, remedy)


def _layout(record: Mapping[str, Any]) -> tuple[FieldLayout | None, UsageError | None]:
    """Return the well-known layout of a record, or why it is not clear; None for both if it has none."""
    names = [name for name, value in record.items() if value is not None]
    texts = [name for name in names if holds_text(record[name])]
    try:
        return known_layout(names, texts=texts), None
    except UsageError as error:
        return None, error


def _refused(odd: UnreadLayout, where: str) -> UsageError:
    what = f"the first record is {odd.what}"
    if odd.pair:
        return UsageError("preference-pairs", what, remedy=odd.remedy, where=where)
    return UsageError("unread-layout", what, remedy=odd.remedy, where=where)


def completed(prompt: Sequence[str], completion: str | None, files: Sequence[CorpusFile]) -> FieldLayout:
    """Return a layout of which prompt or answer is named, the other by its well-known name in the first record.

    Raises:
        UsageError: it is not clear which is meant.
    """
    records = filter(None, map(first_record, files[:_FILES]))
    names = list(next(records, {}))
    found = known_layout(names, prompt=tuple(prompt), completion=completion)
    if found is None:
        what = f"by its well-known names, the other part is not found: in the first record, {listed(names)}"
        remedy = "name both with --prompt and --completion"
        raise UsageError("unclear-fields", what, remedy=remedy, where="--prompt" if prompt else "--completion")
    return found


def first_record(file: CorpusFile) -> Mapping[str, Any] | None:
    """Return the first record of a file, or of a table a record of its columns; None if no record can be read."""
    try:
        with closing(open_raw(file.location)) as raw:
            if file.format in ("parquet", "arrow"):
                return example_row(raw, file.format)
            with closing(open_stream(raw, file.compression)) as stream:
                if file.format in ("csv", "tsv"):
                    return dict.fromkeys(header_of(stream, file.format), UNSEEN)
                texts = json_values(stream) if file.format == "json" else _lines(stream)
                return next(filter(None, map(_parsed, texts)), None)
    except (Fault, DataError, OSError):
        return None  # reading it will tell


def _lines(stream: Any) -> Iterator[bytes]:
    """Yield the first lines of a stream."""
    chunk = next(line_chunks(stream, limit=RECORD_BYTES), b"")
    if not isinstance(chunk, LongLine):
        yield from bytes(chunk).split(b"\n", _LINES)[:_LINES]


def _parsed(text: bytes) -> dict[str, Any] | None:
    try:
        record = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None


def peek(records: Iterable[Any], text: str) -> tuple[FirstRecord, Iterable[Any]]:
    """Tell what the first record that a program gives holds; and return all records, the first included.

    Raises:
        UsageError: see `held_by`.

    >>> peek(iter([{"messages": []}]), "text")[0].chats
    True
    """
    names = getattr(records, "column_names", None)
    if isinstance(names, list):  # a dataset of Hugging Face
        schema = getattr(getattr(records, "features", None), "arrow_schema", None)
        example = dict.fromkeys(names, UNSEEN)
        if schema is not None:
            example = example_of(schema)
        return _held(example, text), records
    if isinstance(records, Mapping):
        return FirstRecord(chats=False), records  # which is refused where it is read
    if isinstance(records, Sequence):
        return _held(records[0] if len(records) else None, text), records
    rest = iter(records)
    first = list(islice(rest, 1))
    return _held(first[0] if first else None, text), chain(first, rest)


def _held(record: Any, text: str) -> FirstRecord:
    return held_by_record(record, text, "inputs") if isinstance(record, Mapping) else FirstRecord(chats=False)


def _answer_to(record: Mapping[str, Any], text: str) -> FieldLayout | None:
    """Return the layout of a text with one answer under a well-known name, such as a summary; None for others."""
    names = [name for name, value in record.items() if isinstance(value, str)]
    if text not in names:
        return None
    try:
        return known_layout(names, prompt=(text,))
    except UsageError:
        return None


def _warn_of_both(record: Mapping[str, Any], text: str, where: str, odd: UnreadLayout | None) -> None:
    """Warn where a record with a text holds a conversation, too, or a part of one, which is not read.

    Args:
        odd: what else is known of its layout.
    """
    if odd is not None:
        what = f"the first record is {odd.what}: each {text!r} is read by itself"
        warn("conversations-left-out", what, remedy=odd.remedy, where=where)
        return
    other, remedy = _beside(record, text)
    if other:
        what = f"the first record has {text!r} and {other!r}: the text is read"
        warn("conversations-left-out", what, remedy=remedy, where=where)


def _beside(record: Mapping[str, Any], text: str) -> tuple[str, str]:
    """Return the field of a conversation, or of a part of one, in a record with a text, and what reads it.

    Returns:
        Its name and the remedy; two empty strings if there is no such field.
    """
    names = [name for name, value in record.items() if value is not None]
    if has_conversation(names):
        usual = [name for name in ("messages", "conversations", "prompt") if name in names]
        return usual[0], "give --conversations auto to read the conversation instead"
    layout, _ = _layout(record)
    if layout is not None:
        return layout.prompt[0], f"give {layout.shown()} to read these instead"
    answered = _answer_to(record, text)
    if answered is not None:
        return answered.completion, f"give {answered.shown()} to read both as a conversation"
    return "", ""
