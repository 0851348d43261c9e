"""Render conversations, find which characters of them train, and mark the tokens that hold one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import accumulate, count
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from packtool.text.conversations.record import (
    Conversation,
    ConversationError,
    NothingTrainsError,
    Trained,
    reasoning_of,
    with_reasoning,
)
from packtool.text.conversations.template import ChatTemplate, Rendered

Spans = tuple[tuple[int, int], ...]
"""(begin, end) in characters, ascending, none overlapping."""
_OPENED = re.compile(r"[<\[][^<>\[\]\s]*\Z")
_CLOSES = re.compile(r"[^<>\[\]\s]*[>\]]")
"""The beginning of a tag at the end of a text, and the rest of it."""
_THOUGHT_ENDS = "</think>"
Places = npt.NDArray[np.integer[Any]]


class Document(NamedTuple):
    """The rendering of a conversation, or of a part of it.

    Attributes:
        text: rendered.
        spans: of it that train.
        apart: see `Rendered`.
    """

    text: str
    spans: Spans
    apart: Spans = ()


def documents_of(
    conversation: Conversation, template: ChatTemplate, train_on: Trained = "assistant", *, mask_reasoning: bool = False
) -> list[Document]:
    """Render a conversation, and find what trains.

    Args:
        conversation: as its record has it.
        template: the tokenizer's.
        train_on: `assistant`, each message of the assistant's; `last`, the last of these; `completion`, what follows
            the prompt; `all`, the whole text; `each`, each message of the assistant's as the model sees it when it
            generates it. Messages that say so never train.
        mask_reasoning: nor does what the assistant thinks.

    Returns:
        One document; but with `each` one more for each message that the template renders differently once others
        follow: it ends with that message. Messages whose rendering is a beginning of the next share one.

    Raises:
        ConversationError: nothing would train, or what trains can't be found in the text.

    >>> source = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}"
    >>> source += "{% if add_generation_prompt %}<assistant>{% endif %}"
    >>> chat = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Ho"}]
    >>> talk = Conversation(tuple(chat), (True, True))
    >>> documents_of(talk, ChatTemplate(source))
    [Document(text='<user>Hi<assistant>Ho', spans=((19, 21),), apart=())]
    """
    template.begin()
    whole = _render(conversation, template)
    _require_parts(conversation, whole.text)
    _require_strings(conversation, template, whole.text)
    found: list[tuple[Rendered, Sequence[tuple[int, int]]]]
    if train_on != "each":
        found = [(whole, _found_spans(conversation, template, whole, train_on, mask_reasoning))]
    else:
        found = _each(conversation, template, whole, mask_reasoning)
    documents = [Document(rendering.text, _trained_spans(spans), rendering.apart) for rendering, spans in found]
    if trained := [document for document in documents if document.spans]:
        return trained
    raise NothingTrainsError("nothing trains: what is to train is empty in the text")


def _render(
    conversation: Conversation, template: ChatTemplate, count: int | None = None, *, prompt: bool = False
) -> Rendered:
    """Render the first `count` messages, or all."""
    messages = conversation.messages[:count]
    return template.render(messages, conversation.tools, prompt=prompt, arguments=conversation.arguments)


def _require_parts(conversation: Conversation, text: str) -> None:
    """Require that contents in parts are in the text: templates for strings write out the list, or nothing."""
    for number, message in enumerate(conversation.messages, 1):
        content = message.get("content")
        if not isinstance(content, list):
            continue
        said = [_answer(part["text"]) for part in content if "text" in part]
        if str(content) in text or not all(spoken in text for spoken in said):
            raise ConversationError(
                f"the chat template takes no content in parts, as message {number} has it: join them to one string"
            )


def _require_strings(conversation: Conversation, template: ChatTemplate, text: str) -> None:
    """Require that contents that are strings are in the text: templates for parts alone, as those of models that see
    images, find none in a string and leave it out."""
    messages = conversation.messages
    strings = (message["content"] for message in messages if isinstance(message.get("content"), str))
    longest = max((_answer(content) for content in strings), key=len, default="")
    if longest in text:
        return
    in_parts = [
        {**message, "content": [{"type": "text", "text": message["content"]}]}
        if isinstance(message.get("content"), str)
        else message
        for message in messages
    ]
    try:
        shown = longest in _render(replace(conversation, messages=tuple(in_parts)), template).text
    except ConversationError:
        return  # it is changed by a template that takes no parts
    if shown:
        raise ConversationError(
            'the chat template takes content in parts alone: write it as [{"type": "text", "text": "…"}]'
        )


def _answer(content: str) -> str:
    """Return what follows the reasoning, which templates may leave out."""
    return content.rpartition(_THOUGHT_ENDS)[2].strip()


def _trained_spans(spans: Iterable[tuple[int, int]]) -> Spans:
    """Merge spans that train: leave out empty ones, join those without gaps between them."""
    out: list[tuple[int, int]] = []
    for begin, end in spans:
        if begin >= end:
            continue
        if out and begin <= out[-1][1]:
            out[-1] = (out[-1][0], max(end, out[-1][1]))
        else:
            out.append((begin, end))
    return tuple(out)


def _found_spans(
    conversation: Conversation, template: ChatTemplate, rendered: Rendered, train_on: Trained, mask_reasoning: bool
) -> Sequence[tuple[int, int]]:
    """Find what trains of a conversation as it is rendered whole; some spans may be empty, or without gaps between
    them."""
    if train_on == "all":
        if not all(conversation.trains):
            raise ConversationError("a message is not to train, but all of the text is asked for")
        return [(0, len(rendered.text))]
    said = _said(conversation)
    chosen = _chosen(conversation, said, train_on)
    if train_on == "completion" and not mask_reasoning and all(conversation.trains[conversation.prompt :]):
        return [(_begin(conversation, template, rendered.text, conversation.prompt or 0), len(rendered.text))]
    if template.marks and len(said) == len(chosen) and not mask_reasoning:
        return rendered.marked
    spans = (
        _of_marks(rendered, said, chosen)
        if template.marks
        else [_of_prefixes(conversation, template, rendered.text, number) for number in chosen]
    )
    if mask_reasoning:
        return _without_reasoning(conversation, template, rendered.text, chosen, spans)
    return spans


def _each(
    conversation: Conversation, template: ChatTemplate, whole: Rendered, mask_reasoning: bool
) -> list[tuple[Rendered, Sequence[tuple[int, int]]]]:
    """Render up to each message that trains, and join those that are the beginning of the next."""
    out: list[tuple[Rendered, Sequence[tuple[int, int]]]] = []
    for number in _chosen(conversation, _said(conversation), "assistant"):
        until = replace(
            conversation,
            messages=conversation.messages[: number + 1],
            trains=conversation.trains[: number + 1],
        )
        upto = _render(until, template)
        spans: Sequence[tuple[int, int]] = (
            _of_marks(upto, _said(until), [number])
            if template.marks
            else [(_begin(until, template, upto.text, number), len(upto.text))]
        )
        if mask_reasoning:
            spans = _without_reasoning(until, template, upto.text, [number], spans)
        before = out.pop() if out and upto.text.startswith(out[-1][0].text) else (upto, [])
        out.append((upto, [*before[1], *spans]))
    last, trained = out[-1]
    if whole.text.startswith(last.text):  # what follows is only read
        out[-1] = (whole, trained)
    return out


def _said(conversation: Conversation) -> list[int]:
    """List the assistant's messages."""
    return [number for number, message in enumerate(conversation.messages) if message["role"] == "assistant"]


