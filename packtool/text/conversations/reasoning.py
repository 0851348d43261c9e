"""The assistant's reasoning in the forms that records have: find it, replace it, leave it out.

    {"reasoning_content": "Hm.", "content": "Yes."}   a field, also called `thinking` or `reasoning`
    {"type": "thinking", "thinking": "Hm."}           a part of a content
    <think>Hm.</think>Yes.                            between tags, wherever in a text
    Hm.</think>Yes.                                   before a closing tag without an opening one, which the prompt has

Text between other pairs of tags is reasoning only if the user names them (`--reasoning-tags`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from packtool.text.conversations.conversation import Conversation
from packtool.text.conversations.message import REASONING

THINK = ("<think>", "</think>")
Tags = Iterable[tuple[str, str]]
"""Pairs of tags, opening and closing, between which the assistant thinks."""
_FIELDS = frozenset(REASONING)
_QUOTES = frozenset("`'\"")
_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})(.*)$", re.MULTILINE)
"""A line that begins or ends a block of code in Markdown."""


class ThoughtBlock(NamedTuple):
    """Reasoning in a text, in characters: from `begin` to `end`; with its tags from `first` to `last`."""

    first: int
    begin: int
    end: int
    last: int


class Thought(NamedTuple):
    """Reasoning in one place of a message."""

    part: int | None = None  # number of the part of the content; None for a string, or a field
    begin: int | None = None  # its first character; None if all of the part, or of the field, is reasoning
    end: int | None = None  # the character behind its last; None as for `begin`


def blocks(text: str, opening: str, closing: str) -> list[ThoughtBlock]:
    """Find the text between two tags, and the text before a closing tag without an opening one.

    A tag in quotes is text about the tag, and neither opens nor closes reasoning; nor do tags in a block of code that
    reasoning does not contain.

    >>> blocks("<think>Hm.</think>Yes.", "<think>", "</think>"), blocks("Hm.</think>Yes.", "<think>", "</think>")
    ([ThoughtBlock(first=0, begin=7, end=10, last=18)], [ThoughtBlock(first=0, begin=0, end=3, last=11)])
    """
    found: list[ThoughtBlock] = []
    if closing not in text:
        return found
    opened: re.Match[str] | None = None
    fenced = _blocks_of_code(text)
    for tag in re.finditer(f"{re.escape(opening)}|{re.escape(closing)}", text):
        if in_quotes(text, tag) or (opened is None and _is_in(tag, fenced)):
            continue
        if tag[0] == opening:
            opened = opened or tag
        elif opened is None:
            found = [ThoughtBlock(0, 0, tag.start(), tag.end())]  # all that comes before, blocks included
        else:
            if _before(text, opened) not in _QUOTES:  # a quote before it: both tags are in one quotation
                found.append(ThoughtBlock(opened.start(), opened.end(), tag.start(), tag.end()))
            opened = None
    return found


def thoughts_of(message: Mapping[str, Any], tags: Tags = (THINK,)) -> Iterator[Thought]:
    """Yield the reasoning in a message of the assistant, without blanks around it.

    >>> list(thoughts_of({"content": "<think> Hm. </think>Yes."}))
    [Thought(part=None, begin=8, end=11)]
    """
    if not _FIELDS.isdisjoint(message) and any(_is_said(message.get(name)) for name in REASONING):
        yield Thought()
    content = message.get("content")
    if isinstance(content, str):
        yield from _in_text(content, tags)
        return
    for number, part in enumerate(content or ()):
        if "text" in part:
            yield from _in_text(part["text"], tags, number)
        elif _is_said(part["thinking"]):
            yield Thought(number)


def said_in(message: Mapping[str, Any], thought: Thought) -> str:
    """Return the text of a thought.

    >>> message = {"role": "assistant", "content": "<think>Hm.</think>Yes."}
    >>> said_in(message, next(thoughts_of(message)))
    'Hm.'
    """
    content: Any = message.get("content")
    if thought == Thought():
        content = next(filter(_is_said, map(message.get, REASONING)))
    elif thought.part is not None:
        part = content[thought.part]
        content = part.get("thinking", part.get("text"))
    return str(content)[thought.begin : thought.end]


def with_thought(message: Mapping[str, Any], thought: Thought, said: str) -> dict[str, Any]:
    """Return a message with another text in place of a thought.

    >>> message = {"role": "assistant", "content": "<think>Hm.</think>Yes."}
    >>> with_thought(message, next(thoughts_of(message)), "Oh!")
    {'role': 'assistant', 'content': '<think>Oh!</think>Yes.'}
    """
    if thought == Thought():
        return {**message, **{name: said for name in REASONING if name in message}}
    content = message["content"]
    if thought.part is None:
        return {**message, "content": content[: thought.begin] + said + content[thought.end :]}
    parts = list(content)
    part = parts[thought.part]
    if thought.begin is None:
        parts[thought.part] = {**part, "thinking": said}
    else:
        parts[thought.part] = {**part, "text": part["text"][: thought.begin] + said + part["text"][thought.end :]}
    return {**message, "content": parts}


def without_reasoning(conversation: Conversation, tags: Tags = (THINK,)) -> Conversation:
    """Return a conversation without the assistant's reasoning. A message of reasoning alone does not train then.

    >>> talk = Conversation(({"role": "assistant", "content": "<think>Hm.</think>Yes."},), (True,))
    >>> without_reasoning(talk).messages
    ({'role': 'assistant', 'content': 'Yes.'},)
    """
    messages, trains = [], []
    for message, may in zip(conversation.messages, conversation.trains, strict=True):
        kept = {name: value for name, value in message.items() if name not in REASONING}
        content = kept.get("content")
        if message["role"] == "assistant" and isinstance(content, str):
            kept["content"] = left_out(content, tags)
        elif message["role"] == "assistant" and content is not None:
            said = [part for part in content if part["type"] != "thinking"]
            kept["content"] = [{**part, "text": left_out(part["text"], tags)} for part in said]
        messages.append(kept)
        trains.append(may and (kept == message or bool(kept.get("content") or kept.get("tool_calls"))))
    return replace(conversation, messages=tuple(messages), trains=tuple(trains))


def left_out(text: str, tags: Tags) -> str:
    """Return a text without its reasoning, the tags, and the blanks around them.

    >>> left_out("<think>Hm.</think> Yes. <think>Or?</think>\\nYes.", [THINK])
    'Yes. Yes.'
    """
    left = text
    for opening, closing in tags:
        for block in reversed(blocks(left, opening, closing)):  # from the end, so that earlier places stay right
            left = left[: block.first] + left[block.last :].lstrip()
    return text if left == text else left.lstrip()


def _in_text(text: str, tags: Tags, part: int | None = None) -> Iterator[Thought]:
    """Yield the reasoning between tags in a text of a message."""
    for opening, closing in tags:
        for block in blocks(text, opening, closing):
            said = text[block.begin : block.end]
            if _is_said(said):
                begin = block.begin + len(said) - len(said.lstrip())
                yield Thought(part, begin, begin + len(said.strip()))


def _blocks_of_code(text: str) -> list[tuple[int, int]]:
    """Find the blocks of code in a text of Markdown, in characters.

    >>> _blocks_of_code("So:\\n```py\\na\\n```\\n```")
    [(4, 15)]
    """
    found: list[tuple[int, int]] = []
    opened: re.Match[str] | None = None
    for fence in _FENCE.finditer(text):
        if opened is None:
            opened = fence
        elif fence[1].startswith(opened[1]) and not fence[2].strip():
            found.append((opened.start(), fence.end()))
            opened = None
    return found


def _is_in(tag: re.Match[str], spans: Iterable[tuple[int, int]]) -> bool:
    """Return whether a tag lies in one of these spans of its text."""
    inside = False
    for begin, end in spans:
        inside = inside or begin <= tag.start() < end
    return inside


def in_quotes(text: str, tag: re.Match[str]) -> bool:
    """Return whether a tag is between two quotes or backticks."""
    before = _before(text, tag)
    return before in _QUOTES and text.startswith(before, tag.end())


def _before(text: str, tag: re.Match[str]) -> str:
    """Return the character before a tag; "" if the tag begins the text."""
    return text[max(0, tag.start() - 1) : tag.start()]


def _is_said(value: Any) -> bool:
    """Return whether a value is a text that is not blank."""
    return isinstance(value, str) and bool(value.strip())
