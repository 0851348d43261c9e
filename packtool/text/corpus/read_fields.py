"""Say what of records is read and what is not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from packtool.support.sizes import plural
from packtool.text.conversations.conversation import texts_of
from packtool.text.conversations.described import holds_messages
from packtool.text.conversations.layouts import REASONING, RecordLayout
from packtool.text.corpus.records import Fields
from packtool.text.faults import CONTRACT, Fault
from packtool.text.paths import MISSING, beside, steps, value_at, values_at
from packtool.warnings import warn

_SHOWN = 12
"""Most fields that are listed."""
_COUNTED = 100
"""Most fields that are counted: some records have a field of its own for each thing."""


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
        return _line(self.read, self.left_out) if self.read else ""


class LayoutCounts(msgspec.Struct):
    """What was read of the conversations of one layout, and what was not."""

    read: str  # fields that the first of them is read from, the answer behind an arrow
    conversations: int = 0
    not_read: dict[str, int] = msgspec.field(default_factory=dict)  # conversations, by the other fields that they have

    def count(self, names: Iterable[str]) -> None:
        """Count a conversation with these other fields."""
        self.conversations += 1
        for name in names:
            self._note(name, 1)

    def add(self, other: LayoutCounts) -> None:
        """Add the counts of later conversations."""
        self.conversations += other.conversations
        for name, count in other.not_read.items():
            self._note(name, count)

    def _note(self, name: str, count: int) -> None:
        if name in self.not_read or len(self.not_read) < _COUNTED:
            self.not_read[name] = self.not_read.get(name, 0) + count

    def shown(self, *, alone: bool = True) -> str:
        """Write it as a line; a field that not all have comes with the number of conversations.

        Args:
            alone: there is no other layout.

        >>> LayoutCounts("messages", 9, {"id": 9, "lang": 2}).shown()
        'read: messages; not read: id, lang (of 2 conversations)'
        >>> LayoutCounts("prompt → answer", 1).shown(alone=False)
        'read: prompt → answer (1 conversation)'
        """
        names = []
        for name, count in self.not_read.items():
            of_some = ""
            if count < self.conversations:
                of_some = f" (of {plural(count, 'conversation')})"
            names.append(name + of_some)
        read = self.read
        if not alone:
            read += f" ({plural(self.conversations, 'conversation')})"
        return _line(read, names)


def recorded_lines(options: Mapping[str, Any]) -> list[str]:
    """Write what was read for a token store and what was not, by the options in its manifest.

    That is a line for each layout of conversations, else one for the first record.
    """
    layouts = [LayoutCounts(**layout) for layout in options.get("layouts", ())]
    if layouts:
        return [layout.shown(alone=len(layouts) == 1) for layout in layouts]
    first = ReadFields(options.get("read", ""), tuple(options.get("not_read", ())))
    return list(filter(None, [first.shown()]))


def _line(read: str, left_out: Sequence[str]) -> str:
    line = f"read: {read}"
    if left_out:
        line += f"; not read: {', '.join(left_out[:_SHOWN])}{', …' * (len(left_out) > _SHOWN)}"
    return line


def read_fields_of(record: Mapping[str, Any], fields: Fields) -> tuple[ReadFields, list[Any]]:
    """Tell what of the first record is read, and return the texts of it that are.

    Raises:
        Fault: it is refused by the names of its fields.

    >>> read_fields_of({"text": "words", "title": "a", "score": 7}, Fields())[0].shown()
    'read: text; not read: title, score'
    """
    if fields.layout is not None:
        return _of_conversation(record, fields)
    names = [name for name in (fields.texts or (fields.text,)) if value_at(record, name) is not MISSING]
    read = ReadFields(", ".join(names), _others(record, (*names, *fields.columns)))
    return read, list(values_at(record, names).values())


def _of_conversation(record: Mapping[str, Any], fields: Fields) -> tuple[ReadFields, list[Any]]:
    from packtool.text.conversations.record import conversation_of  # texts do without it

    assert fields.layout is not None
    try:
        talk = conversation_of(record, fields.layout)
    except Fault as fault:
        if fault.code in CONTRACT:
            raise
        return ReadFields(), []  # reading it will tell
    of_messages = [name for name in talk.unread if name not in record]
    left = (*_others(record, (*talk.record, *fields.columns)), *of_messages)
    read = ReadFields(read_of(talk.layout, list(talk.record)), left)
    return read, [message.get("content") for message in talk.messages]


def read_of(layout: RecordLayout, taken: Sequence[str]) -> str:
    """List the paths that a conversation is read from: those of the prompt, and behind an arrow those of the answer.

    >>> read_of(RecordLayout(prompt=("q",), completion="a"), ["q", "a", "reasoning_content", "tools"])
    'q, tools → a, reasoning_content'
    """
    if layout.messages:
        return ", ".join(taken)
    answer = [path for path in taken if path in (layout.completion, layout.reasoning or REASONING)]
    prompt = [path for path in taken if path not in answer]
    return f"{', '.join(prompt)} → {', '.join(sorted(answer, key=layout.completion.__eq__, reverse=True))}"


def _others(record: Mapping[str, Any], paths: Sequence[str]) -> tuple[str, ...]:
    """List what lies beside these paths in a record, and is not null."""
    taken = {path: steps(path) for path in paths}
    # A field of the whole name is read where a path leads nowhere.
    return tuple(path for path, value in beside(record, taken.values()) if value is not None and path not in taken)


def warn_of_left_out(record: Mapping[str, Any], read: ReadFields, texts: Sequence[Any], where: str) -> None:
    """Warn of a field that is not read, and holds messages, or a longer text than what is read.

    Args:
        record: the first, of which this is `read`: these texts.
        where: its file, for the message.
    """
    if not read.read:
        return  # reading it will tell
    size = sum(map(len, texts_of(list(texts))))
    found: list[str] = []
    for path in read.left_out:
        value = value_at(record, path)
        if isinstance(value, list) and holds_messages(value):
            found.append(f"{path} (messages)")
        elif isinstance(value, str) and len(value) > size:
            found.append(f"{path} (a text of {len(value):,} characters)")
    if not found:
        return
    what = f"of the first record, {', '.join(found[:_SHOWN])} {'is' if len(found) == 1 else 'are'} not read"
    remedy = "if it belongs to what is read, name it with an option"
    warn("fields-left-out", what, remedy=remedy, where=where)