def _chosen(conversation: Conversation, said: Sequence[int], train_on: Trained) -> list[int]:
    """List the messages that train."""
    if train_on == "completion":
        if conversation.prompt is None:
            raise ConversationError("no completion: the record has no prompt and completion")
        wanted = [number for number in said if number >= conversation.prompt]
    else:
        wanted = list(said[-1:] if train_on == "last" else said)
    chosen = [number for number in wanted if conversation.trains[number]]
    if not chosen:
        raise NothingTrainsError("nothing trains: no message of the assistant" + " may" * bool(wanted))
    return chosen


def _of_marks(rendered: Rendered, said: Sequence[int], chosen: Sequence[int]) -> list[tuple[int, int]]:
    if len(rendered.marked) != len(said):
        what = f"the chat template marks {len(rendered.marked)} spans for {len(said)} messages of the assistant"
        raise ConversationError(f"{what}, so it can't be told which of them train")
    return [rendered.marked[place] for place, number in enumerate(said) if number in chosen]


def _without_reasoning(
    conversation: Conversation,
    template: ChatTemplate,
    text: str,
    chosen: Sequence[int],
    spans: Sequence[tuple[int, int]],
) -> list[tuple[int, int]]:
    """Return the spans without what the template makes of the reasoning of the chosen messages."""
    out = list(spans)
    for number in chosen:
        for begin, end in _reasoning(conversation, template, text, number):
            out = [part for a, b in out for part in ((a, min(b, begin)), (max(a, end), b)) if part[0] < part[1]]
    return out


