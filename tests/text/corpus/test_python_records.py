"""Records from a program: the store is that of a file with the same records."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import packtool
from packtool.errors import PacktoolError
from tests.stores import contents, load
from tests.text.tokenizing.runs import ASSET, documents

RECORDS = [{"id": number, "text": f"document {number}\né \u2028", "other": None} for number in range(300)]


class Dataset:
    """Has what `tokenize` asks of a dataset of Hugging Face; decoding the image fails."""

    def __init__(self, columns: list[str]) -> None:
        self.column_names = columns

    def select_columns(self, names: list[str]) -> Dataset:
        return Dataset(names)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        assert "image" not in self.column_names
        yield from ({name: record[name] for name in self.column_names} for record in RECORDS)


def test_every_kind_of_iterable_gives_the_store_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(record) + "\n" for record in RECORDS))
    kinds: dict[str, Any] = {
        "file": tmp_path / "a.jsonl",
        "list": RECORDS,
        "records": iter(RECORDS),
        "dataset": Dataset(["id", "text", "image"]),
    }
    for name, given_ in kinds.items():
        packtool.tokenize(given_, tmp_path / name, tokenizer=ASSET, id_field="id")
    packtool.tokenize((record["text"] for record in RECORDS), tmp_path / "texts", tokenizer=ASSET)
    assert contents(tmp_path / "list") == contents(tmp_path / "records") == contents(tmp_path / "dataset")
    assert documents(tmp_path / "list") == documents(tmp_path / "file") == documents(tmp_path / "texts")
    assert load(tmp_path / "list")["inputs"][0]["name"] == "records"


def test_what_are_no_records_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.jsonl").write_text("{}")
    cases: list[tuple[Any, dict[str, Any], str]] = [
        ({"train": [], "test": []}, {}, "inputs: a mapping, of train, test, is not a sequence of records. Give one of"),
        (iter(["a", 3]), {}, "inputs: record 2 is int, neither a text nor a mapping. Yield texts, or mappings such as"),
        (Path().glob("*.jsonl"), {}, "inputs: record 1 is a path. Give paths as a list."),
        (iter(["a.jsonl"]), {}, "inputs: the first text, 'a.jsonl', names a file. Give paths as a list, or texts as"),
        (
            [{"txt": "a"}],
            {},
            "inputs: the first record has neither 'text' nor a conversation under the usual names",
        ),
        ([{"text": "a"}, {"txt": "a"}], {}, ":2: no text field 'text'; there are txt (read as jsonl). Name the field"),
        (iter("ab"), {"resume": True}, "resume: a stream of records can't be resumed. Write it to a file first"),
    ]
    for inputs, options, message in cases:
        with pytest.raises(PacktoolError) as error:
            packtool.tokenize(inputs, "store", tokenizer=ASSET, **options)
        assert message in str(error.value)
        assert not Path("store").exists()


def test_an_iterator_that_fails_leaves_nothing(tmp_path: Path) -> None:
    def failing() -> Iterator[str]:
        yield "a"
        raise RuntimeError("the source broke")

    with pytest.raises(RuntimeError, match="the source broke"):
        packtool.tokenize(failing(), tmp_path / "store", tokenizer=ASSET)
    assert not (tmp_path / "store").exists()
