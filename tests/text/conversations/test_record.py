"""Records of every kind become the same conversation."""

from __future__ import annotations

import json
from typing import Any

import pytest

from packtool.text.conversations.record import ConversationError, conversation_of

TALK = ({"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Ho"})


@pytest.mark.parametrize(
    "record",
    [
        {"messages": list(TALK)},
        {"messages": list(TALK), "conversations": None, "tools": []},
        {"conversations": [{"from": "human", "value": "Hi"}, {"from": "gpt", "value": "Ho"}]},
        {"conversations": list(TALK)},
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
        {"role": "assistant", "content": "5", "thinking": "hm"},
    ]
    found = conversation_of({"messages": messages, "tools": [{"type": "function"}]})
    assert found.messages[0] == {"role": "assistant", "tool_calls": [call]}
    assert found.messages[1] == messages[1]
    assert found.messages[4] == {"role": "assistant", "content": "5", "thinking": "hm", "reasoning_content": "hm"}
    assert found.trains == (True, True, False, False, True)
    assert found.tools == [{"type": "function"}]


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"text": "x"}, "no conversation: neither messages, conversations, nor prompt and completion"),
        ({"prompt": "x"}, "no conversation: neither messages"),
        ({"messages": []}, "a conversation without messages"),
        ({"messages": "Hi"}, "messages is a string, not a list of messages"),
        ({"messages": [3]}, "message 1 is a number, not an object"),
        ({"messages": [{"content": "x"}]}, "message 1 has no role"),
        ({"messages": [{"role": None}]}, "message 1 has no role"),
        ({"messages": [{"role": 3}]}, "message 1 has a role that is a number, not a string"),
        ({"messages": {"role": "user"}}, "messages is an object, not a list of messages"),
        ({"messages": [["x"]]}, "message 1 is an array, not an object"),
        ({"messages": [{"role": "user", "content": 3}]}, "the content of message 1 is a number, neither a string"),
        ({"messages": [{"role": "user", "content": ["x"]}]}, "the content of message 1 has a part without a type"),
        ({"messages": [{"role": "user", "content": None}]}, "the content of message 1 is null; its fields are role"),
        ({"messages": [{"role": "user", "content": ""}], "tools": "[" * 100_000}, "tools is nested too deeply"),
        ({"prompt": 3, "completion": "x"}, "prompt is a number, not a list of messages"),
        ({"messages": [{"role": "user", "weight": 0.5}]}, "message 1: train is true or false, and a weight 0 or 1"),
        ({"messages": [{"role": "user", "train": "no"}]}, "message 1: train is true or false, and a weight 0 or 1"),
        ({"conversations": [{"from": "human"}]}, "message 1 has neither from and value nor a role"),
        (
            {"messages": [{"role": "user", "content": ""}], "tools": {}},
            "tools is an object, not a list of JSON schemas",
        ),
    ],
)
def test_what_is_no_conversation_is_refused(record: dict[str, Any], message: str) -> None:
    with pytest.raises(ConversationError) as error:
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


def test_a_function_call_becomes_a_tool_call() -> None:
    call = {"name": "get", "arguments": {"x": 1}}
    for value in (call, [call]):
        given = [{"from": "human", "value": "Hi"}, {"from": "function_call", "value": json.dumps(value)}]
        found = conversation_of({"conversations": given})
        assert found.messages[1] == {"role": "assistant", "tool_calls": [{"type": "function", "function": call}]}
