"""Tell what a record holds, by the names of its fields, exactly as they are spelled.

    text                                                                          a text
    messages, conversations, or conversation                                      a list of messages
    instruction, prompt, question, query, problem, or input                       the prompt, and beside it its answer:
    completion, response, answer, solution, generated_solution, or output

These names are the contract. A record that can be read in two ways is refused: nothing tells which is meant but the
options. So is a conversation beside which a field would keep some of it out of training, under a name that is not read.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from msgspec import structs

from packtool.text.conversations.described import described, holds_messages
from packtool.text.conversations.layouts import (
    ANSWERS,
    CONTEXT,
    INSTRUCTION,
    LABELS,
    MARKS,
    MEDIA,
    MESSAGE_MARKS,
    MESSAGES,
    OF_MESSAGE,
    PREFERENCE,
    PROMPTS,
    TEXT,
    TEXTS,
    RecordLayout,
    shown,
)
from packtool.text.conversations.message import is_sender
from packtool.text.faults import Fault


def reading_of(record: Mapping[str, Any]) -> RecordLayout:
    """Return the layout that a record has by the names of its fields.

    Raises:
        Fault: it has none, or several, or what lies beside a conversation would keep some of it out of training. The
            words follow after what names the record.

    >>> shown(reading_of({"question": "Why?", "answer": "So.", "id": 7}))
    '--prompt=question --completion=answer'
    """
    names = _named(tuple(record))
    usual = names.only is not None and all(type(record[name]) is names.kind and record[name] for name in names.values)
    if usual and (names.kind is str or is_sender(record[names.values[0]][0])):
        assert names.only is not None
        return names.only  # as of nearly all records
    found = readings(record)
    if len(found) != 1:
        raise _unclear(record, found) if found else _nothing(record)
    (layout,) = found
    if layout.text:
        return layout
    messages = record.get(layout.messages)
    if is_something(messages) and not holds_messages(messages):
        what = f"has no list of messages in {layout.messages!r}, with role and content, or from and value: it has "
        remedy = f"give {shown(layout)}, which reads texts in turn; with --message-fields, messages with other fields"
        raise Fault("unread-layout", what + described({layout.messages: messages}), remedy)
    require_no_label(record)
    kept = [name for name in names.kept_out if is_something(record[name])]
    if kept:
        raise kept_out(record, layout, kept)
    return layout


def readings(record: Mapping[str, Any]) -> list[RecordLayout]:
    """List the layouts that a record has by the names of its fields: one, unless it is not clear which is meant.

    Messages hold all of a conversation, so a prompt and an answer beside them are no other reading. What is empty is
    not there, unless nothing else is.

    >>> [shown(layout) for layout in readings({"question": "Why?", "answer": "So.", "solution": "It is so."})]
    ['--prompt=question --completion=answer', '--prompt=question --completion=solution']
    >>> [shown(layout) for layout in readings({"text": "words", "prompt": "Say", "response": ""})]
    ['--text-field=text']
    >>> readings({"id": 1, "Question": "Why?", "Answer": "So."})
    []
    """
    names = _named(tuple(record))
    found = _read(record, names, is_something)
    if not found:  # an empty text is one, and an empty answer, too
        found = _read(record, names, lambda value: value is not None)[:1]
    if not found:  # what a row of a table lacks is null: reading it tells
        nulls = [RecordLayout(name) for name in names.messages if record[name] is None]
        found = ([TEXTS] * names.text + nulls)[:1]
    return found


def _read(record: Mapping[str, Any], names: _Named, counts: Callable[[Any], bool]) -> list[RecordLayout]:
    """List the layouts of a record, of the fields whose values count."""
    found = []
    if names.text and counts(record[TEXT]):
        found.append(TEXTS)
    talks = [name for name in names.messages if counts(record[name]) and _may_be_messages(record[name])]
    found += [RecordLayout(name) for name in talks]
    if len(names.preference) == len(PREFERENCE) and all(counts(record[name]) for name in PREFERENCE):
        return found + [_preferred(record, names, name) for name in PREFERENCE]
    if talks or not names.answers:
        return found
    answers = [name for name in names.answers if counts(record[name]) and _may_be_said(record[name])]
    asked = [name for name in names.prompts if counts(record[name]) and _may_be_said(record[name])]
    if "instruction" in names.prompts and "input" in asked:
        asked = [name for name in asked if name not in INSTRUCTION] + ["instruction"]
    for name in asked:
        ways: list[tuple[str, ...]] = [(name,)]
        if name == "instruction":
            ways = [INSTRUCTION]
        elif names.context and counts(record[CONTEXT]):
            ways.append((CONTEXT, name))  # elsewhere nothing tells whether it belongs to the prompt
        for prompt in ways:
            found += [RecordLayout(prompt=prompt, completion=answer) for answer in answers]
    return found


class _Named(NamedTuple):
    """The names of fields that a record has, by what they may be."""

    text: bool
    messages: tuple[str, ...]
    prompts: tuple[str, ...]
    answers: tuple[str, ...]
    context: bool
    preference: tuple[str, ...]
    labels: tuple[str, ...]
    kept_out: tuple[str, ...]  # marks and media that are not read
    only: RecordLayout | None = None  # the one layout that these names allow, where these values are as usual
    values: tuple[str, ...] = ()
    kind: type = str  # the type of these values


@lru_cache(1 << 10)
def _named(names: tuple[str, ...]) -> _Named:
    """Sort the names of a record's fields; records of a corpus have few such lists, each of them often."""
    every = frozenset(names)

    def of(known: Iterable[str]) -> tuple[str, ...]:
        return tuple(filter(every.__contains__, known))

    found = _Named(
        text=TEXT in every,
        messages=of(MESSAGES),
        prompts=of(PROMPTS),
        answers=of(ANSWERS),
        context=CONTEXT in every,
        preference=of(PREFERENCE),
        labels=tuple(name for name in names if is_label(name)),
        kept_out=of((*MARKS, *MEDIA)),
    )
    if any((found.text, found.context, found.preference, found.labels, found.kept_out)):
        return found
    prompts = [name for name in found.prompts if name != "input" or "instruction" not in every]
    if len(found.messages) == 1:
        (name,) = found.messages
        return found._replace(only=RecordLayout(name), values=(name,), kind=list)
    if not found.messages and len(prompts) == len(found.answers) == 1:
        (prompt,), (answer,) = prompts, found.answers
        asked = INSTRUCTION if prompt == "instruction" else (prompt,)
        return found._replace(only=RecordLayout(prompt=asked, completion=answer), values=(prompt, answer))
    return found


