"""What trains, from marks and from renderings of the beginnings of a conversation."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from packtool.text.conversations.reasoning import THINK
from packtool.text.conversations.spans import documents_of
from packtool.text.conversations.template import ChatTemplate
from packtool.text.faults import Fault
from packtool.text.tokenizing.conversations import token_mask
from tests.text.conversations.fuzz import talk
from tests.text.conversations.rendering import ENDS, MARKED, PLAIN, documents, showing, texts, trained
from tests.text.conversations.talks import talk_of


@pytest.mark.parametrize("source", [PLAIN, MARKED])
def test_what_is_asked_for_trains(source: str) -> None:
    record = talk("a", "b", "c", "d")
    assert trained(record, source) == ["b</s>", "d</s>"]
    assert trained(record, source, "last") == ["d</s>"]
    assert trained(record, source, "all") == ["<user>a</s><assistant>b</s><user>c</s><assistant>d</s>"]
    assert trained({"prompt": "a", "completion": "b"}, source, "completion") == ["b</s>"]
    shots = {"prompt": talk("a", "b", "c")["messages"], "completion": "d"}
    assert trained(shots, source, "completion") == ["d</s>"]
    for mark in ({"train": False}, {"weight": 0}):
        assert trained(talk("a", "b", "c", "d", **mark), source) == ["b</s>"]


@given(st.lists(st.text(), min_size=2))
def test_marks_and_renderings_agree(contents: list[str]) -> None:
    """Where a template marks what it generates, the marks are what renderings of its beginnings give."""
    if len(contents) % 2:
        contents.pop()
    assert trained(talk(*contents), PLAIN) == trained(talk(*contents), MARKED)


THINKING = PLAIN.replace(
    "{{ m.content",
    "{% if m.reasoning_content and loop.last %}<think>{{ m.reasoning_content | trim }}</think>{% endif %}{{ m.content",
)
"""As reasoning models have them: earlier reasoning is left out."""


def reasoned(*answers: str) -> dict[str, Any]:
    messages: list[dict[str, Any]] = []
    for number, answer in enumerate(answers):
        messages.append({"role": "user", "content": f"q{number}"})
        messages.append({"role": "assistant", "content": answer, "reasoning_content": f" r{number} "})
    return {"messages": messages}


MOVING = (
    "{{ messages[0].content }}{% generation %}{{ messages[1].content }}{{ messages[3].content }}"
    "{% endgeneration %}{{ messages[2].content }}"
)
COUNTING = "{{ messages | length }}" + PLAIN
LENGTHS = showing("(m.reasoning_content or '') | length }}{{ m.content")
FOR_PARTS = PLAIN.replace("{{ m.content }}", "{% for p in m.content %}{{ p.text if p.type == 'text' }}{% endfor %}")
UNTRAINED = talk("a", "b", train=False)
REFUSED: list[tuple[dict[str, Any], str, dict[str, Any], str]] = [
    (reasoned("a", "b"), THINKING, {}, "the chat template renders message 2 differently once others follow it"),
    (talk("a"), PLAIN, {}, "nothing trains: no message of the assistant"),
    (UNTRAINED, PLAIN, {}, "nothing trains: no message of the assistant may"),
    (talk("a", "b"), PLAIN, {"train_on": "completion"}, "no completion: the record has no prompt and completion"),
    (UNTRAINED, PLAIN, {"train_on": "all"}, "a message is not to train, but all of the text is asked for"),
    (talk("a", "b", "c", "d"), MOVING, {"train_on": "last"}, "the chat template marks several messages as one, so it"),
    (talk("a", "b"), COUNTING, {}, "the chat template renders what comes before message 2 differently once it is"),
    (
        talk("?", "a", reasoning="b"),
        LENGTHS,
        {"masked": [THINK]},
        "the chat template changes more of its text with the",
    ),
]


@pytest.mark.parametrize(("record", "source", "options", "message"), REFUSED, ids=[row[3] for row in REFUSED])
def test_what_cannot_be_told_is_refused(
    record: dict[str, Any], source: str, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(Fault) as error:
        documents(record, source, **options)
    assert str(error.value).startswith(message)


def test_each_turn_trains_as_the_model_sees_it() -> None:
    record = reasoned("a", "b")
    assert [(each.text, texts(each)) for each in documents(record, THINKING, "each")] == [
        ("<user>q0</s><assistant><think>r0</think>a</s>", ["<think>r0</think>a</s>"]),
        ("<user>q0</s><assistant>a</s><user>q1</s><assistant><think>r1</think>b</s>", ["<think>r1</think>b</s>"]),
    ]
    assert texts(documents(record, THINKING, "each", masked=[THINK])[1]) == ["<think>", "</think>b</s>"]
    assert trained(record, THINKING, "last") == ["<think>r1</think>b</s>"]


@pytest.mark.parametrize("source", [PLAIN, MARKED])
def test_turns_that_stay_as_they_are_share_a_document(source: str) -> None:
    for record in (talk("a", "b", "c", "d"), talk("a", "b", "c"), talk("a", "b", "c", "d", train=False)):
        assert documents(record, source, "each") == documents(record, source)


def test_turns_share_a_document_until_one_is_rewritten() -> None:
    """Only the third turn shows what later goes: the first two are its beginning."""
    record = reasoned("a", "b", "c", "d")
    for message in record["messages"][:4]:
        message.pop("reasoning_content", None)
    first, second = documents(record, THINKING, "each")
    assert texts(first) == ["a</s>", "b</s>", "<think>r2</think>c</s>"]
    assert texts(second) == ["<think>r3</think>d</s>"]
    assert second.text.startswith(first.text.replace("<think>r2</think>", ""))


PROMPTING = PLAIN.replace("<assistant>{% endif %}", "<assistant><think>\n{% endif %}")


@pytest.mark.parametrize(
    ("answer", "spans"),
    [
        ("yes", ["yes</s>"]),
        ("<think>\nHm</think>", ["Hm</think></s>"]),
        ("<b>x</b>", ["<b>x</b></s>"]),
        ("", ["</s>"]),
    ],
)
def test_what_follows_the_shared_beginning_is_the_answer(answer: str, spans: list[str]) -> None:
    """The prompt opens a tag that not every answer has; two tags that begin alike are not shared in part."""
    assert trained(talk("a", answer), PROMPTING) == spans
    assert trained({"prompt": "a", "completion": answer}, PROMPTING, "completion") == spans
    assert trained(talk("a", answer, "b", answer), PROMPTING) == spans * 2


@pytest.mark.parametrize("answer", ["Answer me.", "Answers: b", "An", " Answer me", "<answer>", "b"])
def test_an_answer_may_begin_as_a_prompt_does_that_the_text_lacks(answer: str) -> None:
    source = PLAIN.replace("<assistant>{% endif %}", "<assistant>Answer: {% endif %}")
    assert [text.strip() for text in trained(talk("a", answer, "b", answer), source)] == [f"{answer}</s>".strip()] * 2


HIDING = showing("m.content.split('</think>')[-1]")
SHOWING = showing("m.reasoning_content | trim }}|{{ m.content")


@pytest.mark.parametrize("marked", [False, True])
@pytest.mark.parametrize(
    ("source", "message", "spans"),
    [
        (PLAIN, {"content": "42", "reasoning_content": "42"}, ["42</s>"]),
        (HIDING, {"content": "<think>42</think>42"}, ["42</s>"]),
        (PLAIN, {"content": "<think> 42 </think>42"}, ["<think> ", " </think>42</s>"]),
        (SHOWING, {"content": "42", "reasoning_content": " 42\n"}, ["|42</s>"]),
        (SHOWING.replace("|{{", "|{{ m.thinking }}{{"), {"content": "2", "thinking": "42"}, ["|", "2</s>"]),
        (SHOWING, {"content": "42", "reasoning_content": "  "}, ["|42</s>"]),
    ],
)
def test_only_what_the_template_makes_of_reasoning_is_masked(
    source: str, message: dict[str, Any], spans: list[str], marked: bool
) -> None:
    if marked:
        for_assistant = "{% if m.role == 'user' %}{{ m.content }}{% else %}{% generation %}"
        source = source.replace("<{{ m.role }}>", "<{{ m.role }}>" + for_assistant).replace(
            "</s>{% endfor", "</s>{% endgeneration %}{% endif %}{% endfor"
        )
    assert trained(talk("?", "", **message), source, masked=[THINK]) == spans


@pytest.mark.parametrize(
    ("content", "shown"),
    [
        ([{"type": "text", "text": " it's "}], "m.content if m.content is string else m.content[0].text | trim"),
        ([{"type": "text", "text": " it's "}], "m.content if m.content is string"),
        ([{"type": "input_text", "text": " it"}, {"text": "'s "}], "m.content"),
        ([{"type": "input_text", "text": " it"}, {"text": "'s "}], "'' + m.content"),
    ],
)
def test_parts_are_joined_where_the_template_takes_strings(content: list[Any], shown: str) -> None:
    source = showing(shown)
    [document] = documents({"messages": [{"role": "user", "content": content}, *talk("", "b")["messages"][1:]]}, source)
    expected = "<user>it's</s>" if "trim" in shown else "<user> it's </s>"
    assert document.text == expected + "<assistant>b</s>"
    assert texts(document) == ["b</s>"]


def test_a_call_without_content_is_rendered_by_templates_that_need_one() -> None:
    calls = [{"type": "function", "function": {"name": "f", "arguments": {}}}]
    source = showing("(m.content + '') | trim }}{{ m.tool_calls | tojson if m.tool_calls")
    for content in ({"content": None}, {}, {"content": ""}):
        message = {"role": "assistant", "tool_calls": calls, **content}
        [text] = trained({"messages": [{"role": "user", "content": "?"}, message]}, source)
        assert '"name": "f"' in text


def test_a_greeting_comes_first() -> None:
    source = "{% if messages[0].role == 'system' %}{{ messages[0].content }}{% endif %}" + PLAIN
    greeting = [{"role": "assistant", "content": "Hello."}, *talk("Hi", "Ho")["messages"]]
    assert trained({"messages": greeting}, source) == ["Hello.</s>", "Ho</s>"]


def test_strings_need_a_template_that_takes_them() -> None:
    """Text that a template changes, or that all templates leave out, is none that it does not take."""
    parts = [{"role": role, "content": [{"type": "text", "text": role[0]}]} for role in ("user", "assistant")]
    assert trained({"messages": parts}, FOR_PARTS) == ["a</s>"]
    assert trained(talk("what?", "so"), showing("m.content | upper")) == ["SO</s>"]
    assert trained(talk("a", "<think>a long thought</think> b"), HIDING) == [" b</s>"]


def test_a_long_conversation_is_rendered_until_its_seconds_are_over() -> None:
    """A template without marks is rendered for each message: thousands of turns take as long as is allowed."""
    turns = talk_of(talk(*map(str, range(4000))))
    message = r"the chat template takes more than 0\.1 seconds for this conversation"
    with pytest.raises(Fault, match=message):
        documents_of(turns, ChatTemplate(PLAIN, seconds=0.1), ends=ENDS)


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


ALL_MARKED = "{% for m in messages %}<{{ m.role }}>{% generation %}{{ m.content }}{% endgeneration %}</s>{% endfor %}"


def test_a_message_of_the_user_that_is_not_to_train_does_not_by_any_template() -> None:
    record = talk("a", "b", "c", "d")
    assert trained(record, ALL_MARKED) == ["a", "b", "c", "d"]
    record["messages"][0]["train"] = False
    assert trained(record, ALL_MARKED) == ["b", "c", "d"]
    assert trained(record, MARKED) == trained(record, PLAIN) == ["b</s>", "d</s>"]
    record["messages"][3]["train"] = False
    assert trained(record, ALL_MARKED) == ["b", "c"]
    with pytest.raises(Fault, match="no message of the assistant may"):
        trained(record, ALL_MARKED, "last")
    together = "{% generation %}{% for m in messages %}{{ m.content }}{% endfor %}{% endgeneration %}"
    with pytest.raises(Fault, match="marks several messages as one, so it can't be told which train"):
        trained(record, together)
    with pytest.raises(Fault, match="marks several messages as one"):
        trained(record, ALL_MARKED, masked=[THINK])
