"""Records of every kind become the same conversation."""

import json
from typing import Any

import pytest

from packtool.text.faults import Fault
from tests.text.conversations.talks import talk_of

TALK = ({"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Ho"})
SHARED = [{"from": "human", "value": "Hi"}, {"from": "gpt", "value": "Ho"}]
THOUGHT = {"type": "thinking", "thinking": "Hm."}
PAIR = {"prompt": "Hi", "completion": "Ho"}
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
        {"prompt": "Hi", "completion": "Ho"},
        {"prompt": [TALK[0]], "completion": [TALK[1]]},
        {"prompt": [TALK[0]], "completion": "Ho"},
    ],
)
def test_the_same_messages_come_of_every_kind(record: dict[str, Any]) -> None:
    found = talk_of(record)
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
    found = talk_of({"messages": messages, "tools": [{"type": "function"}]})
    assert found.messages[0] == {"role": "assistant", "tool_calls": [call]}
    assert found.messages[1] == messages[1]
    thought = dict.fromkeys(("thinking", "reasoning", "reasoning_content"), "hm")
    assert found.messages[4] == {"role": "assistant", "content": "5", **thought}
    assert found.trains == (True, True, False, False, True)
    assert found.tools == [{"type": "function"}]


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"messages": []}, "a conversation without messages"),
        ({"messages": [*TALK, 3]}, "message 3 is a number, not an object"),
        ({"messages": [*TALK, ["x"]]}, "message 3 is an array, not an object"),
        ({"messages": [*TALK, {"content": "x"}]}, "message 3 has no role; its fields are content"),
        ({"messages": [*SHARED, {"from": "human"}]}, "message 3 has no role; its fields are from"),
        ({"messages": [{"role": 3}]}, "message 1 has a role that is a number, not a string"),
        ({"messages": [{"role": "user", "content": 3}]}, "the content of message 1 is a number, neither a string"),
        ({"messages": [{"role": "user", "content": ["x"]}]}, "the content of message 1 has a part that is no obj"),
        ({"messages": [{"role": "user", "content": None}]}, "the content of message 1 is null; its fields are role"),
        ({"messages": list(TALK), "tools": "[" * 100_000}, "tools is nested too deeply"),
        ({"messages": list(TALK), "tools": {}}, "tools is an object, not a list of JSON schemas"),
        ({"messages": list(TALK), "system": "a", "system_prompt": "b"}, "the record has both system and system_prompt"),
        ({"messages": repr(list(TALK))}, "messages is an expression of Python, as CSV of tables has it"),
        ({"messages": [{**TALK[1], "weight": 2}]}, "message 1: weight is true or false, or 1 or 0"),
        ({"messages": [{**TALK[1], "train": "no"}]}, "message 1: train is true or false, or 1 or 0"),
        ({"messages": [{**TALK[1], "reasoning": "a", "thinking": "b"}]}, "message 1 has both thinking and reasoning"),
        ({"messages": [{**TALK[0], "content": [THOUGHT]}]}, "message 1 has a part of type 'thinking', and is not the "),
        ({"messages": [{**TALK[1], "reasoning": 3}]}, "message 1 has reasoning that is a number, not a string"),
        ({**PAIR, "reasoning_content": ["x"]}, "reasoning_content is an array, not a string"),
        ({**PAIR, "completion": "<think>x</think>a", "reasoning_content": "y."}, "the answer has reasoning of its own"),
        ({"messages": repr(list(map(json.dumps, TALK)))}, "messages is an expression of Python, as CSV of tables"),
        ({**PAIR, "completion": json.dumps(TALK)}, "completion is messages as JSON in a string"),
        ({**PAIR, "prompt": f" {json.dumps(TALK[:1])}"}, "prompt is messages as JSON in a string"),
    ],
)
def test_what_is_no_conversation_is_refused(record: dict[str, Any], message: str) -> None:
    with pytest.raises(Fault) as error:
        talk_of(record)
    assert str(error.value).startswith(message)


@pytest.mark.parametrize(
    "text",
    ["[]", "[1, 2]", '[{"role": "nurse", "content": "x"}]', '[{"role": "user", "id": 1}]', "[", '{"role": "user"}'],
)
def test_a_text_that_only_looks_like_messages_is_a_text(text: str) -> None:
    found = talk_of({**PAIR, "completion": text})
    assert found.messages[-1] == {"role": "assistant", "content": text}


@pytest.mark.parametrize(
    ("message", "remedy"),
    [
        ({"role": "user", "text": "x"}, "give --conversations and --message-fields=role,text"),
        ({"role": "user", "name": "x", "value": "y"}, "give --conversations and --message-fields=role,value"),
        ({"role": "user", "parts": ["x"]}, "fix the conversation"),
    ],
)
def test_a_message_whose_text_has_another_name_is_told_the_option(message: dict[str, Any], remedy: str) -> None:
    with pytest.raises(Fault) as error:
        talk_of({"messages": [message]})
    assert error.value.remedy.endswith(remedy)


def test_what_lies_beside_messages_is_read() -> None:
    record = {"system": "Be brief.", "messages": list(TALK), "chat_template_kwargs": {"a": False, "b": None}}
    found = talk_of(record)
    assert found.messages == ({"role": "system", "content": "Be brief."}, *TALK)
    assert found.trains == (True,) * 3
    assert found.arguments == {"a": False}
    assert talk_of({**record, "chat_template_kwargs": '{"a": 1}'}).arguments == {"a": 1}
    assert talk_of({"system": "Be brief.", "prompt": "Hi", "completion": "Ho"}).prompt == 2
    assert talk_of({"system": "", "messages": list(TALK)}).messages == TALK


def test_a_function_call_becomes_a_tool_call() -> None:
    call = {"name": "get", "arguments": {"x": 1}}
    for value in (call, [call]):
        given = [{"from": "human", "value": "Hi"}, {"from": "function_call", "value": json.dumps(value)}]
        found = talk_of({"conversations": given})
        assert found.messages[1] == {"role": "assistant", "tool_calls": [{"type": "function", "function": call}]}


def marked(**marks: Any) -> dict[str, Any]:
    return {"messages": [TALK[0], {**TALK[1], **marks}]}


def test_names_that_only_sound_like_marks_are_passed_on() -> None:
    for name in ("constraint", "glossary", "trainee", "unmasked_text", "lightweight", "name"):
        assert talk_of(marked(**{name: "x"})).messages[1][name] == "x"


def test_a_mark_that_asks_for_what_never_trains_is_refused() -> None:
    for mark in ({"train": True}, {"weight": 1}):
        with pytest.raises(Fault, match=r"message 1: .* asks to train on what the user says"):
            talk_of({"messages": [{**TALK[0], **mark}, TALK[1]]})
    assert talk_of({"messages": [{**TALK[0], "train": False}, TALK[1]]}).trains == (False, True)
