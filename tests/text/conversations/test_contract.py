"""What a record holds is told by the names of the contract alone; everything else is refused, with what is there."""

import json
from typing import Any

import pytest

from packtool.text.conversations.contract import reading_of
from packtool.text.conversations.layouts import (
    ANSWERS,
    BY_NAME,
    MARKS,
    MEDIA,
    MESSAGE_MARKS,
    MESSAGES,
    PROMPTS,
    RecordLayout,
    shown,
)
from packtool.text.conversations.record import conversation_of
from packtool.text.faults import CONTRACT, Fault
from tests.text.conversations.talks import talk_of

TALK = [{"role": "user", "content": "Why?"}, {"role": "assistant", "content": "So."}]
SHARED = [{"from": "human", "value": "Why?"}, {"from": "gpt", "value": "So."}]
PAIR = {"prompt": "Why?", "completion": "So."}
INSTRUCTION = "--prompt=instruction,input,context --completion=output"
TEXT = "--text-field=text"


@pytest.mark.parametrize(
    ("record", "options"),
    [
        ({"text": "a", "id": 1}, TEXT),
        ({"text": ""}, TEXT),
        ({"text": None, "id": 1}, TEXT),
        ({"text": None, "messages": None}, TEXT),
        ({"messages": None}, "--conversations=messages"),
        ({"text": "a", "prompt": "b"}, TEXT),
        ({"text": "a", "prompt": "b", "response": ""}, TEXT),
        ({"text": "a", "messages": [], "conversations": None}, TEXT),
        ({"messages": TALK, "prompt": "Why?", "solution": "So.", "text": None}, "--conversations=messages"),
        *(({name: talk, "text": ""}, f"--conversations={name}") for name in MESSAGES
          for talk in (TALK, SHARED, json.dumps(TALK), f" {json.dumps(SHARED)}")),
        ({"instruction": "Do", "input": "", "output": "Done"}, INSTRUCTION),
        ({"instruction": "Do", "context": "this", "output": "Done"}, INSTRUCTION),
        ({"instruction": "", "input": "Do", "output": "Done"}, INSTRUCTION),
        *(({p: "a", a: "b", "Answer": "c"}, f"--prompt={p} --completion={a}") for p in PROMPTS[1:] for a in ANSWERS),
        ({"prompt": TALK[:1], "completion": TALK[1:]}, "--prompt=prompt --completion=completion"),
        ({"question": "a", "answer": ""}, "--prompt=question --completion=answer"),
        ({"question": "a", "answer": "b", "response": "", "query": None}, "--prompt=question --completion=answer"),
        ({"question": "a", "answer": "b", "context": ""}, "--prompt=question --completion=answer"),
        ({**PAIR, "chosen": None, "rejected": None, "label": None, "images": [], "weight": None}, shown(
            RecordLayout(prompt=("prompt",), completion="completion"))),
    ],
)  # fmt: skip
def test_a_record_is_read_by_exact_names(record: dict[str, Any], options: str) -> None:
    assert shown(reading_of(record)) == options


