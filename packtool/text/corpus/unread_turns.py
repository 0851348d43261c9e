"""Recognise conversations in a form that is not read, and say how to make messages of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from packtool.text.conversations.turns import holds_turns
from packtool.text.corpus import jq
from packtool.text.corpus.layouts import UnreadLayout

NAMES_OF_TURNS = re.compile(
    r"(?i)(?:.*_)?(?:messages|conversations?|dialog(?:ue)?s?|chats?|turns|threads?|comments|utterances|history)|data"
)
"""Names of fields that hold conversations."""
_SENDERS = ("speaker", "author", "sender", "from", "user", "name", "type", "role")
"""Names in a message of the field that says who speaks."""
_OF_SENDER = ("role", "name")
"""Names of the sender in such a field, if it is an object."""
_TEXTS = ("text", "content", "message", "utterance", "value", "body", "data")
"""Names of the text in a message."""
_MARKED = re.compile(r"(?s).*?\b(?:user|human)\b\W{0,3}[:|].*?\b(?:assistant|ai|bot|gpt)\b\W{0,3}[:|]", re.IGNORECASE)
"""A conversation with the names of its speakers in the text."""
_SHOWN = 12
"""Most fields that a message names."""


def unread_turns(record: Mapping[str, Any], names: Iterable[str]) -> UnreadLayout | None:
    """Recognise a conversation in a form that is not read, in one of these fields of a record; None for any other.

    >>> unread_turns({"chat": [{"speaker": "Ann", "line": "Hi"}, {"text": "Ho"}]}, ["chat"])
    >>> unread_turns({"chat": [{"speaker": "Ann", "text": "Hi"}]}, ["chat"]).what
    "a conversation whose messages, 'chat', have no role and content but speaker, text"
    """
    for name in names:
        found = _turns(name, record.get(name))
        if found is not None:
            return found
    return None


def _turns(name: str, value: Any) -> UnreadLayout | None:
    """Recognise a conversation in the field of this name."""
    if isinstance(value, str) and _MARKED.match(value):
        remedy = f"cut it at the names of its speakers to messages first, or train on all of it: --text-field {name}"
        return UnreadLayout(f"a conversation in one string, {name!r}", remedy)
    if isinstance(value, Mapping):
        return _columns(name, value)
    if not isinstance(value, list) or not value:
        return None
    if isinstance(value[0], str) and name != "conversations":
        remedy = f"if user and assistant speak in turn, give --conversations {name}"
        return UnreadLayout(f"a list of texts, {name!r}, which does not say who speaks", remedy)
    if isinstance(value[0], Mapping):
        return _messages(name, value[0])
    return None


def _messages(name: str, message: Mapping[str, Any]) -> UnreadLayout | None:
    """Recognise messages by the first of them, which has a sender and a text under other names."""
    sender, text = _sender(message), jq.path_to_first(message, _TEXTS)
    if holds_turns([message]) or not sender or not text:
        return None
    return _renamed(name, message, f"{jq.path_to(name)}[] | {{role: {sender}, content: {text}}}")


def _columns(name: str, columns: Mapping[str, Any]) -> UnreadLayout | None:
    """Recognise messages in columns: an object with a list of senders and one of texts."""
    sender, text = _sender(columns), jq.path_to_first(columns, _TEXTS)
    if holds_turns([columns]) or not sender or not text:
        return None
    # The paths lead to the first entry of each list; `transpose` takes the lists.
    at = jq.path_to(name)
    lists = f"[{at}{sender.removesuffix('[0]')}, {at}{text.removesuffix('[0]')}]"
    return _renamed(name, columns, f"{lists} | transpose[] | {{role: .[0], content: .[1]}}")


def _renamed(name: str, message: Mapping[str, Any], messages: str) -> UnreadLayout:
    """Return the layout of messages with other names; `messages` is the program that gives them the usual names."""
    fields = ", ".join(list(message)[:_SHOWN])
    what = f"a conversation whose messages, {name!r}, have no role and content but {fields}"
    return UnreadLayout(what, f"make messages of user and assistant: {jq.command(f'{{messages: [{messages}]}}')}")


def _sender(message: Mapping[str, Any]) -> str:
    """Write the path to the sender of a message; "" if its name is not known."""
    if "is_human" in message:
        return '(if .is_human then "user" else "assistant" end)'
    return jq.path_to_first(message, _SENDERS, _OF_SENDER)
