"""Say what of the first record is read and what is not, and warn of what is hardly left out on purpose."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

import msgspec

from packtool.formats.fields import REASONING
from packtool.text.conversations.conversation import Conversation
from packtool.text.conversations.layouts import RecordLayout
from packtool.text.conversations.unread import missed
from packtool.text.corpus.documents import fields_there
from packtool.text.corpus.records import Fields
from packtool.text.faults import Fault
from packtool.text.paths import MISSING, beside, steps, value_at, values_at
from packtool.warnings import warn

_SHOWN = 12
"""Most fields that are listed."""


class ReadFields(msgspec.Struct, frozen=True):
    """What of the first record is read.

    >>> ReadFields("question → answer", ("id", "source")).shown()
    'read: question → answer; not read: id, source'
    """

    read: str = ""  # fields that are read, the answer behind an arrow; "" if there are none
    left_out: tuple[str, ...] = ()  # names of the other fields

    def recorded(self) -> dict[str, Any]:
        """Return it as manifests have it."""
        return {"read": self.read, "not_read": list(self.left_out)}

    def shown(self) -> str:
        """Write it as a line; "" if nothing of it is read."""
        if not self.read:
            return ""
        more = ", …" * (len(self.left_out) > _SHOWN)
        others = f"; not read: {', '.join(self.left_out[:_SHOWN])}{more}" if self.left_out else ""
        return f"read: {self.read}{others}"


def read_fields_of(record: Mapping[str, Any], fields: Fields) -> ReadFields:
    """Tell what of a record is read.

    >>> read_fields_of({"text": "words", "title": "a", "score": 7}, Fields()).shown()
    'read: text; not read: title, score'
    """
    sides = [[name for name in (fields.texts or (fields.text,)) if value_at(record, name) is not MISSING]]
    if fields.chat:
        sides = _sides(record, fields)
    taken = {path: steps(path) for path in chain(*sides, fields.columns)}
    # A field of the whole name is read where a path leads nowhere.
    left = [path for path, value in beside(record, taken.values()) if value is not None and path not in taken]
    return ReadFields(" → ".join(", ".join(side) for side in sides if side), tuple(left))


def warn_of_lacking(record: Mapping[str, Any], fields: Fields) -> None:
    """Warn of texts to join that the first record lacks, as where a name is misspelled."""
    lacking = sorted(set(fields.texts).difference(values_at(record, fields.texts)))
    if not lacking or not read_fields_of(record, fields).read:
        return  # no text is there: reading it will tell
    what = f"the first record has no {', '.join(map(repr, lacking))}; {fields_there(record)}"
    warn("column-empty", what, remedy="check the name, unless later records have it", where="--text-field")


def _sides(record: Mapping[str, Any], fields: Fields) -> list[list[str]]:
    """Return the paths of what is read of a conversation: of the prompt, or of all; and of the answer."""
    layouts = [layout for layout in fields.layouts if not layout.lacking(_held(record, layout.paths))]
    if not layouts:
        return []
    layout = layouts[0]
    try:
        held = list(_conversation(record, layouts).record)
    except Fault:
        held = _held(record, layout.paths)  # reading it will tell what is wrong
    if layout.messages:
        return [held]
    answer = [path for path in held if path in (layout.completion, layout.reasoning) or path in REASONING]
    return [[path for path in held if path not in answer], sorted(answer, key=layout.completion.__eq__)]


def _conversation(record: Mapping[str, Any], layouts: Sequence[RecordLayout]) -> Conversation:
    from packtool.text.conversations.record import conversation_of  # texts do without it

    return conversation_of(record, layouts)


def _held(record: Mapping[str, Any], paths: tuple[str, ...]) -> list[str]:
    return [path for path in paths if value_at(record, path) not in (MISSING, None)]


def warn_of_left_out(record: Mapping[str, Any], read_fields: ReadFields, fields: Fields, where: str) -> None:
    """Warn of fields that are not read though they hold a long text or messages, or have a name that says so.

    Args:
        where: the file of the record, for the message.
    """
    if not read_fields.read:
        return  # reading it will tell
    read = [value_at(record, name) for name in fields.texts or (fields.text,)]
    if fields.chat:
        try:
            read = list(_conversation(record, fields.layouts).record.values())
        except Fault:
            return  # reading it will tell
    found: list[str] = []
    for name in read_fields.left_out:
        what = missed(name.rpartition(".")[2], value_at(record, name), read, beside_text=not fields.chat)
        if what:
            found.append(f"{name} ({what})")
    if not found:
        return
    what = f"of the first record, {', '.join(found[:_SHOWN])} {'is' if len(found) == 1 else 'are'} not read"
    remedy = "name what belongs to a conversation: --prompt, --completion, --system, --history, --reasoning-field"
    warn("fields-left-out", what, remedy=remedy, where=where)