def _reasoning(conversation: Conversation, template: ChatTemplate, text: str, number: int) -> list[tuple[int, int]]:
    """Find what the template makes of a message's reasoning, by a rendering with a mark in its place."""
    message = conversation.messages[number]
    if not (reasoning_of(message) or "").strip():
        return []
    mark = next(mark for mark in map("\ufdd2{}\ufdd3".format, count()) if mark not in text)
    messages = list(conversation.messages)
    messages[number] = with_reasoning(message, mark)
    marked = _render(replace(conversation, messages=tuple(messages)), template).text
    first, *others = marked.split(mark)
    if not others and marked == text:
        return []  # it is not shown
    size, rest = divmod(len(text) - len(marked) + len(mark) * len(others), max(1, len(others)))
    shown = text[len(first) : len(first) + size]
    if not others or rest or size < 0 or shown.join([first, *others]) != text:
        raise ConversationError(
            f"the chat template changes more of its text with the reasoning of message {number + 1}, so it can't be "
            "told which tokens are reasoning"
        )
    begins = accumulate(map(len, others[:-1]), lambda at, length: at + size + length, initial=len(first))
    return [(begin, begin + size) for begin in begins]


def _begin(conversation: Conversation, template: ChatTemplate, text: str, number: int) -> int:
    """Find where the text that the assistant generates for one message begins.

    What a template puts before it is mostly the beginning of the text. Some end it with more, such as an opened tag,
    which the text does not have; then what both begin with comes before it.

    Args:
        text: up to the end of this message, or further.
    """
    before = _render(conversation, template, number, prompt=True).text
    if text.startswith(before):
        return len(before)
    shared = _shared(before, text)
    opened = _OPENED.search(before, 0, shared)
    if opened and _CLOSES.match(before, shared):  # two tags that begin alike share neither
        shared = opened.start()
    if shared < len(_render(conversation, template, number).text):
        raise ConversationError(
            f"the chat template renders what comes before message {number + 1} differently once it is there, so it "
            "can't be told which tokens train"
        )
    return shared


def _shared(one: str, other: str) -> int:
    """Count the characters that two texts begin with.

    >>> _shared("abcd", "abx"), _shared("", "a")
    (2, 0)
    """
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _of_prefixes(conversation: Conversation, template: ChatTemplate, text: str, number: int) -> tuple[int, int]:
    """Return the span of one message: the text that it adds to the rendering."""
    last = number == len(conversation.messages) - 1
    upto = text if last else _render(conversation, template, number + 1).text
    begin = _begin(conversation, template, upto, number)
    if not text.startswith(upto):
        raise ConversationError(
            f"the chat template renders message {number + 1} differently once others follow it, and marks none "
            "as generated, so it can't be told which tokens train: give --train-on each or last"
        )
    return begin, len(upto)


def token_mask(begins: Places, ends: Places, spans: npt.ArrayLike) -> npt.NDArray[np.uint8]:
    """Mark with 1 each token that has a character in a span, as Transformers masks them.

    Args:
        begins, ends: of each token, in characters (or bytes, as the spans); each ascending.
        spans: (spans, 2), begin and end of each, ascending, none overlapping.

    >>> token_mask(np.array([0, 2, 4, 5]), np.array([2, 4, 5, 8]), ((3, 5),))
    array([0, 1, 1, 0], dtype=uint8)
    """
    bounds = np.asarray(spans, np.int64).reshape(-1, 2)
    bounds = bounds[bounds[:, 0] < bounds[:, 1]]
    first = np.searchsorted(ends, bounds[:, 0], side="right")
    last = np.searchsorted(begins, bounds[:, 1], side="left")
    # Tokens over two spans are the last of one and the first of the next.
    depth = np.zeros(len(begins) + 1, np.int32)
    np.add.at(depth, first, 1)
    np.subtract.at(depth, last, 1)
    return ((np.cumsum(depth[:-1], out=depth[:-1]) > 0) & (ends > begins)).view(np.uint8)
