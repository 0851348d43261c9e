"""Make documents of each record's conversation with its chat template."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple

from packtool.text.conversations.chat import DEFAULT, WITH_TOOLS, Chat
from packtool.text.conversations.ends import Ends
from packtool.text.conversations.reasoning import other_reasoning, thoughts_of, without_reasoning
from packtool.text.conversations.record import (
    ROLES,
    Conversation,
    ConversationError,
    conversation_of,
    texts_of,
    without_tool_calls,
)
from packtool.text.conversations.spans import Document, documents_of
from packtool.text.conversations.template import ChatTemplate, any_of

_CALL = re.compile(r"<tool_call>|\[TOOL_CALLS\]|<function=")
"""What begins a call of a tool that is spelled in a content."""


class Held(NamedTuple):
    """What a conversation holds of what is masked or dropped, and what it may hold in a form that is not read.

    Attributes:
        reasoning: the assistant reasons.
        other: a tag or field that looks like reasoning in another form; empty where there is none.
        calls: messages whose content spells a call of a tool.
    """

    reasoning: bool = False
    other: str = ""
    calls: int = 0


class Renderer:
    """Renders the conversations of records.

    Args:
        chat: how.
        unsafe: control tokens that the tokenizer makes of plain text, too.

    Attributes:
        spelled: control tokens that messages spell out, and how often: the tokenizer can't tell them from those that
            the template writes. The assistant's may spell those that are not special, such as what reasoning lies
            between.
    """

    def __init__(self, chat: Chat, unsafe: Collection[str] = ()) -> None:
        self._chat = chat
        now = datetime.fromisoformat(chat.date) if chat.date else None
        control = chat.control if chat.as_text else ()
        self._compiled = partial(ChatTemplate, tokens=dict(chat.tokens), now=now, control=control)
        self._templates: dict[str, ChatTemplate] = {}
        self._sources = dict(chat.templates)
        self._arguments: dict[str, Any] = json.loads(chat.arguments)
        self._ends = Ends(chat.special, chat.stops)
        self._special, self._control = any_of(chat.special), any_of({*chat.special, *chat.control})
        self._beginnings = tuple({token[:2] for token in (*chat.special, *chat.control)})
        self._unsafe = any_of(unsafe) if unsafe else None
        self.spelled: Counter[str] = Counter()

    def rendered(self, record: Mapping[str, Any]) -> tuple[list[Document], Held]:
        """Render a record's conversation; return the documents that are made of it, and what it holds.

        Raises:
            ConversationError: it can't be rendered, or nothing would train; the template that it needs is invalid.
        """
        talk = conversation_of(record)
        chat = self._chat
        held = self._held(talk)
        if chat.reasoning == "drop":
            talk = without_reasoning(talk, chat.tags)
        if chat.tool_calls == "drop":
            talk = without_tool_calls(talk)
        elif chat.tool_calls == "mask":
            talk = talk.masked(["tool_calls" in message for message in talk.messages])
        if self._arguments:
            talk = replace(talk, arguments={**self._arguments, **talk.arguments})
        name = WITH_TOOLS if talk.tools is not None and WITH_TOOLS in self._sources else DEFAULT
        if not ROLES.issuperset(message["role"] for message in talk.messages):
            self._require_known_roles(talk, name)
        masked = chat.tags if chat.reasoning == "mask" else ()
        if name not in self._templates:
            self._templates[name] = self._compiled(self._sources[name])
        documents = documents_of(talk, self._templates[name], chat.train_on, ends=self._ends, masked=masked)
        together = "\n".join(texts_of([talk.messages, talk.tools, talk.arguments]))
        if any(map(together.__contains__, self._beginnings)):
            self._look_for_tokens(talk, together)
        return documents, held

    def _held(self, talk: Conversation) -> Held:
        """Look for what is to be masked or dropped."""
        said = [message for message in talk.messages if message["role"] == "assistant"]
        held = Held()
        if self._chat.reasoning != "train":
            tags = self._chat.tags
            reasoning = any(next(thoughts_of(message, tags), None) for message in said)
            held = Held(reasoning, next(filter(None, (other_reasoning(message, tags) for message in said)), ""))
        if self._chat.tool_calls != "train":
            spelled = [message for message in said if any(map(_CALL.search, texts_of(message.get("content"))))]
            held = held._replace(calls=len(spelled))
        return held

    def _look_for_tokens(self, talk: Conversation, together: str) -> None:
        """Count the control tokens that texts spell, or refuse what can't be encoded as text."""
        if self._chat.as_text:
            if self._unsafe is not None and (found := self._unsafe.search(together)):
                raise ConversationError(f"it spells {found[0]!r}, which the tokenizer makes of plain text, too")
            return
        for message in [*talk.messages, {"role": "", "given": [talk.tools, talk.arguments]}]:
            tokens = self._special if message["role"] == "assistant" else self._control
            for text in texts_of(message):
                self.spelled.update(tokens.findall(text))

    def _require_known_roles(self, talk: Conversation, name: str) -> None:
        """Require that each role is one that every template may be given, or that this one asks for."""
        for number, message in enumerate(talk.messages, 1):
            role = message["role"]
            if role not in ROLES and not re.search(f"[\"']{re.escape(role)}[\"']", self._sources[name]):
                raise ConversationError(f"message {number} has the role {role[:40]!r}, which templates do not know")
