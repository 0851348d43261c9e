"""Render a chat template as Transformers does, with the same filters and functions."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from jinja2 import TemplateError

from packtool.conversations.record import ConversationError, texts_of
from packtool.conversations.sandbox import BEGIN, END, LARGEST, STEPS, Environment, Meter
from packtool.conversations.symbols import Trace

CHARACTERS = 1 << 26
"""Of a conversation's text, however long its messages."""
TRACED = 1 << 22
_GROWTH = 8
"""Characters that a template may make of each that it is given."""
_SOURCE = 1 << 20
_REASON = 300
"""Characters of what a template says is wrong."""


@dataclass(frozen=True)
class Rendered:
    """A conversation as text.

    Attributes:
        text: what the template made.
        marked: (begin, end) of what it marks as generated, in characters, ascending.
    """

    text: str
    marked: tuple[tuple[int, int], ...]


class ChatTemplate:
    """A compiled chat template, for one thread.

    Args:
        source: Jinja, as in `chat_template` of tokenizer_config.json or chat_template.jinja.
        tokens: what templates call special tokens, such as bos_token, and their texts.
        now: what `strftime_now` tells; a template that asks is refused where it is None, since the same input must
            give the same text.
        steps: turns of loops, and calls of macros and blocks, in one rendering.

    Attributes:
        marks: it marks what is generated.
        traceable: it can be rendered with symbols.

    Raises:
        ConversationError: it is no template.

    >>> source = "{% for m in messages %}<{{ m.role }}>{% generation %}{{ m.content }}{% endgeneration %}{% endfor %}"
    >>> template = ChatTemplate(source)
    >>> template.render([{"role": "user", "content": "Hi"}])
    Rendered(text='<user>Hi', marked=((6, 8),))
    """

    def __init__(
        self, source: str, tokens: Mapping[str, str] | None = None, *, now: datetime | None = None, steps: int = STEPS
    ) -> None:
        self._tokens = dict(tokens or {})
        self._steps = steps
        self._environment = Environment(now)
        try:
            if len(source) > _SOURCE:
                raise ConversationError(f"the chat template has {len(source):,} characters, more than {_SOURCE:,}")
            self._template = self._environment.from_string(source)
        except (TemplateError, RecursionError) as error:
            raise ConversationError(f"the chat template is no template: {error}") from None
        self.marks = self._environment.marks
        self.traceable = self._environment.traceable
        self._trace: Trace | None = None

    def traced(self, trace: Trace) -> ChatTemplate:
        """Return the same template, to be given symbols of a trace instead of texts.

        What it does not refuse then it refuses for no texts of at most `TRACED` characters.
        """
        other = copy(self)
        other._trace = trace
        return other

    def render(
        self, messages: Sequence[Mapping[str, Any]], tools: list[Any] | None = None, *, prompt: bool = False
    ) -> Rendered:
        """Render messages.

        Args:
            messages, tools: see `Conversation`.
            prompt: end with what comes before the assistant's next message.

        Raises:
            ConversationError: the template refuses them, fails, or does too much.
        """
        largest = min(CHARACTERS, LARGEST + _GROWTH * sum(map(len, texts_of([messages, tools]))))
        if self._trace is not None:
            largest = LARGEST >> 4  # for all but symbols
        self._environment.meter = Meter(self._steps, largest)
        self._environment.trace = self._trace
        if self._trace is not None:
            self._trace.begin(self._environment.meter.weigh)
        parts: list[str] = []
        size = 0
        try:
            for part in self._template.generate(
                messages=[dict(message) for message in messages],
                tools=tools,
                documents=None,
                add_generation_prompt=prompt,
                **self._tokens,
            ):
                parts.append(part)
                size += len(part)
                if size > largest:
                    raise ConversationError(f"the chat template makes more than {largest:,} characters")
        except ConversationError:
            raise
        except Exception as error:  # a template can raise whatever Python can
            why = " ".join(str(error)[:_REASON].split()).rstrip(".") or type(error).__name__
            raise ConversationError(f"the chat template failed: {why}") from None
        text = "".join(parts)
        if self._trace is not None:
            self._trace.touch(text)
        return _unmarked(text)


def _unmarked(text: str) -> Rendered:
    """Return the text without marks, and where they were."""
    if BEGIN not in text and END not in text:
        return Rendered(text, ())
    spans: list[tuple[int, int]] = []
    kept: list[str] = []
    at = depth = begin = 0
    for part in re.split(f"([{BEGIN}{END}])", text):
        if part == BEGIN:
            begin = at if depth == 0 else begin
            depth += 1
        elif part == END:
            depth -= 1
            if depth == 0:
                spans.append((begin, at))
        else:
            kept.append(part)
            at += len(part)
    if depth:
        raise ConversationError("the chat template cuts what it marks as generated")
    return Rendered("".join(kept), tuple(spans))
