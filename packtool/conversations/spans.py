"""Find which characters of a rendered conversation train, and mark the tokens that hold one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from packtool.conversations.record import (
    Conversation,
    ConversationError,
    NothingTrainsError,
    Trained,
    reasoning_of,
)
from packtool.conversations.template import ChatTemplate, Rendered

Spans = tuple[tuple[int, int], ...]
"""(begin, end) in characters, ascending, none overlapping."""
Places = npt.NDArray[np.integer[Any]]


def rendered_with_spans(
    conversation: Conversation, template: ChatTemplate, train_on: Trained = "assistant", *, mask_reasoning: bool = False
) -> tuple[str, Spans]:
    """Render a conversation; return its text, and the spans of it that train.

    Args:
        conversation: as its record has it.
        template: the tokenizer's.
        train_on: `assistant`, each message of the assistant's; `last`, the last of these; `completion`, what follows
            the prompt; `all`, the whole text. Messages that say so never train.
        mask_reasoning: nor does what the assistant thinks.

    Raises:
        ConversationError: nothing would train, or what trains can't be found in the text.

    >>> source = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}"
    >>> source += "{% if add_generation_prompt %}<assistant>{% endif %}"
    >>> chat = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Ho"}]
    >>> talk = Conversation(tuple(chat), (True, True))
    >>> rendered_with_spans(talk, ChatTemplate(source))
    ('<user>Hi<assistant>Ho', ((19, 21),))
    """
    template.begin()
    text, spans = _found_spans(conversation, template, train_on, mask_reasoning)
    return text, _trained_spans(spans)


def _trained_spans(spans: Iterable[tuple[int, int]]) -> Spans:
    """Merge spans that train: leave out empty ones, join those without gaps between them.

    Raises:
        NothingTrainsError: there are none.
    """
    out: list[tuple[int, int]] = []
    for begin, end in spans:
        if begin >= end:
            continue
        if out and begin <= out[-1][1]:
            out[-1] = (out[-1][0], max(end, out[-1][1]))
        else:
            out.append((begin, end))
    if not out:
        raise NothingTrainsError("nothing trains: what is to train is empty in the text")
    return tuple(out)


def _found_spans(
    conversation: Conversation, template: ChatTemplate, train_on: Trained, mask_reasoning: bool
) -> tuple[str, Sequence[tuple[int, int]]]:
    """Render as `rendered_with_spans` does, with spans as they are found: some may be empty, or without gaps between
    them."""
    rendered = template.render(conversation.messages, conversation.tools)
    if train_on == "all":
        if not all(conversation.trains):
            raise ConversationError("a message is not to train, but all of the text is asked for")
        return rendered.text, [(0, len(rendered.text))]
    said = [number for number, message in enumerate(conversation.messages) if message["role"] == "assistant"]
    chosen = _chosen(conversation, said, train_on)
    if train_on == "completion" and not mask_reasoning and all(conversation.trains[conversation.prompt :]):
        begin = _begin(conversation, template, rendered.text, conversation.prompt or 0)
        return rendered.text, [(begin, len(rendered.text))]
    if template.marks and len(said) == len(chosen) and not mask_reasoning:
        return rendered.text, rendered.marked
    spans = (
        _of_marks(rendered, said, chosen)
        if template.marks
        else [_of_prefixes(conversation, template, rendered.text, number) for number in chosen]
    )
    if mask_reasoning:
        messages = [conversation.messages[number] for number in chosen]
        spans = [part for span, one in zip(spans, messages, strict=True) for part in _spoken(rendered.text, span, one)]
    return rendered.text, spans


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


def _spoken(text: str, span: tuple[int, int], message: Mapping[str, Any]) -> list[tuple[int, int]]:
    """Return the span of a message without its reasoning, if the template shows it."""
    thought = (reasoning_of(message) or "").strip()
    at = text.find(thought, *span) if thought else -1
    return [span] if at < 0 else [(span[0], at), (at + len(thought), span[1])]


def _begin(conversation: Conversation, template: ChatTemplate, text: str, number: int) -> int:
    """Find where the text that the assistant generates for one message begins."""
    before = template.render(conversation.messages[:number], conversation.tools, prompt=True).text
    if not text.startswith(before):
        raise ConversationError(
            f"the chat template renders what comes before message {number + 1} differently once it is there, so it "
            "can't be told which tokens train"
        )
    return len(before)


def _of_prefixes(conversation: Conversation, template: ChatTemplate, text: str, number: int) -> tuple[int, int]:
    """Return the span of one message: the text that it adds to the rendering."""
    messages, tools = conversation.messages, conversation.tools
    before = template.render(messages[:number], tools, prompt=True).text
    upto = text if number == len(messages) - 1 else template.render(messages[: number + 1], tools).text
    if not upto.startswith(before) or not text.startswith(upto):
        raise ConversationError(
            f"the chat template renders message {number + 1} differently once others follow it, and marks none "
            "as generated, so it can't be told which tokens train"
        )
    return len(before), len(upto)


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
