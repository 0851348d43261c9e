"""Layouts of records that are not read are refused by name; the way out that the message shows is tried."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
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
    ({"id": "1", "parent_id": "0", "instruction": Q, "output": A}, r"one turn of .* \(H2O\)"),
    ({"meta_instruction": "m", "chat": {"turn_1": {"Human": Q, "MOSS": A}}}, r"object of turns \(MOSS\)"),
    ({"mapping": {"a": {"parent": None}}, "current_node": "a"}, "an export of ChatGPT, whose messages are a tree"),
    ({"custom_id": "1", "body": {"messages": TURNS[:1]}}, "a request of a batch, without its answer"),
    ({"custom_id": "1", "response": {"body": {"id": "1"}}}, "an answer of a batch, without its request"),
    ({"segments": [{"label": True, "text": A}]}, r"segments that are marked to train \(Axolotl\)"),
    ({"prompt": Q, "completions": ["It is", "so."], "labels": [True, True]}, "an answer in steps"),
    ({"story": "s", "questions": [Q], "answers": {"input_text": [A]}}, "a list of questions, and one of answers"),
    (
        {"query": Q, "answers": '[{"name": "f", "arguments": {"x": 1}}]', "tools": '[{"name": "f"}]'},
        "a question with the calls that answer it, as xLAM",
    ),
    ({"conversation": [{"message": Q, "is_human": True}, {"message": A, "is_human": False}]}, "messages, 'conv"),
    ({"chat_messages": [{"sender": "human", "text": Q}, {"sender": "assistant", "text": A}]}, "but sender, text"),
    ({"messages": [{"author": "user", "content": Q}, {"author": "assistant", "content": A}]}, "but author, content"),
    ({"messages": [{"type": "human", "data": {"content": Q}}, {"type": "ai", "data": {"content": A}}]}, "but type"),
    ({"thread": [{"author": {"name": "user"}, "body": Q}, {"author": {"name": "bot"}, "body": A}]}, "but author, body"),
    ({"turns": {"speaker": ["user", "bot"], "utterance": [Q, A]}}, "no role and content but speaker, utterance"),
    ({"dialog": [Q, A], "act": [1, 2]}, "a list of texts, 'dialog', which does not say who speaks"),
    ({"system": "SYSTEM: s", "chat": f"USER: {Q}\n\nASSISTANT: {A}"}, "a conversation in one string, 'chat'"),
    ({"question": Q, "human_answers": [A], "chatgpt_answers": [A]}, "whose answer, 'human_answers', is a list or"),
    ({"context": "c", "question": Q, "answers": {"text": [A], "answer_start": [0]}}, "whose answer, 'answers', is"),
    ({"question": Q, "answer": {"value": A, "aliases": [A]}}, "whose answer, 'answer', is a list or an object"),
    ({"question": Q, "passage": "p", "answer": True}, "whose answer, 'answer', is no text"),
    ({"instruction": Q, "completions": [{"model": "m", "response": A}]}, "whose answer, 'completions', is a list or"),
    ({"prompt": [{"role": "user", "content": Q}], "responses": [A, A]}, "whose answer, 'responses', is a list or an"),
    ({"question": Q, "choices": ["no", A], "answer": 1}, "multiple choice: 'answer' says which of 'choices' is right"),
    ({"question": Q, "choices": {"text": ["no", A], "label": ["A", "B"]}, "answerKey": "B"}, "'answerKey' says which"),
    ({"ctx": Q, "endings": ["no", A], "label": "1"}, "multiple choice: 'label' says which of 'endings' is right"),
    ({"question": Q, "options": ["no", A], "correct": "B"}, "multiple choice: 'correct' says which of 'options'"),
    ({"question": Q, "options": {"A": "no", "B": A}, "answer_idx": "B", "answer": A}, "multiple choice: 'answer_idx'"),
    ({"prompt": Q, "response_0": A, "response_1": "b", "better_response_id": 0}, "to be compared: response_0, resp"),
    ({"history": Q, "human_ref_A": A, "human_ref_B": "b", "labels": 0}, "to be compared: human_ref_A, human_ref_B"),
    ({"question": {"full_text": Q}, "answer_0": A, "answer_1": "b"}, "to be compared: answer_0, answer_1"),
    ({"context": TURNS[:1], "response1": A, "response2": "b"}, "to be compared: response1, response2"),
    ({"conversation_a": TURNS, "conversation_b": TURNS}, "to be compared: conversation_a, conversation_b"),
    ({"system": "s", "question": Q, "chosen": A, "rejected": "b"}, "a preference pair"),
    ({"translation": {"de": Q, "en": A}}, "a text in several languages, in 'translation'"),
    ({"prompt": [{"role": "user", "content": Q}], "reward_model": {"style": "rule"}}, "a prompt without an answer"),
]  # fmt: skip
"""Records, and what they are called."""
WORDS = ("H2O", "ChatGPT", "batch", "Axolotl", "one string", "without an answer")
"""Where the way out can't be shown as a command."""
UNSEEN_IN_TABLES = ("one string", "'answer_idx'")
"""What a record is called for its values, of which a table shows only types."""


@pytest.mark.parametrize(("record", "called"), REFUSED)
def test_a_layout_is_refused_by_name_with_a_way_out(
    tmp_path: Path, chat: dict[str, Any], record: dict[str, Any], called: str
) -> None:
    path = write(tmp_path / "a.jsonl", [record] * 2)
    with pytest.raises(UsageError, match=rf"a\.jsonl: the first record is .*{called}") as error:
        packtool.tokenize(path, tmp_path / "s", **chat)
    remedy = error.value.remedy
    if not any(word in called for word in UNSEEN_IN_TABLES):
        table = write(tmp_path / "a.parquet", [record] * 2)
        with pytest.raises(UsageError, match=called) as same:
            packtool.tokenize(table, tmp_path / "s", **chat)
        assert same.value.remedy == remedy
    command = re.search(r"jq -c '.*'", remedy)
    named = dict(re.findall(r"--([a-z]+) ([\w,]+)", remedy))
    if command is not None and shutil.which("jq"):
        made = tmp_path / "made.jsonl"
        done = subprocess.run(shlex.split(command[0]), input=path.read_bytes(), capture_output=True, check=True)
        made.write_bytes(done.stdout)
        packtool.tokenize(made, tmp_path / "s", **chat)
        counts = TokenStore(tmp_path / "s").manifest.counts
        assert counts["documents"] == 2
        assert counts["trained_tokens"] > 0
    elif named:
        packtool.tokenize(path, tmp_path / "s", **named, **chat)
    else:
        assert command is not None or any(word in called for word in WORDS)


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
def test_what_is_read_is_read_whatever_is_beside_it(
    tmp_path: Path, chat: dict[str, Any], record: dict[str, Any]
) -> None:
    expected = stored([{"messages": TURNS}] * 2, tmp_path / "expected", **chat)
    for name in ("a.jsonl", "a.parquet"):
        assert stored(write(tmp_path / name, [record] * 2), tmp_path / name[2:], **chat) == expected


@pytest.mark.parametrize("choices", [{"label": 5}, {"label": None, "text": None}, {"a": 1}])
def test_odd_choices_are_asked_about(tmp_path: Path, choices: dict[str, Any]) -> None:
    path = write(tmp_path / "a.jsonl", [{"question": Q, "choices": choices, "answer": A}])
    with pytest.raises(UsageError, match="the first record has question, answer, choices: it is not clear"):
        packtool.tokenize(path, tmp_path / "s", tokenizer=ASSET)
