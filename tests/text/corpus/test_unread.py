"""Layouts of records that are not known are refused; the options that the message names are tried."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest

import packtool
from packtool.errors import DataError, UsageError
from packtool.formats.token_store import TokenStore
from packtool.warnings import PacktoolWarning
from tests.text.corpus.reading import write
from tests.text.tokenizing.runs import ASSET, stored

Q, A = "What is it?", "It is so."
TURNS = [{"role": "user", "content": Q}, {"role": "assistant", "content": A}]
IN_PARTS = [{"role": turn["role"], "content": [{"text": turn["content"]}]} for turn in TURNS]
SAID = {"role": "system", "content": "Be brief."}

REFUSED: list[tuple[dict[str, Any], str]] = [
    # A part of what each record holds is read by these options; nothing is known that would.
    ({"id": "1", "parent_id": "0", "instruction": Q, "output": A}, "--prompt instruction --completion output"),
    ({"meta_instruction": "m", "chat": {"turn_1": {"Human": Q, "MOSS": A}}}, ""),
    ({"mapping": {"a": {"parent": None}}, "current_node": "a"}, ""),
    ({"custom_id": "1", "body": {"messages": TURNS}}, "--conversations body.messages"),
    ({"custom_id": "1", "response": {"body": {"id": "1"}}}, ""),
    ({"segments": [{"label": True, "text": A}]}, ""),
    ({"prompt": Q, "completions": ["It is", "so."], "labels": [True, True]}, ""),
    (
        {"story": "s", "questions": [Q], "answers": {"input_text": [A]}},
        "--prompt 'questions[0]' --completion 'answers.input_text[0]'",
    ),
    ({"query": Q, "answers": '[{"name": "f"}]', "tools": '[{"name": "f"}]'}, "--prompt query --completion answers"),
    ({"conversation": [{"message": Q, "is_human": True}, {"message": A, "is_human": False}]}, ""),
    (
        {"chat_messages": [{"sender": "human", "text": Q}, {"sender": "assistant", "text": A}]},
        "--conversations chat_messages --message-fields sender,text",
    ),
    (
        {"messages": [{"author": "user", "content": Q}, {"author": "assistant", "content": A}]},
        "--conversations messages --message-fields author,content",
    ),
    (
        {"messages": [{"type": "human", "data": {"content": Q}}, {"type": "ai", "data": {"content": A}}]},
        "--conversations messages --message-fields type,data.content",
    ),
    (
        {"thread": [{"author": {"name": "user"}, "body": Q}, {"author": {"name": "bot"}, "body": A}]},
        "--conversations thread --message-fields author.name,body",
    ),
    (
        {"turns": {"speaker": ["user", "bot"], "utterance": [Q, A]}},
        "--conversations turns --message-fields speaker,utterance",
    ),
    ({"dialog": [Q, A], "act": [1, 2]}, "--conversations dialog"),
    ({"system": "SYSTEM: s", "chat": f"USER: {Q}\n\nASSISTANT: {A}"}, ""),
    (
        {"question": Q, "human_answers": [A], "chatgpt_answers": [A]},
        "--prompt question --completion 'human_answers[0]'",
    ),
    (
        {"context": "c", "question": Q, "answers": {"text": [A], "answer_start": [0]}},
        "--prompt context,question --completion 'answers.text[0]'",
    ),
    ({"question": Q, "answer": {"value": A, "aliases": [A]}}, "--prompt question --completion answer.value"),
    ({"question": Q, "passage": "p", "answer": True}, "--prompt passage,question --completion answer"),
    (
        {"instruction": Q, "completions": [{"model": "m", "response": A}]},
        "--prompt instruction --completion 'completions[0].response'",
    ),
    (
        {"prompt": [{"role": "user", "content": Q}], "responses": [A, A]},
        "--prompt prompt --completion 'responses[0]'",
    ),
    ({"question": Q, "choices": ["no", A], "answer": 1}, ""),
    ({"question": Q, "choices": {"text": ["no", A], "label": ["A", "B"]}, "answerKey": "B"}, ""),
    ({"ctx": Q, "endings": ["no", A], "label": "1"}, ""),
    ({"question": Q, "options": {"A": "no", "B": A}, "answer_idx": "B", "answer": A}, ""),
    ({"prompt": Q, "response_0": A, "response_1": "b"}, "--prompt prompt --completion response_0"),
    ({"history": Q, "human_ref_A": A, "human_ref_B": "b"}, "--prompt history --completion human_ref_A"),
    ({"question": {"full_text": Q}, "answer_0": A}, "--prompt question.full_text --completion answer_0"),
    ({"context": TURNS[:1], "response1": A, "response2": "b"}, "--prompt context --completion response1"),
    ({"conversation_a": TURNS, "conversation_b": TURNS}, "--conversations conversation_a"),
    ({"system": "s", "question": Q, "chosen": A, "rejected": "b"}, "--prompt question --completion chosen"),
    ({"translation": {"de": Q, "en": A}}, ""),
    ({"prompt": [{"role": "user", "content": Q}], "reward_model": {"style": "rule"}}, ""),
]
"""Records that are not read by themselves, and the options that the message names."""


@pytest.mark.parametrize(("record", "options"), REFUSED)
@pytest.mark.parametrize("name", ["a.jsonl", "a.parquet"])
def test_what_is_not_known_is_refused_with_the_nearest_options(
    tmp_path: Path, chat: dict[str, Any], name: str, record: dict[str, Any], options: str
) -> None:
    path = write(tmp_path / name, [record] * 2)
    with pytest.raises((DataError, UsageError)) as error:
        packtool.tokenize(path, tmp_path / "s", tokenizer=ASSET)
    assert error.value.code in ("unread-layout", "unclear-fields", "preference-pairs", "missing-text")
    assert options in error.value.typed()
    if options:
        words = [word.removeprefix("--").replace("-", "_") for word in shlex.split(options)]
        named: dict[str, Any] = dict(zip(words[::2], shlex.split(options)[1::2], strict=True))
        packtool.tokenize(path, tmp_path / "s", **named, **chat, tool_calls="drop")
        counts = TokenStore(tmp_path / "s").manifest.counts
        assert counts["documents"] == 2
        assert counts["trained_tokens"] > 0


TAKEN: list[tuple[dict[str, Any], list[dict[str, Any]]]] = [
    (  # Bedrock
        {"system": [{"text": "Be brief."}], "messages": IN_PARTS},
        [SAID, *TURNS],
    ),
    (  # Gemini
        {
            "systemInstruction": {"parts": [{"text": "Be brief."}]},
            "contents": [{"role": "user", "parts": [{"text": Q}]}, {"role": "model", "parts": [{"text": A}]}],
        },
        [SAID, *TURNS],
    ),
    (  # Cohere, older and newer
        {"chat_history": [{"role": "USER", "message": Q}, {"role": "CHATBOT", "message": A}]},
        TURNS,
    ),
    (
        {"messages": [{**SAID, "role": "System"}, {"role": "User", "content": Q}, {"role": "Chatbot", "content": A}]},
        [SAID, *TURNS],
    ),
    ({"messages": [{"role": "human", "text": Q}, {"role": "gpt", "text": A}]}, TURNS),
    ({"conversations": {"from": ["human", "gpt"], "value": [Q, A]}}, TURNS),  # a sequence of `datasets`
    ({"messages": {"role": ["user", "assistant"], "content": [Q, A]}}, TURNS),
    ({"conversation": [{"system": "Be brief.", "input": Q, "output": A}]}, [SAID, *TURNS]),  # XTuner
    ({"inputs": [1, 2], "inputs_pretokenized": Q, "targets": [3], "targets_pretokenized": A}, TURNS),  # P3
    ({"input_text": Q, "output_text": A}, TURNS),  # PaLM
]  # fmt: skip


@pytest.mark.parametrize(("record", "messages"), TAKEN)
def test_forms_of_other_interfaces_are_read(
    tmp_path: Path, chat: dict[str, Any], record: dict[str, Any], messages: list[dict[str, Any]]
) -> None:
    expected = stored([{"messages": messages}] * 2, tmp_path / "expected", **chat)
    for name in ("a.jsonl", "a.parquet"):
        assert stored(write(tmp_path / name, [record] * 2), tmp_path / name[2:], **chat) == expected
        trained = [TokenStore(tmp_path / store).manifest.counts["trained_tokens"] for store in (name[2:], "expected")]
        assert trained[0] == trained[1] > 0


@pytest.mark.parametrize("name", ["a.jsonl", "a.parquet"])
def test_a_text_that_is_one_message_of_a_tree_is_read_with_a_warning(tmp_path: Path, name: str) -> None:
    record = {"message_id": "1", "parent_id": "0", "text": Q, "role": "prompter"}
    with pytest.warns(PacktoolWarning, match="one message of a tree, .*: each 'text' is read by itself"):
        packtool.tokenize(write(tmp_path / name, [record] * 2), tmp_path / "s", tokenizer=ASSET)


def test_a_part_that_is_no_text_is_named(tmp_path: Path, chat: dict[str, Any]) -> None:
    call = {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {"x": 1}}}]}
    path = write(tmp_path / "a.jsonl", [{"contents": [{"role": "user", "parts": [{"text": Q}]}, call]}])
    with pytest.raises(DataError, match="message 2 has a part of functionCall, which is not a text"):
        packtool.tokenize(path, tmp_path / "s", **chat)


@pytest.mark.parametrize(
    "record",
    [
        {"messages": TURNS, "comments": [{"author": "x", "text": "y"}], "choices": ["a"], "answers": ["b"]},
        {"question": Q, "answer": A, "thread": [{"author": "x", "text": "y"}], "answers": ["b"]},
        {"prompt": Q, "completion": A, "response_1": "a", "response_2": "b"},
    ],
)
@pytest.mark.filterwarnings("ignore:.*of the first record")
def test_what_is_read_is_read_whatever_is_beside_it(
    tmp_path: Path, chat: dict[str, Any], record: dict[str, Any]
) -> None:
    expected = stored([{"messages": TURNS}] * 2, tmp_path / "expected", **chat)
    for name in ("a.jsonl", "a.parquet"):
        assert stored(write(tmp_path / name, [record] * 2), tmp_path / name[2:], **chat) == expected
