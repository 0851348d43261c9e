"""Say where the parts of a document lie in a record: the names that are known, and the paths that options name."""

from __future__ import annotations

import shlex
from collections.abc import Collection
from functools import lru_cache
from typing import Any

import msgspec
from msgspec import structs

from packtool.spelling import flag

TEXT = "text"
"""The field with a text."""
MESSAGES = ("messages", "conversations", "conversation")
"""Fields with a list of messages, which may be JSON in a string."""
PROMPTS = ("instruction", "prompt", "question", "query", "problem", "input")
"""Fields with a prompt, a text or messages, if an answer lies beside it."""
ANSWERS = ("completion", "response", "answer", "solution", "generated_solution", "output")
"""Fields with the answer to a prompt."""
CONTEXT = "context"
INSTRUCTION = ("instruction", "input", CONTEXT)
"""An instruction, and the fields whose text follows it, as Alpaca and Dolly have them."""
SYSTEM = ("system", "system_prompt")
"""Fields with a text that becomes the first message."""
TOOLS, HISTORY, REASONING, ARGUMENTS = "tools", "history", "reasoning_content", "chat_template_kwargs"
"""Fields with JSON schemas of tools, and with arguments of the template; beside a prompt and its answer also with what
comes before, and with the reasoning before the answer."""
PREFERENCE = ("chosen", "rejected")
"""Fields with two answers, of which the first is the better."""
LABELS = ("label", "ktotag")
"""Fields that may say that an answer is a bad one, by the letters of their names, in whatever case."""
MEDIA = ("image", "images", "video", "videos", "audio", "audios")
"""Fields of a record, or of a message, with what is no text."""
MARKS = ("train", "weight", "loss", "loss_mask", "mask", "masks", "weights")
"""Fields of a record that may say what trains, and are not obeyed."""
MESSAGE_MARKS = ("loss", "training", "trainable", "mask")
"""Fields of a message that may say so, and are obeyed only by name."""
OF_MESSAGE = " of a message"
"""What stands behind the name of a field of a message, where fields of the record are listed, too."""
NAMES = (TEXT, *MESSAGES, *PROMPTS, *ANSWERS, CONTEXT, *SYSTEM, TOOLS, HISTORY, REASONING, ARGUMENTS, *PREFERENCE)
"""The fields whose values tell what a record holds, or are a part of it."""


class RecordLayout(msgspec.Struct, frozen=True, cache_hash=True):
    """Where the parts of a document lie in a record: paths, as `value_at` follows them.

    One without a text, messages and a completion is that of conversations that each record names for itself.
    """

    messages: str = ""  # the messages; "" where a prompt and its answer are apart
    prompt: tuple[str, ...] = ()  # messages, or texts, joined with a newline where they are not empty
    completion: str = ""  # the answer
    system: str = ""  # what the system says, or "" for the usual names
    history: str = ""  # messages, or [question, answer] pairs, that come before; "" for the usual name
    tools: str = ""  # JSON schemas of tools, or "" for the usual name
    reasoning: str = ""  # the assistant's reasoning before the answer, or "" for the usual name
    turn: tuple[str, ...] = ()  # paths in a message to who speaks, what, and whether it trains; () for the usual names
    text: str = ""  # the text of a record that is no conversation

    @property
    def by_name(self) -> bool:
        """Whether each record is a conversation by the names of its fields."""
        return not (self.messages or self.completion or self.text)

    @property
    def paths(self) -> tuple[str, ...]:
        """Every path that it names in a record."""
        return _paths(self)

    @property
    def mark(self) -> str:
        """What says in a message whether it trains, as lists of fields have it; "" for the usual names."""
        return self.turn[2] + OF_MESSAGE if len(self.turn) > 2 else ""

    @property
    def optional(self) -> tuple[str, ...]:
        """What options name that some records may lack, but not all."""
        named = (self.system, self.history, self.tools, self.reasoning, self.mark)
        return (*filter(None, named), *(self.prompt if len(self.prompt) > 1 else ()))

    def lacking(self, held: Collection[str]) -> str:
        """Say what a record lacks that has something at these paths; "" if nothing.

        >>> RecordLayout(prompt=("q", "input"), completion="a").lacking(["q"])
        "no field 'a' with the answer"
        """
        if self.by_name:
            return "no conversation" if set(held).isdisjoint((*MESSAGES, *ANSWERS)) else ""
        if self.messages:
            return "" if self.messages in held else f"no field {self.messages!r} with a conversation"
        if self.completion not in held:
            return f"no field {self.completion!r} with the answer"
        if set(held).isdisjoint(self.prompt):
            return f"no field {' or '.join(map(repr, self.prompt))} with the prompt"
        return ""

    def options(self) -> dict[str, Any]:
        """Return the options that ask for it, by name."""
        named = {
            "text_field": self.text,
            "conversations": self.messages,
            "prompt": self.prompt,
            "completion": self.completion,
            "system": self.system,
            "history": self.history,
            "tools": self.tools,
            "reasoning_field": self.reasoning,
            "message_fields": self.turn,
        }
        return {name: value for name, value in named.items() if value}


@lru_cache(1 << 8)
def shown(layout: RecordLayout) -> str:
    """Write a layout as options.

    >>> shown(RecordLayout(prompt=("instruction", "input"), completion="output"))
    '--prompt=instruction,input --completion=output'
    >>> shown(RecordLayout("data.turns", turn=("speaker", "text")))
    '--conversations=data.turns --message-fields=speaker,text'
    """
    words = []
    for name, value in layout.options().items():
        text = value if isinstance(value, str) else ",".join(value)
        words.append(f"{flag(name)}={shlex.quote(text)}")
    return " ".join(words)


@lru_cache(1 << 8)
def _paths(layout: RecordLayout) -> tuple[str, ...]:
    named = (layout.messages, *layout.prompt, layout.completion)
    return tuple(filter(None, (*named, layout.system, layout.history, layout.tools, layout.reasoning)))


@lru_cache(1 << 8)
def with_beside(layout: RecordLayout, named: RecordLayout) -> RecordLayout:
    """Return a layout with what options name beside a conversation.

    >>> shown(with_beside(RecordLayout("messages"), RecordLayout(system="rules")))
    '--conversations=messages --system=rules'
    """
    return structs.replace(
        layout, system=named.system, history=named.history, tools=named.tools, reasoning=named.reasoning
    )


BY_NAME = RecordLayout()
"""The layout of conversations that each record names for itself."""
TEXTS = RecordLayout(text=TEXT)


@lru_cache(1 << 8)
def beside(layout: RecordLayout) -> tuple[str, ...]:
    """Return the fields that are read beside a layout by their usual names, if a record has them.

    >>> beside(RecordLayout(prompt=("q",), completion="a", system="sys"))
    ('tools', 'chat_template_kwargs', 'history', 'reasoning_content')
    """
    names = [ARGUMENTS]
    if not layout.tools:
        names.insert(0, TOOLS)
    if not layout.system:
        names += SYSTEM
    if not layout.messages and not layout.history:
        names.append(HISTORY)
    if not layout.messages and not layout.reasoning:
        names.append(REASONING)
    return tuple(name for name in names if name not in layout.paths)
