"""The way of a record: its conversation is found, changed as asked, rendered, and searched for special tokens."""

from typing import Any

import pytest

from packtool.text.faults import Fault
from tests.text.conversations.rendering import renderer, showing, texts
from tests.text.conversations.talks import talk_of

SOURCE = showing("m.content }}{{ m.tool_calls | tojson if m.tool_calls")
CHAT = {"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "<think>b</think>c"}]}
CALL = {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "add"}}]}


def rendered(record: dict[str, Any], source: str = SOURCE, **options: Any) -> str:
    renders = renderer(source, **options)
    [document] = renders.rendered(renders.with_known_roles(talk_of(record)))
    return document.text


def trained(record: dict[str, Any], **options: Any) -> list[str]:
    [document] = renderer(SOURCE, **options).rendered(talk_of(record))
    return texts(document)


def test_reasoning_and_tool_calls_train_are_masked_or_dropped() -> None:
    assert trained(CHAT) == ["<think>b</think>c</s>"]
    assert trained(CHAT, reasoning="mask") == ["<think>", "</think>c</s>"]
    assert trained(CHAT, reasoning="drop") == ["c</s>"]
    calling = {"messages": [CHAT["messages"][0], CALL, {"role": "tool", "content": "3"}, CHAT["messages"][1]]}
    assert trained(calling, reasoning="drop") == ['[{"function": {"name": "add"}}]</s>', "c</s>"]
    assert trained(calling, reasoning="drop", tool_calls="mask") == ["c</s>"]
    assert rendered(calling, tool_calls="drop", reasoning="drop") == "<user>a</s><assistant>c</s>"


def test_special_tokens_that_messages_spell_are_counted() -> None:
    counting = renderer("{{ tools }}" + SOURCE)
    messages = [{"role": "user", "content": "</s><s></s>"}, CHAT["messages"][1]]
    counting.rendered(talk_of({"messages": messages, "tools": ["<s>"]}))
    assert counting.spelled == {"</s>": 2, "<s>": 2}


def test_a_template_for_tools_renders_conversations_with_tools() -> None:
    templates = (("default", SOURCE), ("tool_use", "tools" + SOURCE))
    assert rendered(CHAT, templates=templates).startswith("<user>")
    assert rendered({**CHAT, "tools": [{}]}, templates=templates).startswith("tools<user>")
    named = (("default", "{{ 'narrator' if false }}" + SOURCE), templates[1])
    talk = {"messages": [{"role": "narrator", "content": "x"}, *CHAT["messages"]], "tools": [{}]}
    assert rendered(talk, templates=named, tool_calls="drop").startswith("<narrator>x")


def test_roles_are_those_that_templates_know() -> None:
    odd = {"messages": [{"role": "narrator", "content": "x"}, CHAT["messages"][1]]}
    with pytest.raises(Fault) as error:
        rendered(odd)
    assert str(error.value) == "message 1 has the role 'narrator', which templates do not know"
    assert rendered(odd, "{{ 'narrator' if false }}" + SOURCE).startswith("<narrator>x")
    other = {"messages": [{"role": "User", "content": "x"}, {"role": "Chatbot", "content": "y"}]}
    assert rendered(other) == "<user>x</s><assistant>y</s>"
    assert rendered(other, "{{ 'User' if false }}" + SOURCE) == "<User>x</s><assistant>y</s>"
