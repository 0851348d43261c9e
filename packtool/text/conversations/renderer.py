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

from packtool.text.conversations.chat import DEFAULT, WITH_TOOLS, Chat, any_of
from packtool.text.conversations.conversation import ROLES, Conversation, texts_of, without_tool_calls
from packtool.text.conversations.ends import Ends
from packtool.text.conversations.message import known_role
from packtool.text.conversations.reasoning import without_reasoning
from packtool.text.conversations.spans import Document, documents_of
from packtool.text.conversations.template import ChatTemplate
from packtool.text.faults import bad_conversation, unsuited


class Renderer:
    """Renders conversations as documents.

    Args:
        chat: how conversations become texts.
        unsafe: control tokens that the tokenizer makes even of text that it is told to encode as plain text.

    Attributes:
        chat: as given.
        spelled: control tokens that messages spell, and how often: the tokenizer can't tell them from the tokens that
            the template writes. Tokens that are not special, such as tags of reasoning, count in messages of others
            than the assistant only.
    """

    def __init__(self, chat: Chat, unsafe: Collection[str] = ()) -> None:
        self.chat = chat
        now = datetime.fromisoformat(chat.date) if chat.date else None
        # `apart` of a rendering serves to encode control tokens as text, and costs time.
        control = chat.control if chat.as_text else ()
        self._compiled = partial(ChatTemplate, tokens=dict(chat.tokens), now=now, control=control)
        self._templates: dict[str, ChatTemplate] = {}
        self._sources = dict(chat.templates)
        self._arguments: dict[str, Any] = json.loads(chat.arguments)
        self._ends = Ends(chat.special, chat.stops)
        self._special, self._control = any_of(chat.special), any_of({*chat.special, *chat.control})
        # Two characters tell that most texts spell no control token, in a fraction of the time of a regex.
        self._beginnings = tuple({token[:2] for token in (*chat.special, *chat.control)})
        self._unsafe = any_of(unsafe) if unsafe else None
        self.spelled: Counter[str] = Counter()

    def rendered(self, talk: Conversation) -> list[Document]:
        """Render a conversation, and return its documents.

        Raises:
            Fault: it can't be rendered, or nothing would train; its template is invalid.
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
        name = self._template_of(talk)
        masked = chat.tags if chat.reasoning == "mask" else ()
        if name not in self._templates:
            self._templates[name] = self._compiled(self._sources[name])
        template = self._templates[name]
        for argument in sorted(talk.arguments.keys() - template.asks_for):
            if any(texts_of(talk.arguments[argument])):
                raise unsuited(f"the chat template does not use {argument!r}, which chat_template_kwargs gives it")
        documents = documents_of(talk, template, chat.train_on, ends=self._ends, masked=masked)
        together = "\n".join(talk.texts())
        if any(map(together.__contains__, self._beginnings)):
            self._look_for_tokens(talk, together)
        return documents

    def _look_for_tokens(self, talk: Conversation, together: str) -> None:
        """Count the control tokens that texts spell; if they become plain text, refuse tokens that can't.

        Args:
            together: all texts of the conversation.
        """
        if self.chat.as_text:
            found = self._unsafe and self._unsafe.search(together)
            if found:
                raise bad_conversation(f"it spells {found[0]!r}, which the tokenizer makes of plain text, too")
            return
        for message in [*talk.messages, {"role": "", "given": [talk.tools, talk.arguments]}]:
            tokens = self._special if message["role"] == "assistant" else self._control
            for text in texts_of(message):
                self.spelled.update(tokens.findall(text))

    def with_known_roles(self, talk: Conversation) -> Conversation:
        """Return the conversation with roles that all templates know, or that the source of this template names.

        `User` and `Chatbot`, as Cohere writes them, are user and assistant.

        Raises:
            Fault: a role is another.
        """
        if ROLES.issuperset(message["role"] for message in talk.messages):
            return talk
        source = self._sources[self._template_of(talk)]
        messages = []
        for number, message in enumerate(talk.messages, 1):
            role = message["role"]
            if role not in ROLES and not re.search(f"[\"']{re.escape(role)}[\"']", source):
                role = known_role(role, number)
            messages.append({**message, "role": role})
        return replace(talk, messages=tuple(messages))

    def _template_of(self, talk: Conversation) -> str:
        """Return the name of the template that renders a conversation, whose tools may still have to be dropped."""
        if talk.tools is None or self.chat.tool_calls == "drop" or WITH_TOOLS not in self._sources:
            return DEFAULT
        return WITH_TOOLS
