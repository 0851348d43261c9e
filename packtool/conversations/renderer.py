"""Render each record's conversation with its chat template, and find the spans that train.

Conversations of one shape are rendered alike, by replaying what the template did with the first of them. The shape of a
conversation is all of it but the texts that its messages hold: roles, names, numbers, which messages may train, and
tools. What the template did with such texts is a recipe (`symbols.py`): steps that make texts of texts, and questions.
It holds for every conversation of the shape for which the answers are the same; for another, the template is rendered.
So a recipe saves time, most of all where a template marks nothing and each beginning of a conversation has to be
rendered: whether one continues another is seen in the recipe, once.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import accumulate, chain, pairwise
from typing import Any

from packtool.conversations.chat import DEFAULT, WITH_TOOLS, Chat
from packtool.conversations.record import (
    ROLES,
    Conversation,
    ConversationError,
    Trained,
    conversation_of,
    texts_of,
    without_reasoning,
    without_tool_calls,
)
from packtool.conversations.spans import Spans, found_spans, rendered_with_spans, trained_spans
from packtool.conversations.symbols import Kind, Step, Trace
from packtool.conversations.template import TRACED, ChatTemplate

_ROLE = "role"
_KEPT = 1 << 25
"""What shapes and recipes hold, in characters and items; when there is more, all are forgotten."""
_TRIES = 8
"""Recipes of a shape, with those that came to nothing."""


class Renderer:
    """Renders the conversations of records.

    Attributes:
        spelled: special tokens that messages spell out, and how often: the tokenizer can't tell them from those that
            the template writes.

    Raises:
        ConversationError: a template is no template.
    """

    def __init__(self, chat: Chat) -> None:
        self._chat = chat
        now = datetime.fromisoformat(chat.date) if chat.date else None
        mask_reasoning = chat.reasoning == "mask"
        self._templates = {
            name: Recipes(
                ChatTemplate(source, dict(chat.tokens), now=now), chat.train_on, mask_reasoning=mask_reasoning
            )
            for name, source in chat.templates
        }
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
        text, spans, said = self._templates[name].rendered(talk)
        said = said + texts_of(talk.tools)
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


class Recipes:
    """Renders conversations, by recipes where there are some.

    Args:
        template: the tokenizer's.
        train_on: see `rendered_with_spans`.
        mask_reasoning: see there; what the assistant thinks is looked for in the text, so there are no recipes.
    """

    def __init__(self, template: ChatTemplate, train_on: Trained, *, mask_reasoning: bool = False) -> None:
        self._template = template
        self._train_on = train_on
        self._mask_reasoning = mask_reasoning
        self._may = template.traceable and not mask_reasoning
        self._recipes: dict[Any, list[Recipe | None]] = {}
        self._kept = 0

    def rendered(self, conversation: Conversation) -> tuple[str, Spans, list[str]]:
        """Render a conversation.

        Returns:
            Its text, and the spans of it that train, as `rendered_with_spans` gives them; the texts that its messages
            hold, but for roles.
        """
        try:
            shape, texts = shape_of(conversation)
            recipes = self._recipes.get(shape)
        except (TypeError, ValueError, RecursionError):  # no JSON, but something else from a table; or too deep
            return *self._directly(conversation), texts_of(conversation.messages)
        small = sum(map(len, texts)) < TRACED
        for recipe in recipes or () if small else ():
            if recipe is not None and (followed := recipe.follow(texts)) is not None:
                return *followed, texts
        rendered = self._directly(conversation)
        if recipes is None:  # many shapes occur but once
            self._keep(len(shape))
            self._recipes[shape] = []
        elif small and len(recipes) < _TRIES:
            recipe = recipe_of(conversation, texts, self._template, self._train_on) if self._may else None
            recipes.append(recipe if recipe is not None and recipe.follow(texts) == rendered else None)
            self._keep(0 if recipe is None else recipe.size)
        return *rendered, texts

    def _keep(self, size: int) -> None:
        self._kept += size
        if self._kept > _KEPT:
            self._recipes.clear()
            self._kept = 0

    def _directly(self, conversation: Conversation) -> tuple[str, Spans]:
        return rendered_with_spans(conversation, self._template, self._train_on, mask_reasoning=self._mask_reasoning)


@dataclass(frozen=True)
class Recipe:
    """How the conversations of one shape become texts, as long as their texts give the same answers.

    Attributes:
        steps: what is done, in this order.
        constants: in slots -1, -2, …
        made: slots that the steps fill, after those of the conversation's texts.
        parts: the slots of which the text is made, one after another.
        spans: first part of each, and the one after the last.
    """

    steps: tuple[Step, ...]
    constants: tuple[Any, ...]
    made: int
    parts: tuple[int, ...]
    spans: tuple[tuple[int, int], ...]

    @property
    def size(self) -> int:
        """Characters and items that it holds."""
        texts = sum(len(each) for each in self.constants if isinstance(each, str))
        return texts + 16 * len(self.steps) + len(self.parts)

    def follow(self, texts: Sequence[str]) -> tuple[str, Spans] | None:
        """Make the text and its spans from a conversation's texts; None if the answers are others."""
        slots = [*texts, *(None,) * self.made, *reversed(self.constants)]
        at = slots.__getitem__
        answer, text = Kind.ANSWER, Kind.TEXT
        for function, inputs, kind, expected, target in self.steps:
            output = function(*map(at, inputs))
            if kind is answer:
                if output is not expected:
                    return None
            elif kind is text:
                slots[target] = output
            elif len(output) != expected:
                return None
            else:
                slots[target : target + expected] = output
        parts = [*map(at, self.parts)]
        places = [0, *accumulate(map(len, parts))]
        return "".join(parts), trained_spans([(places[first], places[last]) for first, last in self.spans])


