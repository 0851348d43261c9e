"""Which characters of a rendered conversation train, and which tokens these are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt

from packtool.conversations.record import Conversation, ConversationError
from packtool.conversations.template import ChatTemplate, Rendered

Spans = tuple[tuple[int, int], ...]
"""(begin, end) in characters, ascending, none overlapping."""
Trained = Literal["assistant", "all", "last", "completion"]


def rendered_with_spans(
    conversation: Conversation, template: ChatTemplate, train_on: Trained = "assistant"
) -> tuple[str, Spans]:
    """The text of a conversation, and the spans of it that train.

    Args:
        conversation: as its record has it.
        template: the tokenizer's.
        train_on: `assistant`, each message of the assistant's; `last`, the last of these; `completion`, those after the
            prompt; `all`, the whole text. Messages that say so never train.

    Raises:
        ConversationError: nothing would train, or what trains can't be found in the text.

    >>> source = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}"
    >>> source += "{% if add_generation_prompt %}<assistant>{% endif %}"
    >>> chat = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Ho"}]
    >>> talk = Conversation(tuple(chat), (True, True))
    >>> rendered_with_spans(talk, ChatTemplate(source))
    ('<user>Hi<assistant>Ho', ((19, 21),))
    """
    rendered = template.render_conversation(conversation)
    if train_on == "all":
        if not all(conversation.trains):
            raise ConversationError("a message is not to train, but all of the text is asked for")
        return rendered.text, ((0, len(rendered.text)),)
    said = [number for number, message in enumerate(conversation.messages) if message["role"] == "assistant"]
    chosen = _chosen(conversation, said, train_on)
    if rendered.marked:
        return rendered.text, _of_marks(rendered, said, chosen)
    return rendered.text, _joined([_of_prefixes(conversation, template, rendered.text, number) for number in chosen])


def token_mask(offsets: npt.NDArray[np.int64], spans: Spans) -> npt.NDArray[np.uint8]:
    """1 for each token that has a character in a span, as Transformers masks them.

    Args:
        offsets: (tokens, 2), the characters of each: begin and end.
        spans: in characters.

    >>> token_mask(np.array([[0, 2], [2, 4], [4, 5], [5, 8]]), ((3, 5),))
    array([0, 1, 1, 0], dtype=uint8)
    """
    bounds = np.array(spans, np.int64).reshape(-1, 2)
    begin, end = offsets[:, 0], offsets[:, 1]
    # Of the spans that end after a token begins, the first is the one it may lie in.
    near = np.searchsorted(bounds[:, 1], begin, side="right")
    reached = np.append(bounds[:, 0], np.iinfo(np.int64).max)[near]
    return ((end > reached) & (end > begin)).astype(np.uint8)


def _chosen(conversation: Conversation, said: Sequence[int], train_on: Trained) -> list[int]:
    """The messages that train."""
    if train_on == "completion":
        if conversation.prompt is None:
            raise ConversationError("no completion: the record has no prompt and completion")
        wanted = [number for number in said if number >= conversation.prompt]
    else:
        wanted = list(said[-1:] if train_on == "last" else said)
    chosen = [number for number in wanted if conversation.trains[number]]
    if not chosen:
        raise ConversationError("nothing trains: no message of the assistant" + " may" * bool(wanted))
    return chosen


def _of_marks(rendered: Rendered, said: Sequence[int], chosen: Sequence[int]) -> Spans:
    if len(said) == len(chosen):
        return _joined([span for span in rendered.marked if span[0] < span[1]])
    if len(rendered.marked) != len(said):
        what = f"the chat template marks {len(rendered.marked)} spans for {len(said)} messages of the assistant"
        raise ConversationError(f"{what}, so it can't be told which of them train")
    return _joined([rendered.marked[place] for place, number in enumerate(said) if number in chosen])


def _of_prefixes(conversation: Conversation, template: ChatTemplate, text: str, number: int) -> tuple[int, int]:
    """The span of one message: what the text has more with it than without."""
    messages, tools = conversation.messages, conversation.tools
    before = template.render(messages[:number], tools, prompt=True).text
    upto = template.render(messages[: number + 1], tools).text
    if not upto.startswith(before) or not text.startswith(upto):
        raise ConversationError(
            f"the chat template renders message {number + 1} differently once others follow it, and marks none "
            "as generated, so it can't be told which tokens train"
        )
    return len(before), len(upto)


def _joined(spans: Sequence[tuple[int, int]]) -> Spans:
    """Spans without gaps between them as one."""
    out: list[tuple[int, int]] = []
    for begin, end in spans:
        if out and begin <= out[-1][1]:
            out[-1] = (out[-1][0], max(end, out[-1][1]))
        else:
            out.append((begin, end))
    return tuple(out)
