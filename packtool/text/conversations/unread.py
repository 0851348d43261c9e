"""Tell which fields of a record are hardly left out on purpose, where nothing reads them."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from packtool.formats.fields import KINDS, LEFT_OUT, hardly_left_out
from packtool.text.conversations.conversation import texts_of
from packtool.text.conversations.turns import holds_turns
from packtool.text.faults import bad_conversation

_LONG = 30
"""Words of a text that is hardly left out on purpose."""
_ALSO_IDS = ("messages", "asked")
"""Kinds some of whose names, as `thread` and `source`, may hold an id."""
_NAMED = "name it with its option, or name what is to be read with --prompt and --completion, or --conversations"


def missed(name: str, value: Any, read: Iterable[Any], *, beside_text: bool = False) -> str:
    """Return what a field that is not read holds, in words, if it is hardly left out on purpose; "" for any other.

    Args:
        read: the values that are read: what they say is not missed.
        beside_text: a text is read, not a conversation.

    >>> missed("rationale", "It is so.", []), missed("cot_type", "math", []), missed("prompt", "Why so?", ["Why so?"])
    ('the name of reasoning', '', '')
    """
    if name == KINDS["preference"][1]:
        return ""  # what is rejected is not to be learned
    kind = hardly_left_out(name, beside_text=beside_text)
    if kind in ("mark", "list of marks"):
        if isinstance(value, str):
            return ""
        return f"the name of {LEFT_OUT[kind]}"
    texts = [text.strip() for text in texts_of(value) if re.search(r"\w", text)]  # "[]" has none
    is_name = not {name.lower(), name.lower().removesuffix("s")}.isdisjoint(KINDS.get(kind, ()))
    may_be_word = kind == "answer" or (is_name and kind not in _ALSO_IDS)
    if kind == "reasoning" and all(map(str.isalnum, texts)):
        may_be_word = False  # it is a mode, as "on" and "high": nobody reasons in a word
    least = 1 if may_be_word else 2
    what = _in_words(kind, value, texts, least)
    if not what:
        return ""
    return _in_words(kind, value, unsaid(texts, read), least)


def unsaid(texts: Iterable[str], read: Iterable[Any]) -> list[str]:
    """List those of these texts that values do not say: as they are, or as JSON has them; a word is not a part of one.

    >>> unsaid(["It is so.", "add", "so"], ["It is so.", {"name": "adds"}])
    ['add']
    """
    said = "\n".join(texts_of(list(read)))
    left: list[str] = []
    for text in texts:
        is_said = text in said or json.dumps(text, ensure_ascii=False)[1:-1] in said
        if is_said and text.isascii() and text.isalnum():
            is_said = re.search(rf"(?<!\w){text}(?!\w)", said) is not None
        if not is_said:
            left.append(text)
    return left


def _in_words(kind: str, value: Any, texts: Iterable[str], least: int) -> str:
    """Return what a field of this kind with these texts is, if it is hardly left out on purpose; "" for any other.

    Args:
        least: words of a field that has this kind by its name.
    """
    words = [len(text.split(None, _LONG)) for text in texts]
    if kind and sum(words) >= least:
        return f"the name of {LEFT_OUT[kind]}"
    if words and holds_turns(value):
        return "messages"
    if max(words, default=0) > _LONG:
        return "a long text"
    return ""


def unread_in(
    record: Mapping[str, Any], known: Collection[str], read: Mapping[str, Any], *, refuse: bool
) -> tuple[str, ...]:
    """Return the names of the fields of a record that hold something, and are not read.

    Args:
        known: fields that are told of already, as the first record has them.
        read: the values that are read, by their fields.
        refuse: whether what is hardly left out on purpose is refused.

    Raises:
        Fault: a field is refused.
    """
    names = [name for name in record if name not in known and name not in read and is_something(record[name])]
    for name in names:
        what = hardly_left_out(name) and missed(name, record[name], read.values())
        if refuse and what:
            raise bad_conversation(f"{name} ({what}) is not read, and the first record lacks it", _NAMED)
    return tuple(names)


def is_something(value: Any) -> bool:
    """Return whether a field holds something: neither null nor an empty text, list or object."""
    return value is not None and value not in ("", [], {})