def is_label(name: str) -> bool:
    """Return whether a field has the name of a label, in whatever case, and whatever stands between its words.

    >>> is_label("Label"), is_label("ktoTag"), is_label("kto-tag"), is_label("labelled")
    (True, True, True, False)
    """
    return "".join(filter(str.isalpha, name.lower())) in LABELS


def require_no_label(record: Mapping[str, Any]) -> None:
    """Refuse a conversation with a label, which may say that its answer is a bad one; no option waives this.

    Raises:
        Fault: it has one.
    """
    labels = [name for name in _named(tuple(record)).labels if is_something(record[name])]
    if labels:
        what = f"has a label beside a conversation, which may say that the answer is a bad one: {', '.join(labels)}"
        raise Fault("preference-pairs", what, "keep the records with good answers, and leave the field out of them")


def kept_out(record: Mapping[str, Any], layout: RecordLayout, names: Collection[str]) -> Fault:
    """Return the fault of a conversation beside which marks or media lie that are not read.

    Args:
        layout: of the conversation.
        names: of these fields, perhaps with `OF_MESSAGE` behind.
    """
    remedy = f"to read the conversation without, name it: {_shown(layout, record)}"
    for name in names:
        mark = name.removesuffix(OF_MESSAGE)
        if layout.messages and mark != name and mark in MESSAGE_MARKS:
            messages = record[layout.messages]
            turn = "from,value" if isinstance(messages, list) and "from" in messages[0] else "role,content"
            remedy += f"; to obey a mark, add --message-fields={turn},{mark}"
            break
    what = f"has marks or media that are not read, and may keep some of it out of training: {', '.join(names)}"
    return Fault("marks-beside", what, remedy)


def _unclear(record: Mapping[str, Any], found: Collection[RecordLayout]) -> Fault:
    code = "unclear-fields"
    if any(PREFERENCE[0] in (layout.messages, layout.completion, layout.text) for layout in found):
        code = "preference-pairs"
    what = f"can be read in {len(found)} ways: it has {described(record)}"
    return Fault(code, what, f"say which is meant: {' or '.join(_shown(layout, record) for layout in found)}")


def _nothing(record: Mapping[str, Any]) -> Fault:
    what = f"has neither {TEXT!r} nor a conversation under the usual names: it has {described(record)}"
    remedy = (
        "name the text with --text-field, or the conversation with --conversations, or with --prompt and --completion"
    )
    return Fault("unread-layout", what, remedy)


def _shown(layout: RecordLayout, record: Mapping[str, Any]) -> str:
    """Write a layout as the options that ask for what this record has."""
    return shown(structs.replace(layout, prompt=tuple(filter(record.__contains__, layout.prompt))))


def _preferred(record: Mapping[str, Any], names: _Named, name: str) -> RecordLayout:
    """Return the layout of one answer of a preference pair: behind its prompt, a text, or messages of its own."""
    prompts = [asked for asked in names.prompts if _may_be_said(record[asked])]
    if isinstance(record[name], str) and prompts:
        return RecordLayout(prompt=(prompts[0],), completion=name)
    if isinstance(record[name], str) and not holds_messages(record[name]):
        return RecordLayout(text=name)
    return RecordLayout(name)


def is_something(value: Any) -> bool:
    """Return whether a field holds something: neither null nor an empty text, nor a list or an object of such.

    >>> is_something(0), is_something(""), is_something([]), is_something({"bytes": None, "path": ""})
    (True, False, False, False)
    """
    if isinstance(value, str | bytes):
        return bool(value)
    if isinstance(value, list):
        return any(map(is_something, value))
    if isinstance(value, Mapping):
        return any(map(is_something, value.values()))
    return value is not None


def _may_be_messages(value: Any) -> bool:
    """Return whether what has the name of messages may hold some, or malformed ones; a text is another thing."""
    return isinstance(value, list | Mapping) or holds_messages(value)


def _may_be_said(value: Any) -> bool:
    """Return whether a value may be a prompt or an answer: a text, or messages.

    A number of JSON may come as a `Literal`, which is a str of another type.
    """
    return type(value) is str or (isinstance(value, list) and holds_messages(value))
