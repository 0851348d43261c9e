"""Records of every kind become the same conversation."""

from __future__ import annotations

import json
from typing import Any

import pytest

from packtool.text.conversations.record import conversation_of
from packtool.text.faults import Fault

TALK = ({"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Ho"})
SHARED = [{"from": "human", "value": "Hi"}, {"from": "gpt", "value": "Ho"}]
ASKED = [TALK[0]]
SENDERS = ("GPT", "chatgpt", "Bing", "model", "AI")


@pytest.mark.parametrize(
    "record",
    [
        {"messages": list(TALK)},
        {"messages": list(TALK), "conversations": None, "tools": [], "images": [], "system": ""},
        {"messages": SHARED},
        {"messages": json.dumps(SHARED)},
        {"conversations": json.dumps(TALK)},
        {"conversations": SHARED},
        *({"conversations": [{"from": "Human", "value": "Hi"}, {"from": name, "value": "Ho"}]} for name in SENDERS),
        {"conversations": list(TALK)},
        {"messages": list(TALK), "label": 0},  # a class, of no preference
        {"prompt": "Hi", "completion": "Ho"},
        {"prompt": [TALK[0]], "completion": [TALK[1]]},
        {"prompt": [TALK[0]], "completion": "Ho"},
    ],
)
def test_the_same_messages_come_of_every_kind(record: dict[str, Any]) -> None:
    found = conversation_of(record)
    assert found.messages == TALK
    assert found.tools is None
    assert found.prompt == (1 if "prompt" in record else None)


def test_messages_keep_what_templates_read() -> None:
    call = {"type": "function", "function": {"name": "f", "arguments": {"x": 1}}}
    messages = [
        {"role": "assistant", "content": None, "tool_calls": [call], "weight": 1},
        {"role": "tool", "name": "f", "content": "2"},
        {"role": "assistant", "content": "3", "train": False},
        {"role": "assistant", "content": "4", "weight": 0},
        {"role": "assistant", "content": "5", "reasoning": "hm"},
    ]
    found = conversation_of({"messages": messages, "tools": [{"type": "function"}]})
    assert found.messages[0] == {"role": "assistant", "tool_calls": [call]}
    assert found.messages[1] == messages[1]
    thought = dict.fromkeys(("thinking", "reasoning", "reasoning_content"), "hm")
    assert found.messages[4] == {"role": "assistant", "content": "5", **thought}
    assert found.trains == (True, True, False, False, True)
    assert found.tools == [{"type": "function"}]


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"text": "x"}, "no conversation: neither messages, conversations, nor prompt and completion"),
        ({"messages": []}, "a conversation without messages"),
        ({"messages": "Hi"}, "messages is a string, not a list of messages"),
        ({"messages": [3]}, "message 1 is a number, not an object"),
        ({"messages": [{"content": "x"}]}, "message 1 has no role"),
        ({"messages": [{"role": 3}]}, "message 1 has a role that is a number, not a string"),
        ({"messages": [["x"]]}, "message 1 is an array, not an object"),
        ({"messages": [{"role": "user", "content": 3}]}, "the content of message 1 is a number, neither a string"),
        ({"messages": [{"role": "user", "content": ["x"]}]}, "the content of message 1 has a part without a type"),
        ({"messages": [{"role": "user", "content": None}]}, "the content of message 1 is null; its fields are role"),
        ({"messages": list(TALK), "tools": "[" * 100_000}, "tools is nested too deeply"),
        ({"prompt": 3, "completion": "x"}, "prompt is a number, not a list of messages"),
        ({"conversations": [{"from": "human"}]}, "message 1 has no role; its fields are from"),
        ({"messages": list(TALK), "tools": {}}, "tools is an object, not a list of JSON schemas"),
        ({"messages": list(TALK), "tool_defs": "no json"}, "tool_defs is not valid JSON"),
        ({"messages": list(TALK), "tools": [{}], "functions": [{}]}, "the record has both tools and functions"),
        ({"messages": list(TALK), "system": "a", "system_prompt": "b"}, "the record has both system and system_prompt"),
        ({"messages": list(TALK), "images": ["a.png"]}, "it has images, which are not read: conversations are text"),
        ({"messages": list(TALK), "audio": {"bytes": "x"}}, "it has audio, which are not read"),
        ({"messages": list(TALK), "image_url": "a.png"}, "it has image_url, which are not read"),
        ({"messages": [{**TALK[0], "images": ["a.png"]}, TALK[1]]}, "message 1 has images, which are not read"),
        ({"messages": repr(list(TALK))}, "messages is an expression of Python, as CSV of tables has it"),
        ({"messages": repr(list(map(json.dumps, TALK)))}, "messages is an expression of Python, as CSV of tables"),
        ({"messages": list(TALK), "label": "False"}, "the label of an unpaired preference is false: keep the records"),
        ({"messages": list(TALK), "kto_tag": False}, "kto_tag of the record is false: keep the records whose kto_tag"),
        ({"messages": ASKED, "answer": "a", "solution": "b"}, "the record has both answer and solution"),
        ({"messages": ASKED, "answer": ["a"]}, "answer is a list, of which one is to be named, such as --completion="),
        ({"messages": ASKED, "answer": "a", "reasoning": "x y", "thinking": "y z"}, "the record has both thinking and"),
        ({"messages": ASKED, "answer": "<think>x</think>a", "reasoning": "y."}, "the answer has reasoning of its own"),
    ],
)
def test_what_is_no_conversation_is_refused(record: dict[str, Any], message: str) -> None:
    with pytest.raises(Fault) as error:
        conversation_of(record)
    assert str(error.value).startswith(message)


