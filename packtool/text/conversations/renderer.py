"""Make documents of conversations with their chat template."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any

from packtool.formats.fields import TOOLS
from packtool.text.conversations.chat import DEFAULT, WITH_TOOLS, Chat
from packtool.text.conversations.ends import Ends
from packtool.text.conversations.reasoning import without_reasoning
from packtool.text.conversations.record import (
    ROLES,
    Conversation,
    ConversationError,
    texts_of,
    without_tool_calls,
)
from packtool.text.conversations.spans import Document, documents_of
from packtool.text.conversations.template import ChatTemplate, any_of


class Renderer:
    """Renders conversations.

    Args:
        chat: how.
        unsafe: control tokens that the tokenizer makes of plain text, too.

    Attributes:
        chat: how.
        spelled: control tokens that messages spell out, and how often: the tokenizer can't tell them from those that
            the template writes. The assistant's may spell those that are not special, such as what reasoning lies
            between.
    """

    def __init__(self, chat: Chat, unsafe: Collection[str] = ()) -> None:
        self.chat = chat
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

    def rendered(self, talk: Conversation) -> list[Document]:
        """Render a conversation; return the documents that are made of it.

        Raises:
            ConversationError: it can't be rendered, or nothing would train; the template that it needs is invalid.
        """
        chat = self.chat
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
        self._require_no_tools(talk, name)
        masked = chat.tags if chat.reasoning == "mask" else ()
        if name not in self._templates:
            self._templates[name] = self._compiled(self._sources[name])
        documents = documents_of(talk, self._templates[name], chat.train_on, ends=self._ends, masked=masked)
        together = "\n".join(texts_of([talk.messages, talk.tools, talk.arguments]))
        if any(map(together.__contains__, self._beginnings)):
            self._look_for_tokens(talk, together)
        return documents

    def _look_for_tokens(self, talk: Conversation, together: str) -> None:
        """Count the control tokens that texts spell, or refuse what can't be encoded as text."""
        if self.chat.as_text:
            found = self._unsafe and self._unsafe.search(together)
            if found:
                raise ConversationError(f"it spells {found[0]!r}, which the tokenizer makes of plain text, too")
            return
        for message in [*talk.messages, {"role": "", "given": [talk.tools, talk.arguments]}]:
            tokens = self._special if message["role"] == "assistant" else self._control
            for text in texts_of(message):
                self.spelled.update(tokens.findall(text))

    def _require_no_tools(self, talk: Conversation, name: str) -> None:
        """Refuse tools in a message that the template does not look for there."""
        for message in talk.messages:
            for field in TOOLS if len(message) > 2 else ():
                if message.get(field) and not re.search(rf"\.{field}\b|[\"']{field}[\"']", self._sources[name]):
                    raise ConversationError(f"a message has {field}, which the chat template does not read there")

    def _require_known_roles(self, talk: Conversation, name: str) -> None:
        """Require that each role is one that every template may be given, or that this one asks for."""
        for number, message in enumerate(talk.messages, 1):
            role = message["role"]
            if role not in ROLES and not re.search(f"[\"']{re.escape(role)}[\"']", self._sources[name]):
                raise ConversationError(f"message {number} has the role {role[:40]!r}, which templates do not know")
