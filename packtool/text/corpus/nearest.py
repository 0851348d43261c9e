"""Describe a record whose layout is not known: what lies where in it, and the nearest options that read it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from packtool.formats.fields import KINDS, hardly_left_out
from packtool.text.conversations.layouts import RecordLayout
from packtool.text.conversations.message import known_role
from packtool.text.conversations.turns import holds_turns, said_by
from packtool.text.conversations.unread import missed
from packtool.text.faults import Fault
from packtool.text.paths import beside, steps, value_at

_NUMBERED = re.compile(r"_?[0-9a-d]$")
"""What tells several answers to one prompt apart."""
_DEPTH = 4
"""Steps of the longest path that is looked at."""
_SHOWN = 12
"""Most fields of an object that are looked at, and most places that are shown."""
# Numbers of JSON may come as `Literal`, which is a str: texts are asked for by their exact type.
_SHAPES = {str: "a text", bool: "true or false", int: "a number", float: "a number", type(None): "null"}


def places(value: Any, path: str = "", depth: int = _DEPTH) -> Iterator[tuple[str, Any]]:
    """Yield the paths into a value, and what lies there; of a list its first element alone.

    >>> dict(places({"id": 1, "answers": {"text": ["So.", "Yes."]}}))
    {'id': 1, 'answers': {'text': ['So.', 'Yes.']}, 'answers.text': ['So.', 'Yes.'], 'answers.text[0]': 'So.'}
    """
    if path:
        yield path, value
    if not depth:
        return
    if isinstance(value, list) and value:
        yield from places(value[0], f"{path}[0]", depth - 1)
    elif isinstance(value, Mapping):
        for name, item in list(value.items())[:_SHOWN]:
            yield from places(item, f"{path}.{name}".lstrip("."), depth - 1)


def described(record: Mapping[str, Any]) -> str:
    """List what lies where in a record, for a message that it is not known.

    >>> described({"id": 1, "answers": {"text": ["So."]}, "chat": [{"role": "user", "content": "Hi"}]})
    'id (a number), answers.text (a list of texts), chat (messages)'
    """
    shown = [f"{path} ({_shape(value)})" for path, value in places(record) if _shape(value) and "[" not in path]
    return ", ".join(shown[:_SHOWN]) + " and others" * (len(shown) > _SHOWN)


def nearest(record: Mapping[str, Any]) -> RecordLayout | None:
    """Return the layout that is most likely meant, of those by which the record is a conversation; None for none.

    >>> nearest({"question": "Why?", "human_answers": ["So.", "Or so."]}).shown()
    "--prompt=question --completion='human_answers[0]'"
    >>> nearest({"id": 1, "chat": [{"speaker": "bot", "text": "Hi"}]}).shown()
    '--conversations=chat --message-fields=speaker,text'
    """
    from packtool.text.conversations.record import conversation_of  # texts do without it

    for layout in _candidates(record):
        with suppress(Fault):
            talk = conversation_of(record, (layout,))
            roles = [known_role(message["role"], number) for number, message in enumerate(talk.messages, 1)]
            said = "assistant" in roles
            if talk.prompt is not None:
                said = roles[talk.prompt : talk.prompt + 1] == ["assistant"]
            if said and _reads_all(record, layout, talk.record):
                return layout
    return None


def _reads_all(record: Mapping[str, Any], layout: RecordLayout, read: Mapping[str, Any]) -> bool:
    """Return whether a layout leaves out no turn of a record, and nothing that belongs to one; other answers may be.

    Args:
        read: what it reads, by paths.
    """
    if "[0]" in layout.messages:
        return False  # other records may have several
    for path in layout.prompt:
        for listed in re.finditer(r"\[0\]", path):
            if len(value_at(record, path[: listed.start()])) > 1:
                return False
    alike = {_NUMBERED.sub("", _top(path)) for path in read}
    for path, value in beside(record, list(map(steps, read))):
        name = path.rpartition(".")[2]
        if _NUMBERED.sub("", path) in alike or _is_answer(path):
            continue
        if name in KINDS["text"]:
            name = KINDS["question"][0]  # a text beside what is read is no less
        if hardly_left_out(name) and missed(name, value, read.values()):
            return False
    return True


def options_for(record: Mapping[str, Any]) -> str:
    """Write the options by which a record is read as a conversation, or as a text; "" if none is known.

    >>> options_for({"id": 1, "body": "words"}), options_for({"id": 1})
    ('--text-field=body', '')
    """
    layout = nearest(record)
    if layout is not None:
        return layout.shown()
    for name, value in record.items():
        if type(value) is str and name.lower() in (*KINDS["text"], "chosen"):
            return f"--text-field={name}"
    return ""


def advice(record: Any) -> str:
    """Write what would read a record, behind a message that it has not what was asked for.

    Args:
        record: or the names of its fields, of which nothing is known.

    >>> advice({"id": 1, "body": "words"}), advice(["id", "body"])
    ('; to read it, perhaps --text-field=body', '')
    """
    if not isinstance(record, Mapping):
        return ""
    options = options_for(record)
    return f"; to read it, perhaps {options}" if options else ""


def _candidates(record: Mapping[str, Any]) -> Iterator[RecordLayout]:
    """Yield the layouts that may be meant: first of a prompt and its answer, then of one conversation."""
    found = dict(places(record))
    held = [path for path, value in found.items() if type(value) is str or holds_turns(value)]
    asked = sorted(filter(_prompt_of, held), key=lambda path: KINDS["prompt"].index(_prompt_of(path)))
    scalars = [name for name, value in record.items() if isinstance(value, bool | int | float)]
    answers = [path for path in (*held, *scalars) if _is_answer(path)]
    for path in asked:
        for answer in sorted(answers, key=_is_named, reverse=True):
            if _top(answer) != _top(path):
                yield _around(record, found, path, answer)
    for path, value in found.items():
        layout = _conversation(path, value)
        if layout is not None:
            yield layout


def _around(record: Mapping[str, Any], found: Mapping[str, Any], prompt: str, answer: str) -> RecordLayout:
    """Return the layout of a prompt and its answer, with the fields that belong to them."""
    more, past, system, reasoning = [], "", "", ""
    for name, value in record.items():
        if name in (_top(prompt), _top(answer)):
            continue
        if name.lower() in KINDS["context"] and type(value) is str:
            more.append(name)
        elif name in KINDS["history"] and isinstance(value, list):
            past = name
        elif name in KINDS["system"] and type(value) is str:
            system = name
        elif hardly_left_out(name) == "reasoning" and type(value) is str and not reasoning:
            reasoning = name
    asked = [*more, prompt]
    beside = answer.rpartition(".")[0]
    for name in KINDS["context"]:  # an object may hold a part of the prompt and the answer, as Self-Instruct's do
        path = f"{beside}.{name}"
        if beside and path != answer and type(found.get(path)) is str:
            asked.append(path)
    return RecordLayout(prompt=tuple(asked), completion=answer, history=past, system=system, reasoning=reasoning)


def _shape(value: Any) -> str:
    """Name the shape of a value; "" for an object, whose fields are shown themselves."""
    if holds_turns(value):
        return "messages"
    if isinstance(value, list):
        inner = _SHAPES.get(type(value[0]), "an object") if value else "nothing"
        return f"a list of {inner.removeprefix('a ').removeprefix('an ')}{'s' * bool(value)}"
    return _SHAPES.get(type(value), "")


def _top(path: str) -> str:
    return re.split(r"[.\[]", path)[0]


def _prompt_of(path: str) -> str:
    """Return the name of a prompt in which a path begins, in the singular; "" if it begins in another field."""
    top = _top(path).lower()
    for name in (top, top.removesuffix("s")):
        if name in KINDS["prompt"]:
            return name
    return ""


def _is_answer(path: str) -> bool:
    """Return whether a path begins in a field with the name of an answer, which may be one of several."""
    word = _NUMBERED.sub("", _top(path).lower()).rpartition("_")[2]
    known = (*KINDS["answer"], "ref", "sol", "chosen", "instance")
    return _top(path).lower() in known or word in known or word.removesuffix("s") in known


def _is_named(path: str) -> bool:
    """Return whether the end of a path has the name of a text or an answer, unlike an id or a date beside it."""
    last = path.replace("[0]", "").rpartition(".")[2].lower()
    return last in KINDS["text"] or _is_answer(last)


def _conversation(path: str, value: Any) -> RecordLayout | None:
    """Return the layout of a value that looks like a conversation; None for any other."""
    if holds_turns(value):
        return RecordLayout(path)
    message: Any = None
    if isinstance(value, list) and value:
        message = value[0]
        if type(message) is str and path.replace("[0]", "").rpartition(".")[2].lower() in KINDS["messages"]:
            return RecordLayout(path)
    elif isinstance(value, Mapping) and all(isinstance(item, list) and item for item in value.values()):
        message = {name: items[0] for name, items in value.items()}  # a list of each field
    if not isinstance(message, Mapping):
        return None
    text = _inner(message, "text")
    sender = _inner(message, "sender")
    for name, said in message.items():
        if type(said) is bool and said_by(name, said) and not sender:
            sender = name
    return RecordLayout(path, turn=(sender, text)) if sender and text and sender != text else None


def _inner(message: Mapping[str, Any], kind: str) -> str:
    """Return the path in a message to a text in the first field of this kind; "" if there is none."""
    for name in KINDS[kind]:
        for path, value in places(message.get(name), name, 2):
            if type(value) is str:
                return path
    return ""