def test_what_lies_beside_messages_is_read() -> None:
    record = {"system": "Be brief.", "messages": list(TALK), "chat_template_kwargs": {"a": False, "b": None}}
    found = conversation_of(record)
    assert found.messages == ({"role": "system", "content": "Be brief."}, *TALK)
    assert found.trains == (True,) * 3
    assert found.arguments == {"a": False}
    assert conversation_of({**record, "chat_template_kwargs": '{"a": 1}'}).arguments == {"a": 1}
    assert conversation_of({"system": "Be brief.", "prompt": "Hi", "completion": "Ho"}).prompt == 2
    assert conversation_of({"system": "", "messages": list(TALK)}).messages == TALK


@pytest.mark.parametrize("name", ["functions", "tool_list", "tool_defs", "tool_definitions", "available_tools"])
def test_other_names_of_tools(name: str) -> None:
    wrapped = {"type": "function", "function": {"name": "f"}}
    for tools in ([{"name": "f"}], [wrapped], json.dumps([wrapped])):
        assert conversation_of({"messages": list(TALK), "tools": "", name: tools}).tools == [wrapped]


@pytest.mark.parametrize(
    ("record", "answer"),
    [
        ({"messages": ASKED, "completion": "a"}, "a"),
        ({"messages": ASKED, "answer": "a"}, "a"),
        ({"conversations": SHARED[:1], "response": "a"}, "a"),
        ({"messages": list(TALK), "answer": "a"}, "Ho"),
        ({"messages": [*TALK, *ASKED], "completion": [{"role": "assistant", "content": "a"}]}, "a"),
    ],
)
def test_an_answer_beside_a_question_is_read(record: dict[str, Any], answer: str) -> None:
    assert conversation_of(record).messages[-1] == {"role": "assistant", "content": answer}


def test_a_function_call_becomes_a_tool_call() -> None:
    call = {"name": "get", "arguments": {"x": 1}}
    for value in (call, [call]):
        given = [{"from": "human", "value": "Hi"}, {"from": "function_call", "value": json.dumps(value)}]
        found = conversation_of({"conversations": given})
        assert found.messages[1] == {"role": "assistant", "tool_calls": [{"type": "function", "function": call}]}


def marked(**marks: Any) -> dict[str, Any]:
    return {"messages": [TALK[0], {**TALK[1], **marks}]}


@pytest.mark.parametrize("name", ["train", "training", "trainable", "loss", "weight"])
def test_marks_say_the_same_wherever_they_stand(name: str) -> None:
    function = {"name": "f", "arguments": {name: False}}  # arguments are no marks
    for value in (False, 0.0, "false", "False", "0", True, 1, None):
        trains = value in (True, 1, None)
        answers: list[dict[str, Any]] = [
            {"content": "Ho", name: value},
            {"content": [{"type": "text", "text": "Ho", name: value}]},
            {"tool_calls": [{"type": "function", "function": function, name: value}]},
            {"tool_calls": [{"type": "function", "function": {**function, name: value}}]},
        ]
        for answer in answers:
            found = conversation_of({"messages": [TALK[0], {"role": "assistant", **answer}]})
            assert found.trains == (True, trains)
        assert conversation_of(marked(**{name: value})).messages == TALK
        if not trains:
            with pytest.raises(Fault, match=f"{name} of the record is false: keep the records whose {name} is true"):
                conversation_of({"messages": list(TALK), name: value})
    shared = [{"from": "human", "value": "Hi", name: None}, {"from": "gpt", "value": "Ho", name: False}]
    assert conversation_of({"conversations": shared}).trains == (True, False)


@pytest.mark.parametrize(
    "mark",
    [
        *({name: [{"begin_offset": 0, "train": False}]} for name in ("train_detail", "training_detail")),
        {"loss_scale": 0.5}, {"loss_weight": 1}, {"mask": True}, {"masked": 1}, {"is_masked": False}, {"no_loss": True},
        {"trainOnTurn": False}, {"do-train": True}, {"weights": [1]}, {"supervised": False}, {"TRAIN": False},
    ],
    ids=str,
)  # fmt: skip
def test_other_marks_are_refused_by_name(mark: dict[str, Any]) -> None:
    (name,) = mark
    with pytest.raises(Fault) as error:
        conversation_of(marked(**mark))
    assert str(error.value) == f"message 2 has {name!r}, which is not read: mark it with train, true or false"
    part = {"type": "text", "text": "Ho", **mark}
    with pytest.raises(Fault, match=f"a part of the content of message 2 has '{name}': parts train together"):
        conversation_of({"messages": [TALK[0], {"role": "assistant", "content": [part]}]})


