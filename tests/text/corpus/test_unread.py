"""Forms of other interfaces are read, whatever is beside them, and what is not said by a text is named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import packtool
from packtool.errors import DataError
from packtool.formats.token_store import TokenStore
from packtool.warnings import PacktoolWarning
from tests.text.corpus.reading import write
from tests.text.tokenizing.runs import ASSET, stored

Q, A = "What is it?", "It is so."
TURNS = [{"role": "user", "content": Q}, {"role": "assistant", "content": A}]
IN_PARTS = [{"role": turn["role"], "content": [{"text": turn["content"]}]} for turn in TURNS]
SAID = {"role": "system", "content": "Be brief."}

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
