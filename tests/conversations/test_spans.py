"""What trains, from marks and from renderings of the beginnings of a conversation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from packtool.conversations.record import ConversationError, Trained, conversation_of
from packtool.conversations.spans import rendered_with_spans, token_mask
from packtool.conversations.template import ChatTemplate

PLAIN = (
    "{% for m in messages %}<{{ m.role }}>{{ m.content }}</>{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}"
)
MARKED = (
    "{% for m in messages %}<{{ m.role }}>{% if m.role == 'assistant' %}{% generation %}{{ m.content }}</>"
    "{% endgeneration %}{% else %}{{ m.content }}</>{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}"
)
FORGETFUL = (
    "{% for m in messages %}<{{ m.role }}>{{ m.content if loop.last or m.role == 'user' }}</>{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}"
)


def talk(*contents: str, **last: Any) -> dict[str, Any]:
    messages: list[dict[str, Any]] = [
        {"role": ("user", "assistant")[number % 2], "content": content} for number, content in enumerate(contents)
    ]
    messages[-1] |= last
    return {"messages": messages}


def trained(record: dict[str, Any], source: str, train_on: Trained = "assistant") -> list[str]:
    text, spans = rendered_with_spans(conversation_of(record), ChatTemplate(source), train_on)
    return [text[begin:end] for begin, end in spans]


@pytest.mark.parametrize("source", [PLAIN, MARKED])
def test_what_is_asked_for_trains(source: str) -> None:
    record = talk("a", "b", "c", "d")
    assert trained(record, source) == ["b</>", "d</>"]
    assert trained(record, source, "last") == ["d</>"]
    assert trained(record, source, "all") == ["<user>a</><assistant>b</><user>c</><assistant>d</>"]
    assert trained({"prompt": "a", "completion": "b"}, source, "completion") == ["b</>"]
    shots = {"prompt": talk("a", "b", "c")["messages"], "completion": "d"}
    assert trained(shots, source, "completion") == ["d</>"]
    assert trained(talk("a", "b", "c", "d", train=False), source) == ["b</>"]
    assert trained(talk("a", "b", "c", "d", weight=0), source) == ["b</>"]


@given(st.lists(st.text(), min_size=2))
def test_marks_and_renderings_agree(contents: list[str]) -> None:
    """Where a template marks what it generates, the marks are what renderings of its beginnings give."""
    if len(contents) % 2:
        contents.pop()
    assert trained(talk(*contents), PLAIN) == trained(talk(*contents), MARKED)


@pytest.mark.parametrize(
    ("record", "source", "train_on", "message"),
    [
        (
            talk("a", "b", "c", "d"),
            FORGETFUL,
            "assistant",
            "the chat template renders message 2 differently once others",
        ),
        (talk("a"), PLAIN, "assistant", "nothing trains: no message of the assistant"),
        (talk("a", "b", train=False), PLAIN, "assistant", "nothing trains: no message of the assistant may"),
        (talk("a", "b"), PLAIN, "completion", "no completion: the record has no prompt and completion"),
        (talk("a", "b", train=False), PLAIN, "all", "a message is not to train, but all of the text is asked for"),
        (
            talk("a", "b", "c", "d"),
            "{% generation %}{{ messages[1].content }}{% endgeneration %}",
            "last",
            "the chat template marks 1 spans for 2 messages of the assistant",
        ),
    ],
)
def test_what_cannot_be_told_is_refused(record: dict[str, Any], source: str, train_on: Trained, message: str) -> None:
    with pytest.raises(ConversationError) as error:
        trained(record, source, train_on)
    assert str(error.value).startswith(message)


def test_the_last_message_trains_where_only_earlier_ones_are_rendered_differently() -> None:
    assert trained(talk("a", "b", "c", "d"), FORGETFUL, "last") == ["d</>"]


@given(
    st.lists(st.integers(0, 4), min_size=1, max_size=30),
    st.lists(st.tuples(st.integers(0, 3), st.integers(1, 5)), max_size=6),
)
def test_a_token_trains_where_one_of_its_characters_does(sizes: list[int], gaps: list[tuple[int, int]]) -> None:
    ends = np.cumsum(sizes)
    begins = ends - sizes
    spans, at = [], 0
    for gap, size in gaps:
        spans.append((at + gap, at + gap + size))
        at += gap + size
    inside = {character for begin, end in spans for character in range(begin, end)}
    naive = [
        int(any(character in inside for character in range(begin, end)))
        for begin, end in zip(begins, ends, strict=True)
    ]
    assert token_mask(begins, ends, spans).tolist() == naive