def test_names_that_only_sound_like_marks_are_passed_on() -> None:
    for name in ("constraint", "glossary", "trainee", "unmasked_text", "lightweight", "name"):
        assert conversation_of(marked(**{name: "x"})).messages[1][name] == "x"


def test_a_mark_that_asks_for_what_never_trains_is_refused() -> None:
    for mark in ({"train": True}, {"weight": 1}):
        with pytest.raises(Fault, match=r"message 1: .* asks to train on what the user says"):
            conversation_of({"messages": [{**TALK[0], **mark}, TALK[1]]})
    assert conversation_of({"messages": [{**TALK[0], "train": False}, TALK[1]]}).trains == (False, True)


def test_a_call_in_the_older_form_of_openai_is_a_call() -> None:
    call = {"name": "get", "arguments": '{"x": 1}'}
    expected = [{"type": "function", "function": {"name": "get", "arguments": {"x": 1}}}]
    for content in ("", None):
        message = {"role": "assistant", "content": content, "function_call": call}
        found = conversation_of({"messages": [TALK[0], message], "functions": [{"name": "get"}]})
        assert found.messages[1]["tool_calls"] == expected
        assert "function_call" not in found.messages[1]
        assert found.tools == [{"type": "function", "function": {"name": "get"}}]
    odd = {**call, "arguments": "not JSON"}
    assert conversation_of(marked(function_call=odd)).messages[1]["tool_calls"][0]["function"] == odd
    for wrong in ({"name": "get"}, "get"):
        with pytest.raises(Fault, match="message 2 is a function_call whose value is not JSON with name and arguments"):
            conversation_of(marked(function_call=wrong))
    with pytest.raises(Fault, match="message 2 has both tool_calls and function_call"):
        conversation_of(marked(function_call=call, tool_calls=expected))


@pytest.mark.parametrize("value", ["no", 0.5, 2, [], {}])
def test_marks_of_another_form_are_refused_wherever_they_stand(value: Any) -> None:
    said = "weight is true or false, or 1 or 0"
    for record in (marked(weight=value), marked(content=[{"type": "text", "text": "a", "weight": value}])):
        with pytest.raises(Fault, match=f"message 2: {said}"):
            conversation_of(record)
    with pytest.raises(Fault, match=said if value != [] else "weight of the record is a list of 0"):
        conversation_of({"messages": list(TALK), "weight": value})


def test_parts_and_calls_that_train_apart_are_refused() -> None:
    parts = [{"type": "text", "text": "a", "train": False}, {"type": "text", "text": "b"}]
    with pytest.raises(Fault, match="a part of the content of message 2 is not to train, and others are"):
        conversation_of(marked(content=parts))


@pytest.mark.parametrize("name", ["loss_mask", "weights", "train", "mask"])
def test_a_list_of_marks_beside_messages_is_obeyed(name: str) -> None:
    talk = [*TALK, *TALK]
    assert conversation_of({"messages": talk, name: [0, 1, False, 0.0]}).trains == (False, True, False, False)
    beside = {"prompt": "a", "completion": "b", name: [0, 1], "system": "s"}
    assert conversation_of(beside).trains == (True, False, True)
    for wrong, message in (
        ([0, 1], f"{name} of the record is a list of 2, not true or false for each of its 4 messages"),
        ([0, 1, 0, 0.5], f"the record: {name} is true or false, or 1 or 0"),
        ([1, 1, 0, 1], "message 1: the mark in a list asks to train on what the user says"),
    ):
        with pytest.raises(Fault, match=message):
            conversation_of({"messages": talk, name: wrong})


def test_thoughts_of_gemini_and_mistral_are_reasoning() -> None:
    found = conversation_of(marked(content=[{"text": "Hm.", "thought": True}, {"text": "Ho", "thought": False}]))
    thinking = {"type": "thinking", "thinking": "Hm."}
    assert found.messages[1]["content"] == [thinking, {"type": "text", "text": "Ho"}]
    assert conversation_of(marked(thinking=[{"type": "text", "text": "Hm."}])).messages[1]["reasoning_content"] == "Hm."
    with pytest.raises(Fault, match="a part of a content has a thought that is a string, not true or false"):
        conversation_of(marked(content=[{"text": "Ho", "thought": "Hm."}]))


@pytest.mark.parametrize(
    ("record", "reasoning"),
    [
        ({"messages": list(TALK), "reasoning_content": "so and so"}, "so and so"),
        ({**marked(reasoning="so and so"), "reasoning_content": "so and so"}, "so and so"),
        ({"prompt": "Hi", "completion": "Ho", "reasoning": "off"}, None),
        ({"messages": list(TALK), "reasoning": "high"}, None),
        ({"prompt": "Hi", "completion": "<think>so</think>Ho", "reasoning": "so"}, None),
    ],
)
def test_reasoning_beside_the_last_answer_is_its_own_and_a_mode_is_none(
    record: dict[str, Any], reasoning: str | None
) -> None:
    found = conversation_of(record)
    assert found.messages[-1].get("reasoning_content") == reasoning
    assert "reasoning" not in found.record
