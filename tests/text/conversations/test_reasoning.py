"""Reasoning is found in every form that is read."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from packtool.text.conversations.reasoning import THINK, blocks, left_out, thoughts_of
from packtool.text.faults import Fault
from packtool.text.tokenizing.held import Held, held_in
from tests.text.conversations.rendering import PROMPT, renderer, texts
from tests.text.conversations.talks import talk_of

SOURCE = (
    "{% for m in messages %}<{{ m.role }}>{% if m.reasoning_content %}({{ m.reasoning_content }}){% endif %}"
    "{% if m.content is string %}{{ m.content }}{% else %}{% for p in m.content %}{{ p.text or '' }}"
    "{{ '(' ~ p.thinking ~ ')' if p.thinking }}{% endfor %}{% endif %}</s>{% endfor %}" + PROMPT
)
SPLITTING = SOURCE.replace(
    "{{ m.content }}{% else %}",
    "{% set said = m.content.split('</think>') %}"
    "{% if said | length > 1 %}<think>{{ said[0].split('<think>')[-1] | trim }}</think>{% endif %}"
    "{{ said[-1] | trim }}{% else %}",
)
"""As templates do that take the reasoning out of a content themselves."""
FORMS: list[dict[str, Any] | str] = [
    *({"content": "Yes.", name: "RRRR"} for name in ("reasoning_content", "reasoning", "thinking")),
    {"content": [{"type": "thinking", "thinking": "RRRR"}, {"type": "text", "text": "Yes."}]},
    {"content": [{"type": "text", "text": "<think>RRRR</think>Yes."}]},
    "<think>RRRR</think>Yes.",
    "\n<think>\nRRRR\n</think>\n\nYes.",
    "RRRR</think>Yes.",
    "RRRR\n</think>\n\nYes.",
    "<think><think>RRRR</think>Yes.",
    "RRRR<think>RRRR</think>RRRR</think>Yes.",
    'RRRR</think>"Yes." he said.',
    "I write `<think>` RRRR</think>Yes.",
]
"""Messages of the assistant, or their contents."""
LATER = (
    "Yes. <think>RRRR</think>No.",
    "<think>RRRR</think>Yes. <think>RRRR</think>No.",
    "`a` <think> RRRR </think>Yes. No.",
)


def rendered(message: dict[str, Any] | str, source: str = SOURCE, **options: Any) -> tuple[str, str, Any]:
    """The text of a conversation, the part of it that trains, and what it holds."""
    renders = renderer(source, **options)
    said = {"content": message} if isinstance(message, str) else message
    talk = talk_of({"messages": [{"role": "user", "content": "Who?"}, {"role": "assistant", **said}]})
    [document] = renders.rendered(talk)
    return document.text, "".join(texts(document)), held_in(talk, renders.chat, [document.text])


@pytest.mark.parametrize("source", [SOURCE, SPLITTING], ids=["showing", "splitting"])
@pytest.mark.parametrize("message", FORMS, ids=str)
def test_every_form_is_masked_dropped_and_counted(message: dict[str, Any] | str, source: str) -> None:
    text, trained, held = rendered(message, source, reasoning="mask")
    assert "RRRR" in text
    assert "RRRR" not in trained
    assert "Yes." in trained
    assert held.reasoning
    text, trained, held = rendered(message, source, reasoning="drop")
    assert "RRRR" not in text
    assert "think>`" in text or "think" not in text
    assert "Yes." in trained
    assert held.reasoning
    assert rendered(message, source)[2].hidden in (0, 1)  # a template may cut a thought at a tag in it


@pytest.mark.parametrize("content", LATER)
def test_reasoning_anywhere_is_masked_and_dropped(content: str) -> None:
    text, trained, _ = rendered(content, reasoning="mask")
    assert "RRRR" in text
    assert "RRRR" not in trained
    assert "Yes." in trained
    assert "No." in trained
    assert rendered(content, reasoning="drop")[0].endswith("Yes. No.</s>")


@pytest.mark.parametrize(
    "message",
    [
        "The tags `<think>` and `</think>` are for thoughts.",
        "Write '<think>' and \"</think>\".",
        {"content": "I think so.", "finish_reason": "stop", "reasoning_effort": "high", "thinking": ""},
        "<think>\n\n</think>\n\nYes.",
    ],
    ids=str,
)
def test_what_is_no_reasoning_is_left_alone(message: dict[str, Any] | str) -> None:
    text, trained, held = rendered(message, reasoning="mask")
    assert text.endswith(trained)
    assert held[:4] == Held()[:4]


def test_other_tags_are_read_where_they_are_named() -> None:
    tags = (THINK, ("<thought>", "</thought>"), ("[A]", "[/A]"))
    content = "<thought>RRRR</thought><think>RRRR</think>[A]RRRR[/A]Yes."
    _, trained, held = rendered(content, reasoning="mask", tags=tags)
    assert trained == "<thought></thought><think></think>[A][/A]Yes.</s>"
    assert held.reasoning
    assert rendered(content, reasoning="drop", tags=tags)[0].endswith("<assistant>Yes.</s>")
    assert rendered("RRRR[/A]Yes.", reasoning="mask", tags=tags)[1] == "[/A]Yes.</s>"


def test_a_message_of_reasoning_alone_does_not_train_once_it_is_dropped() -> None:
    for message in ("<think>RRRR</think>", {"reasoning_content": "RRRR"}):
        with pytest.raises(Fault, match="nothing trains: no message of the assistant may"):
            rendered(message, reasoning="drop")


@given(st.lists(st.sampled_from(["<think>", "</think>", "a", " ", "`", '"', "\n"]), max_size=12).map("".join))
def test_what_is_left_holds_no_block(text: str) -> None:
    """Blocks are in order and apart, each before a closing tag, and nothing of them is left."""
    found = blocks(text, *THINK)
    last = 0
    for block in found:
        assert last <= block.first <= block.begin <= block.end < block.last
        assert text[block.end : block.last] == THINK[1]
        last = block.last
    left = left_out(text, [THINK])
    assert len(left) <= len(text) - sum(block.last - block.first for block in found)
    assert all(text[thought.begin : thought.end].strip() for thought in thoughts_of({"content": text}))


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("```\n<think>h</think>\n```", "```\n<think>h</think>\n```"),
        ("Write:\n~~~xml\n<think>\nh\n</think>\n~~~\nSo.", "Write:\n~~~xml\n<think>\nh\n</think>\n~~~\nSo."),
        ("<think>h</think>Write:\n```\n<think>x</think>\n```", "Write:\n```\n<think>x</think>\n```"),
        ("<think>```\ncode\n```\nh</think>Yes.", "Yes."),
        ("<think>\n```py\nopen</think>Yes.\n```\nx\n```", "Yes.\n```\nx\n```"),
    ],
)
def test_tags_in_a_block_of_code_are_text_about_tags(text: str, left: str) -> None:
    assert left_out(text, [THINK]) == left