@pytest.mark.parametrize(
    ("record", "code", "remedy"),
    [
        ({"text": "a", "messages": TALK}, "unclear-fields", "--text-field=text or --conversations=messages"),
        ({"text": "a", **PAIR}, "unclear-fields", "--text-field=text or --prompt=prompt --completion=completion"),
        ({"messages": TALK, "conversations": SHARED}, "unclear-fields", "messages or --conversations=conversations"),
        ({"problem": "a", "solution": "b", "answer": "c"}, "unclear-fields", "--completion=answer or --prompt=problem"),
        ({"question": "a", "query": "b", "answer": "c"}, "unclear-fields", "or --prompt=query --completion=answer"),
        ({"question": "a", "context": "b", "answer": "c"}, "unclear-fields", "or --prompt=context,question"),
        ({"question": "a", "context": ["b"], "answer": "c"}, "unclear-fields", "or --prompt=context,question"),
        ({"prompt": "a", "chosen": "b", "rejected": "c"}, "preference-pairs", "--prompt=prompt --completion=chosen"),
        ({"chosen": TALK, "rejected": SHARED}, "preference-pairs", "--conversations=chosen or"),
        ({"chosen": "a", "rejected": "b"}, "preference-pairs", "--text-field=chosen or --text-field=rejected"),
        *(({**PAIR, name: label}, "preference-pairs", "leave the field out") for name in ("label", "kto_tag", "Label")
          for label in (False, 0, "False", True, "bad")),
        ({"Question": "a", "Answer": "b"}, "unread-layout", "--prompt and --completion"),
        ({"question": "a", "answer": 3}, "unread-layout", "--prompt and --completion"),
        ({"query": "a", "answers": "b"}, "unread-layout", "--prompt and --completion"),
        ({"messages": "Hi"}, "unread-layout", "--conversations"),
        ({"conversations": ["a", "b"]}, "unread-layout", "--conversations=conversations, which reads texts in turn"),
        ({"messages": {"role": "user"}, **PAIR}, "unread-layout", "--conversations=messages"),
        *(({"messages": TALK, name: value}, "marks-beside", "name it: --conversations=messages")
          for name in (*MARKS, *MEDIA) for value in (False, 0, 0.5, "x", [1])),
        ({**PAIR, "train": False}, "marks-beside", "name it: --prompt=prompt --completion=completion"),
    ],
)  # fmt: skip
def test_what_is_not_clear_is_refused(record: dict[str, Any], code: str, remedy: str) -> None:
    with pytest.raises(Fault) as raised:
        reading_of(record)
    assert raised.value.code == code
    assert code in CONTRACT
    assert remedy in raised.value.remedy
    name = next(name for name in record if name in raised.value.what)
    assert name


IMAGE = {"type": "image_url", "image_url": {"url": "a.png"}}


@pytest.mark.parametrize(
    ("answer", "named"),
    [
        *(({name: value}, f"{name} of a message") for name in MESSAGE_MARKS for value in (0, False, 1)),
        *(({name: ["a.png"]}, f"{name} of a message") for name in MEDIA),
        ({"weight": 0.5}, "weight of a message"),
        ({"content": [{"type": "text", "text": "So."}, IMAGE]}, "image_url of a content"),
        ({"content": [{"type": "text", "text": "So."}, {"image": "a.png"}]}, "image of a content"),
        ({"content": [{"type": "text", "text": "So."}, {"type": "input_audio"}]}, "input_audio of a content"),
    ],
)
def test_marks_and_media_of_a_message_are_refused_unless_an_option_names_it(answer: dict[str, Any], named: str) -> None:
    record = {"messages": [TALK[0], {**TALK[1], **answer}]}
    with pytest.raises(Fault, match=named) as raised:
        conversation_of(record, BY_NAME)
    assert raised.value.code == "marks-beside"
    assert "to read the conversation without, name it: --conversations=messages" in raised.value.remedy
    mark = named.split(maxsplit=1)[0]
    assert (f"--message-fields=role,content,{mark}" in raised.value.remedy) == (mark in MESSAGE_MARKS)
    meant = conversation_of(record, RecordLayout("messages"))
    assert meant.unread == (named,)
    assert meant.trains == (True, True)
    assert named.split(maxsplit=1)[0] not in meant.messages[1]
    assert "So." in meant.texts()


@pytest.mark.parametrize("mark", MESSAGE_MARKS)
def test_a_mark_that_is_named_is_obeyed(mark: str) -> None:
    call = {"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": {}}}], mark: True}
    record = {"messages": [TALK[0], {**TALK[1], mark: 0}, call]}
    talk = conversation_of(record, RecordLayout("messages", turn=("role", "content", mark)))
    assert talk.trains == (True, False, True)
    assert talk.unread == ()
    assert f"{mark} of a message" in talk.record


def test_what_is_read_beside_is_said_with_all_else() -> None:
    record = {
        "system_prompt": "Be brief.",
        "id": 1,
        **PAIR,
        "tools": "[]",
        "reasoning_content": "Hm.",
        "hint": "",
        "b": 0,
    }
    talk = talk_of(record)
    assert sorted(talk.record) == ["completion", "prompt", "reasoning_content", "system_prompt", "tools"]
    assert talk.unread == ("id", "b")
    first = RecordLayout(prompt=("prompt",), completion="completion")
    assert conversation_of(record, BY_NAME, first, {"id"}).unread == ("b",)
    assert conversation_of(record, BY_NAME, RecordLayout("messages"), {"id"}).unread == ("id", "b")
