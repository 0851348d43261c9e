"""What trains, from marks and from renderings of the beginnings of a conversation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from packtool.text.conversations.conversation import Trained
from packtool.text.conversations.ends import Ends
from packtool.text.conversations.reasoning import THINK
from packtool.text.conversations.record import conversation_of
from packtool.text.conversations.spans import Document, documents_of
from packtool.text.conversations.template import ChatTemplate
from packtool.text.faults import Fault
from packtool.text.tokenizing.conversations import token_mask
from tests.text.conversations.fuzz import talk

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


def made(record: dict[str, Any], source: str, train_on: Trained = "assistant", **options: Any) -> list[Document]:
    options.setdefault("ends", Ends([], ["</>"]))
    return documents_of(conversation_of(record), ChatTemplate(source), train_on, **options)


def trained(record: dict[str, Any], source: str, train_on: Trained = "assistant", **options: Any) -> list[str]:
    [document] = made(record, source, train_on, **options)
    return [document.text[begin:end] for begin, end in document.spans]


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
            "{{ messages[0].content }}{% generation %}{{ messages[1].content }}{{ messages[3].content }}"
            "{% endgeneration %}{{ messages[2].content }}",
            "last",
            "the chat template marks 1 spans for 2 messages of the assistant",
        ),
    ],
)
def test_what_cannot_be_told_is_refused(record: dict[str, Any], source: str, train_on: Trained, message: str) -> None:
    with pytest.raises(Fault) as error:
        trained(record, source, train_on)
    assert str(error.value).startswith(message)


def test_the_last_message_trains_where_only_earlier_ones_are_rendered_differently() -> None:
    assert trained(talk("a", "b", "c", "d"), FORGETFUL, "last") == ["d</>"]


THINKING = (
    "{% for m in messages %}<{{ m.role }}>"
    "{% if m.reasoning_content and loop.last %}<think>{{ m.reasoning_content | trim }}</think>{% endif %}"
    "{{ m.content }}</>{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}"
)
"""As reasoning models have them: earlier reasoning is left out."""


def reasoned(*answers: str) -> dict[str, Any]:
    messages: list[dict[str, Any]] = []
    for number, answer in enumerate(answers):
        messages.append({"role": "user", "content": f"q{number}"})
        messages.append({"role": "assistant", "content": answer, "reasoning_content": f" r{number} "})
    return {"messages": messages}


def documents(record: dict[str, Any], source: str, **options: Any) -> list[tuple[str, list[str]]]:
    found = made(record, source, "each", **options)
    return [(one.text, [one.text[begin:end] for begin, end in one.spans]) for one in found]


def test_each_turn_trains_as_the_model_sees_it() -> None:
    assert documents(reasoned("a", "b"), THINKING) == [
        ("<user>q0</><assistant><think>r0</think>a</>", ["<think>r0</think>a</>"]),
        ("<user>q0</><assistant>a</><user>q1</><assistant><think>r1</think>b</>", ["<think>r1</think>b</>"]),
    ]
    assert documents(reasoned("a", "b"), THINKING, masked=[THINK])[1][1] == ["<think>", "</think>b</>"]
    with pytest.raises(Fault, match=r"message 2 differently once others follow it"):
        trained(reasoned("a", "b"), THINKING)


@pytest.mark.parametrize("source", [PLAIN, MARKED])
def test_turns_that_stay_as_they_are_share_a_document(source: str) -> None:
    chats = [talk("a", "b", "c", "d"), talk("a", "b", "c"), talk("a", "b", "c", "d", train=False)]
    for record in chats:
        [document] = made(record, source)
        assert documents(record, source) == [(document.text, trained(record, source))]


def test_turns_share_a_document_until_one_is_rewritten() -> None:
    """Only the third turn shows what later goes: the first two are its beginning."""
    record = reasoned("a", "b", "c", "d")
    for message in record["messages"][:4]:
        message.pop("reasoning_content", None)
    turns = documents(record, THINKING)
    assert [spans for _, spans in turns] == [["a</>", "b</>", "<think>r2</think>c</>"], ["<think>r3</think>d</>"]]
    assert turns[1][0].startswith(turns[0][0][: -len("<think>r2</think>c</>")] + "c</>")


PROMPTING = (
    "{% for m in messages %}<{{ m.role }}>{{ m.content }}</>{% endfor %}"
    "{% if add_generation_prompt %}<assistant><think>\n{% endif %}"
)


@pytest.mark.parametrize(
    ("answer", "spans"),
    [("yes", ["yes</>"]), ("<think>\nHm</think>", ["Hm</think></>"]), ("<b>x</b>", ["<b>x</b></>"]), ("", ["</>"])],
)
def test_what_follows_the_shared_beginning_is_the_answer(answer: str, spans: list[str]) -> None:
    """The prompt opens a tag that not every answer has; two tags that begin alike are not shared in part."""
    assert trained(talk("a", answer), PROMPTING) == spans
    assert trained({"prompt": "a", "completion": answer}, PROMPTING, "completion") == spans
    assert trained(talk("a", answer, "b", answer), PROMPTING) == spans * 2


def test_what_comes_before_a_message_must_stay() -> None:
    source = "{{ messages | length }}" + PLAIN
    with pytest.raises(Fault, match="renders what comes before message 2 differently once it is there"):
        trained(talk("a", "b"), source)


HIDING = PLAIN.replace("{{ m.content }}", "{{ m.content.split('</think>')[-1] }}")
SHOWING = PLAIN.replace("{{ m.content }}", "{{ m.reasoning_content | trim }}|{{ m.content }}")
CHANGING = PLAIN.replace("{{ m.content }}", "{{ (m.reasoning_content or '') | length }}{{ m.content }}")


@pytest.mark.parametrize("marked", [False, True])
@pytest.mark.parametrize(
    ("source", "message", "spans"),
    [
        (PLAIN, {"content": "42", "reasoning_content": "42"}, ["42</>"]),
        (HIDING, {"content": "<think>42</think>42"}, ["42</>"]),
        (PLAIN, {"content": "<think> 42 </think>42"}, ["<think> ", " </think>42</>"]),
        (SHOWING, {"content": "42", "reasoning_content": " 42\n"}, ["|42</>"]),
        (SHOWING.replace("|{{", "|{{ m.thinking }}{{"), {"content": "2", "thinking": "42"}, ["|", "2</>"]),
        (SHOWING, {"content": "42", "reasoning_content": "  "}, ["|42</>"]),
    ],
)
def test_only_what_the_template_makes_of_reasoning_is_masked(
    source: str, message: dict[str, Any], spans: list[str], marked: bool
) -> None:
    if marked:
        for_assistant = "{% if m.role == 'user' %}{{ m.content }}{% else %}{% generation %}"
        source = source.replace("<{{ m.role }}>", "<{{ m.role }}>" + for_assistant).replace(
            "</>{% endfor", "</>{% endgeneration %}{% endif %}{% endfor"
        )
    assert trained(talk("?", "", **message), source, masked=[THINK]) == spans


def test_reasoning_that_changes_other_text_is_refused() -> None:
    with pytest.raises(Fault, match="can't be told which tokens are reasoning"):
        made(talk("?", "a", reasoning="b"), CHANGING, masked=[THINK])


PARTS = {"messages": [{"role": "user", "content": [{"type": "text", "text": " it's "}]}, talk("", "b")["messages"][1]]}


def test_parts_are_joined_where_the_template_takes_strings() -> None:
    taking = PLAIN.replace("{{ m.content }}", "{{ m.content if m.content is string else m.content[0].text | trim }}")
    assert trained(PARTS, taking) == ["b</>"]
    ignoring = PLAIN.replace("{{ m.content }}", "{{ m.content if m.content is string }}")
    for source in (PLAIN, ignoring):
        assert trained(PARTS, source) == ["b</>"]
    other = [{"type": "input_text", "text": "it"}, {"text": "'s"}]
    for source in (PLAIN, PLAIN.replace("{{ m.content }}", "{{ '' + m.content }}")):
        record = {"messages": [{"role": "user", "content": other}, talk("", "b")["messages"][1]]}
        assert [document.text for document in made(record, source)] == [d.text for d in made(talk("it's", "b"), source)]
    thinking = {"role": "user", "content": [{"type": "thinking", "thinking": "x"}, {"type": "text", "text": "y"}]}
    with pytest.raises(Fault, match="takes no content in parts, as message 1 has it"):
        trained({"messages": [thinking, talk("", "b")["messages"][1]]}, PLAIN)


def test_a_call_without_content_is_rendered_by_templates_that_need_one() -> None:
    calls = [{"type": "function", "function": {"name": "f", "arguments": {}}}]
    source = PLAIN.replace("{{ m.content }}", "{{ m.content | trim }}{{ m.tool_calls | tojson if m.tool_calls }}")
    source = source.replace("m.content |", "(m.content + '') |")
    for content in ({"content": None}, {}, {"content": ""}):
        message = {"role": "assistant", "tool_calls": calls, **content}
        [text] = trained({"messages": [{"role": "user", "content": "?"}, message]}, source)
        assert '"name": "f"' in text


def test_a_greeting_comes_first() -> None:
    source = "{% if messages[0].role == 'system' %}{{ messages[0].content }}{% endif %}" + PLAIN
    greeting = [{"role": "assistant", "content": "Hello."}, *talk("Hi", "Ho")["messages"]]
    assert trained({"messages": greeting}, source) == trained({"messages": greeting}, PLAIN)
    assert trained({"messages": greeting}, source)[0].startswith("Hello.")


def test_strings_need_a_template_that_takes_them() -> None:
    """Templates of models that see images find no parts in a string, and would train on the end of the turn alone."""
    for_parts = PLAIN.replace("{{ m.content }}", "{% for p in m.content %}{{ p.text if p.type == 'text' }}{% endfor %}")
    with pytest.raises(Fault, match="takes content in parts alone"):
        trained(talk("a question", "an answer"), for_parts)
    parts = [{"role": role, "content": [{"type": "text", "text": role[0]}]} for role in ("user", "assistant")]
    assert trained({"messages": parts}, for_parts) == ["a</>"]
    # Text that a template changes, or that all templates leave out, is none that it does not take.
    assert trained(talk("what?", "so"), PLAIN.replace("m.content", "m.content | upper")) == ["SO</>"]
    hiding = PLAIN.replace("{{ m.content }}", "{{ m.content.split('</think>')[-1] }}")
    assert trained(talk("a", "<think>a long thought</think> b"), hiding) == [" b</>"]


def test_a_long_conversation_is_rendered_until_its_seconds_are_over() -> None:
    """A template without marks is rendered for each message: thousands of turns take as long as is allowed."""
    turns = conversation_of(talk(*map(str, range(4000))))
    message = r"the chat template takes more than 0\.1 seconds for this conversation"
    with pytest.raises(Fault, match=message):
        documents_of(turns, ChatTemplate(PLAIN, seconds=0.1), ends=Ends([], ["</>"]))


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


ALL_MARKED = "{% for m in messages %}<{{ m.role }}>{% generation %}{{ m.content }}{% endgeneration %}</>{% endfor %}"


def test_a_message_of_the_user_that_is_not_to_train_does_not_by_any_template() -> None:
    record = talk("a", "b", "c", "d")
    assert trained(record, ALL_MARKED) == ["a", "b", "c", "d"]
    record["messages"][0]["train"] = False
    assert trained(record, ALL_MARKED) == ["b", "c", "d"]
    assert trained(record, MARKED) == trained(record, PLAIN) == ["b</>", "d</>"]
    record["messages"][3]["train"] = False
    assert trained(record, ALL_MARKED) == ["b", "c"]
    with pytest.raises(Fault, match="no message of the assistant may"):
        trained(record, ALL_MARKED, "last")
    together = "{% generation %}{% for m in messages %}{{ m.content }}{% endfor %}{% endgeneration %}"
    with pytest.raises(Fault, match="marks several messages as one, so it can't be told which train"):
        trained(record, together)
    with pytest.raises(Fault, match="marks several messages as one"):
        trained(record, ALL_MARKED, masked=[THINK])
