"""Look at the first record of a corpus, to tell texts from conversations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from itertools import chain
from typing import Any

from packtool.errors import DataError
from packtool.text.corpus.read import SpanReader
from packtool.text.corpus.records import CONVERSATION, CorpusFile, Fields, RecordBatch, Span, shown
from packtool.warnings import warn

_FILES = 10
"""Most files to look at, should the first of them hold no record."""


def begins_with_conversation(files: Sequence[CorpusFile], text: str) -> bool:
    """Return whether the first record of these files has a conversation, and no field `text`."""
    for file in [file for file in files if file.format in ("jsonl", "parquet")][:_FILES]:
        first = _first(file, Fields(text))
        if first is not None:
            if not first.documents and first.rejects[0].code != "missing-text":
                return False
            batch = _first(file, Fields("", chat=True))
            if batch is not None and batch.rejects and batch.rejects[0].code != "missing-text":
                return not first.documents  # reading it will tell
            conversation = batch.documents[0] if batch is not None and batch.documents else {}
            if first.documents:
                _warn_of_both(conversation, text, shown(file.location))
            return bool(conversation) and not first.documents
    return False


def _first(file: CorpusFile, fields: Fields) -> RecordBatch | None:
    """Return the first batch with anything in it: of lines, the first line alone."""
    try:
        batches: Any = iter(SpanReader(file, Span(0, 0, 1), fields))
        with closing(batches):
            return next((batch for batch in batches if batch.documents or batch.rejects), None)
    except DataError:  # it changed, and will be reported where it is read
        return None


def peek_for_conversation(records: Iterable[Any], text: str) -> tuple[bool, Iterable[Any]]:
    """Return whether the first record that a program gives has a conversation; and all records, the first included.

    >>> peek_for_conversation(iter([{"messages": []}]), "text")[0]
    True
    """
    names = getattr(records, "column_names", None)
    if isinstance(names, list):  # a dataset of Hugging Face
        return _is_conversation(dict.fromkeys(names), text), records
    if isinstance(records, Mapping):
        return False, records  # which is refused where it is read
    if isinstance(records, Sequence):
        return _is_conversation(records[0] if len(records) else None, text), records
    rest = iter(records)
    first = list(next(([record] for record in rest), []))
    return _is_conversation(first[0] if first else None, text), chain(first, rest)


def _is_conversation(record: Any, text: str) -> bool:
    if isinstance(record, Mapping) and text in record:
        _warn_of_both(record, text, "inputs")
    return isinstance(record, Mapping) and text not in record and any(name in record for name in CONVERSATION)


def _warn_of_both(record: Mapping[str, Any], text: str, where: str) -> None:
    """Warn where a record with a text holds messages, too: they are not read."""
    for name in CONVERSATION[:2]:
        if name in record:
            what = f"the first record has {text!r} and {name!r}: the text is read"
            remedy = "give --conversations auto to read the conversation instead"
            warn("conversations-left-out", what, remedy=remedy, where=where)
            return
