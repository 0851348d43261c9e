"""Records with a prompt and its answer become conversations: by options, or by well-known names."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import packtool
from packtool.errors import DataError, UsageError
from packtool.formats import fields
from packtool.formats.token_store import TokenStore
from packtool.spelling import as_typed
from packtool.text.conversations import layouts
from packtool.text.conversations.layouts import known_layout
from packtool.text.conversations.record import conversation_of
from packtool.warnings import PacktoolWarning
from tests.stores import load
from tests.text.corpus.reading import write
from tests.text.tokenizing.runs import ASSET, stored

OPTIONAL = st.sampled_from(["", "x", "two\nlines", None])


def alpaca(record: dict[str, Any]) -> list[dict[str, str]]:
    """The messages that LLaMA-Factory makes of a record of its alpaca format."""
    messages = [{"role": "system", "content": record["system"]}] if record.get("system") else []
    for question, answer in record.get("history") or []:
        messages += [{"role": "user", "content": question}, {"role": "assistant", "content": answer}]
    query = [record[name] for name in ("instruction", "input") if record.get(name)]
    messages.append({"role": "user", "content": "\n".join(query)})
    return [*messages, {"role": "assistant", "content": record["output"]}]


@given(
    st.fixed_dictionaries(
        {"instruction": st.text(min_size=1), "output": st.text(min_size=1)},
        optional={
            "input": OPTIONAL,
            "system": OPTIONAL,
            "history": st.none() | st.lists(st.lists(st.text(min_size=1), min_size=2, max_size=2)),
        },
    )
)
def test_messages_are_those_of_llama_factory(record: dict[str, Any]) -> None:
    layout = known_layout(list(record))
    assert layout is not None
    talk = conversation_of(record, [layout])
    assert list(talk.messages) == alpaca(record)
    assert talk.prompt == len(talk.messages) - 1


@pytest.mark.parametrize("known", fields.KNOWN, ids=lambda known: known.prompt)
def test_every_known_layout_is_taken(known: fields.Known) -> None:
    """None stands behind another that has its names."""
    for answer in known.answers:
        found = known_layout([known.prompt, *known.after, answer])
        assert found is not None
        assert (found.prompt, found.completion) == ((known.prompt, *known.after), answer)


@pytest.mark.parametrize(
    ("names", "option", "layout"),
    [
        (["problem", "solution", "answer"], {"completion": "solution"}, "--prompt problem --completion solution"),
        (
            ["question", "context", "answer"],
            {"prompt": ("context", "question")},
            "--prompt context,question --completion answer",
        ),
        (["db_id", "query", "question"], {"completion": "query"}, "--prompt question --completion query"),
        (["text", "Summary"], {"prompt": ("text",)}, "--prompt text --completion Summary"),
        (["text", "label"], {"prompt": ("text",)}, None),
        (["text", "label"], {"completion": "label"}, None),
    ],
)
def test_one_of_prompt_and_answer_is_enough(
    tmp_path: Path, chat: dict[str, Any], names: list[str], option: dict[str, Any], layout: str | None
) -> None:
    found = known_layout(names, **option)
    assert (None if found is None else as_typed(found.shown())) == layout
    options = {**chat, **option}
    for name in ("a.jsonl", "a.parquet", "a.csv"):
        path = write(tmp_path / name, [{key: f"the {key}" for key in names}])
        if found is None:
            with pytest.raises(UsageError, match="by its well-known names, the other part is not found: in the first"):
                packtool.tokenize(path, tmp_path / name[2:], **options)
            continue
        one = stored(path, tmp_path / name[2:], **options)
        options |= {"prompt": found.prompt, "completion": found.completion}
        assert one == stored(path, tmp_path / f"{name[2:]}-both", **options)


RECORDS = [
    {"instruction": "Add.", "input": "1 + 1", "output": "2"},
    {"instruction": "Say Hi.", "input": "", "output": "Hi."},
]


def test_system_and_history_are_named(tmp_path: Path, chat: dict[str, Any]) -> None:
    record = {"s": "Brief.", "past": [["1", "one"]], "q": "2", "a": "two"}
    messages = [("system", "Brief."), ("user", "1"), ("assistant", "one"), ("user", "2"), ("assistant", "two")]
    talk = {"messages": [{"role": role, "content": text} for role, text in messages]}
    expected = stored([talk], tmp_path / "expected", **chat)
    options = {"prompt": ["q"], "completion": "a", "system": "s", "history": "past", **chat}
    for name in ("a.jsonl", "a.parquet"):
        assert stored(write(tmp_path / name, [record]), tmp_path / f"s{name}", **options) == expected


def test_a_record_without_an_answer_is_an_error(tmp_path: Path, chat: dict[str, Any]) -> None:
    path = write(tmp_path / "a.jsonl", [*RECORDS, {"instruction": "Add."}, {"instruction": "", "output": "x"}])
    with pytest.raises(DataError, match=r"a\.jsonl:3: no field 'output' with the answer; there are instruction"):
        packtool.tokenize(path, tmp_path / "s", **chat)
    with pytest.warns(PacktoolWarning, match="2 records could not be used"):
        packtool.tokenize(path, tmp_path / "s", **chat, on_error="skip")


def test_several_text_fields(tmp_path: Path) -> None:
    records = [
        {"title": "T", "body": "B"},
        {"title": "", "body": "B"},
        {"title": None, "body": "B"},
        {"body": "B"},
        {"title,body": "whole", "title": "x"},
    ]
    expected = stored(iter(["T\n\nB", "B", "B", "B", "whole"]), tmp_path / "expected")
    for name, count in (("a.jsonl", 5), ("a.parquet", 4)):
        path = write(tmp_path / name, records[:count])
        assert stored(path, tmp_path / name[2:], text_field="title,body") == expected[:count]
    with pytest.raises(DataError, match="no text field 'a,b'; there are"):
        packtool.tokenize(tmp_path / "a.jsonl", tmp_path / "x", tokenizer=ASSET, text_field="a,b")
    with (
        pytest.warns(PacktoolWarning, match="text_field: the first record has no 'titel'; there are title, body"),
        pytest.raises(DataError, match="no text field 'titel,body'; there are title,body, title"),
    ):
        packtool.tokenize(tmp_path / "a.jsonl", tmp_path / "x", tokenizer=ASSET, text_field="titel,body")


def test_a_layout_is_added_as_contributing_says(monkeypatch: pytest.MonkeyPatch) -> None:
    page = (Path(__file__).parents[3] / "CONTRIBUTING.md").read_text(encoding="utf-8")
    example = re.search(r"## Adding a record's layout.*?```text\n(.*?)```", page, re.DOTALL)
    names = ["source_text", "hint", "target_text"]
    assert layouts.known_layout(names) is None
    monkeypatch.setattr(layouts, "KNOWN", (*layouts.KNOWN, *eval(f"({example[1].strip()})", vars(fields))))
    assert layouts.known_layout(names) == layouts.RecordLayout(prompt=("source_text", "hint"), completion="target_text")


@pytest.mark.parametrize("name", ["a.jsonl", "a.json", "a.parquet", "a.arrow"])
def test_every_field_is_named_by_its_path(tmp_path: Path, chat: dict[str, Any], name: str) -> None:
    record = {
        "data": {
            "q": ["?", "q"],
            "turns": [{"who": "human", "said": {"text": "q"}}, {"who": "bot", "said": {"text": "a"}}],
        },
        "answers": {"text": ["a", "b"]},
        "tags": ["x"],
        "ids": [[1, 2], [3]],
        "key": {"n": [7, 8]},
    }
    path = write(tmp_path / name, [record, {**record, "tags": []}])
    expected = stored([{"prompt": "q", "completion": "a"}] * 2, tmp_path / "expected", **chat)
    asked: dict[str, Any] = {"prompt": "data.q[1]", "completion": "answers.text[0]"}
    assert stored(path, tmp_path / "s", **asked, **chat, columns=["tags[0]"], id_field="key.n[-1]") == expected
    store = TokenStore(tmp_path / "s")
    assert store.column("tags[0]").to_pylist() == ["x", None]
    assert store.column("key.n[-1]").to_pylist() == ["8", "8"]
    turns: dict[str, Any] = {"conversations": "data.turns", "message_fields": "who,said.text"}
    assert stored(path, tmp_path / "t", **turns, **chat) == expected
    assert load(tmp_path / "t")["options"]["message_fields"] == ["who", "said.text"]
    texts = stored(path, tmp_path / "u", text_field="answers.text[-1]")
    assert texts == stored(iter(["b", "b"]), tmp_path / "v")
    assert [ids[:2] for ids in stored(path, tmp_path / "w", ids_field="ids[0]")] == [[1, 2]] * 2
    with pytest.raises(DataError, match=r"no text field 'answers\.text\[9\]'|text column 'answers\.text\[9\]' is null"):
        packtool.tokenize(path, tmp_path / "x", tokenizer=ASSET, text_field="answers.text[9]")


def test_reasoning_is_named(tmp_path: Path, chat: dict[str, Any]) -> None:
    expected = stored([{"prompt": "q", "completion": "a", "thinking": "Hm."}], tmp_path / "expected", **chat)
    for name in ("a.jsonl", "a.parquet"):
        path = write(tmp_path / name, [{"question": "q", "Complex_CoT": ["Hm."], "answer": "a"}])
        assert stored(path, tmp_path / name[2:], reasoning_field="Complex_CoT[0]", **chat) == expected
        assert load(tmp_path / name[2:])["options"]["reasoning_field"] == "Complex_CoT[0]"