def recipe_of(
    conversation: Conversation, texts: Sequence[str], template: ChatTemplate, train_on: Trained
) -> Recipe | None:
    """Record what a template does with a conversation; None if it can't be replayed."""
    trace = Trace(texts)
    symbols = iter(trace.symbols())
    messages = tuple(_with(message, symbols.__next__) for message in conversation.messages)
    try:
        text, spans = found_spans(replace(conversation, messages=messages), template.traced(trace), train_on)
        cuts = sorted({0, len(text), *(place for span in spans for place in span)})
        parts = [trace.slots_of(text[begin:end]) for begin, end in pairwise(cuts)]
        number_at = dict(zip(cuts, accumulate(map(len, parts), initial=0), strict=True))
        return Recipe(
            steps=tuple(trace.steps),
            parts=tuple(chain.from_iterable(parts)),
            constants=tuple(trace.constants),
            made=len(trace.values) - len(texts),
            spans=tuple((number_at[begin], number_at[end]) for begin, end in spans),
        )
    except Exception:  # the template is rendered for each conversation, then, and says what is wrong
        return None


def shape_of(conversation: Conversation) -> tuple[Any, list[str]]:
    """Return the shape of a conversation, which can be hashed, and the texts that it holds."""
    texts: list[str] = []
    shape: list[Any] = [conversation.trains, conversation.prompt]
    if conversation.tools is not None:
        shape.append(hashlib.sha256(json.dumps(conversation.tools).encode()).digest())
    for message in conversation.messages:
        _add(message, shape, texts)
    return tuple(shape), texts


def _add(value: Mapping[str, Any], shape: list[Any], texts: list[str]) -> None:
    """Add a JSON object to the shape: its names, and types and contents of values other than text.

    The role is part of the shape.
    """
    for name, each in value.items():
        shape.append(name)
        kind = type(each)
        if kind is str and name != _ROLE:
            texts.append(each)
        elif kind is dict:
            shape.append(dict)
            _add(each, shape, texts)
        elif kind is list:
            shape += list, len(each)
            for item in each:
                _add({"": item}, shape, texts)
        else:
            shape += kind, each
    shape.append(None)


def _with(value: Any, text: Callable[[], Any], name: str = "") -> Any:
    """Copy a JSON value with something else in place of each text, in the order of `shape_of`."""
    if type(value) is str and name != _ROLE:
        return text()
    if type(value) is dict:
        return {key: _with(each, text, key) for key, each in value.items()}
    return [_with(each, text) for each in value] if type(value) is list else value
