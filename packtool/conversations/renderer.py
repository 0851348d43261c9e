"""Render each record's conversation with its chat template, and find the spans that train."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from packtool.conversations.chat import DEFAULT, WITH_TOOLS, Chat
from packtool.conversations.record import (
    ROLES,
    Conversation,
    ConversationError,
    conversation_of,
    texts_of,
    without_reasoning,
    without_tool_calls,
)
from packtool.conversations.spans import Spans, rendered_with_spans
from packtool.conversations.template import ChatTemplate


class Renderer:
    """Renders the conversations of records.

    Attributes:
        spelled: special tokens that messages spell out, and how often: the tokenizer can't tell them from those that
            the template writes.

    Raises:
        ConversationError: a template is invalid.
    """

    def __init__(self, chat: Chat) -> None:
        self._chat = chat
        now = datetime.fromisoformat(chat.date) if chat.date else None
        self._templates = {name: ChatTemplate(source, dict(chat.tokens), now=now) for name, source in chat.templates}
        self._sources = dict(chat.templates)
        longest_first = sorted(chat.special, key=len, reverse=True)
        self._special = re.compile("|".join(map(re.escape, longest_first)) or "(?!)")
        self._beginnings = tuple({token[:2] for token in chat.special})
        self.spelled: Counter[str] = Counter()

    def rendered(self, record: Mapping[str, Any]) -> tuple[str, Spans]:
        """Render a record's conversation; return its text, and the spans of it that train.

        Raises:
            ConversationError: it can't be rendered, or nothing would train.
        """
        talk = conversation_of(record)
        chat = self._chat
        if chat.reasoning == "drop":
            talk = without_reasoning(talk)
        if chat.tool_calls == "drop":
            talk = without_tool_calls(talk)
        elif chat.tool_calls == "mask":
            talk = talk.masked(["tool_calls" in message for message in talk.messages])
        name = WITH_TOOLS if talk.tools is not None and WITH_TOOLS in self._templates else DEFAULT
        if not ROLES.issuperset(message["role"] for message in talk.messages):
            self._require_known_roles(talk, name)
        text, spans = rendered_with_spans(
            talk, self._templates[name], chat.train_on, mask_reasoning=chat.reasoning == "mask"
        )
        said = texts_of([*talk.messages, talk.tools])
        together = "\n".join(said)
        if any(map(together.__contains__, self._beginnings)):
            for each in said:
                self.spelled.update(self._special.findall(each))
        return text, spans

    def _require_known_roles(self, talk: Conversation, name: str) -> None:
        """Require that each role is one that every template may be given, or that this one asks for."""
        for number, message in enumerate(talk.messages, 1):
            role = message["role"]
            if role not in ROLES and not re.search(f"[\"']{re.escape(role)}[\"']", self._sources[name]):
                raise ConversationError(f"message {number} has the role {role[:40]!r}, which templates do not know")
