"""Records from a program: the store is that of a file with the same records."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import packtool
from packtool.errors import PacktoolError
from packtool.formats.token_store import TokenStore
from tests.stores import contents, load
from tests.text.tokenizing.runs import ASSET, documents

RECORDS = [{"id": number, "text": f"document {number}\né \u2028", "other": None} for number in range(300)]
KINDS = (bytes, bytearray)


class Dataset:
    """Has what `tokenize` asks of a dataset of Hugging Face; decoding the image fails."""

    def __init__(self, columns: list[str]) -> None:
        self.column_names = columns

    def select_columns(self, names: list[str]) -> Dataset:
        return Dataset(names)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        assert "image" not in self.column_names
        yield from ({name: record[name] for name in self.column_names} for record in RECORDS)


class Table:
    """Gives Arrow data, once; its rows are no records."""

    def __init__(self) -> None:
        records = [{"image": b"\xff", **record} for record in RECORDS]
        self._reader = pa.Table.from_pylist(records).to_reader(max_chunksize=7)
        self.asked = 0

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        self.asked += 1
        return self._reader.__arrow_c_stream__(requested_schema)

    def __iter__(self) -> Iterator[str]:
        yield from ("image", "id", "text", "other")


class Anew:
    """Begins anew at each `iter`, as data sets that stream do."""

    def __iter__(self) -> Anew:
        self.left = list(RECORDS)
        return self

    def __next__(self) -> dict[str, Any]:
        if not self.left:
            raise StopIteration
        return self.left.pop(0)


def test_every_kind_of_iterable_gives_the_store_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(record) + "\n" for record in RECORDS))
    kinds: dict[str, Any] = {
        "file": tmp_path / "a.jsonl",
        "list": RECORDS,
        "records": iter(RECORDS),
        "dataset": Dataset(["id", "text", "image"]),
        "anew": Anew(),
        "numpy": [{"id": np.int64(one["id"]), "text": KINDS[one["id"] % 2](one["text"].encode())} for one in RECORDS],
        "table": Table(),
    }
    for name, given_ in kinds.items():
        packtool.tokenize(given_, tmp_path / name, tokenizer=ASSET, id_field="id")
    packtool.tokenize((record["text"] for record in RECORDS), tmp_path / "texts", tokenizer=ASSET)
    assert kinds["table"].asked == 1
    for name in ("records", "dataset", "anew", "numpy"):
        assert contents(tmp_path / "list") == contents(tmp_path / name)
    for name in ("file", "texts", "table"):
        assert documents(tmp_path / "list") == documents(tmp_path / name)
    ids = [TokenStore(tmp_path / name).column("id").to_pylist() for name in ("list", "table")]
    assert ids[0] == ids[1]
    assert load(tmp_path / "list")["inputs"][0]["name"] == "records"


def test_what_are_no_records_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.jsonl").write_text("{}")
    named: Any = io.StringIO("a")
    named.name = "a.jsonl"
    cases: list[tuple[Any, str]] = [
        ({"train": [], "test": []}, "inputs: a mapping, of train, test, is not a sequence of records. Give one of"),
        (iter(["a", 3]), "inputs: record 2 is int, neither a text nor a mapping. Yield texts, or mappings such as"),
        (Path().glob("*.jsonl"), "inputs: record 1 is a path. Give paths as a list."),
        (iter(["a.jsonl"]), "inputs: the first text, 'a.jsonl', names a file. Give paths as a list, or texts as"),
        ([{"txt": "a"}], "inputs: the first record has neither 'text' nor a conversation under the usual names"),
        (
            [{"text": "a"}, {"txt": "a"}],
            ":2: no text field 'text'; there are txt (read as jsonl; or format=\"text\"). Name the field",
        ),
        (b"a", 'inputs: bytes are neither names of files nor records. Give a text as [{"text": data.decode()}].'),
        (named, "inputs: an open file, whose lines would be taken for texts. Give its name: packtool.tokenize("),
        (io.StringIO("a"), "inputs: an open file, whose lines would be taken for texts. Write it to a file, and give"),
        (pa.table({"txt": ["a"]}), "inputs: the first record has neither 'text' nor a conversation under the usual"),
        (iter([{"text": b"\xff"}]), "inputs: a record holds bytes that are not UTF-8. Decode what is text, and"),
    ]
    for inputs, message in cases:
        with pytest.raises(PacktoolError) as error:
            packtool.tokenize(inputs, "store", tokenizer=ASSET)
        assert message in str(error.value)
        assert not Path("store").exists()


@pytest.mark.parametrize(
    ("records", "options", "message"),
    [
        ("ab", {"resume": True}, "resume: a stream of records can't be resumed. Write it to a file first"),
        ("ab", {"separator": "x"}, "separator: has no effect on the records of a program. Leave it out."),
        ([{"ids": [1]}, {"ids": b"\1"}], {"ids_field": "ids"}, "inputs: record 2 has bytes in 'ids', not a list of t"),
    ],
)
def test_what_records_do_not_take_is_refused(
    tmp_path: Path, records: Any, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(PacktoolError) as error:
        packtool.tokenize(iter(records), tmp_path / "store", tokenizer=ASSET, **options)
    assert str(error.value).startswith(message)
    assert not (tmp_path / "store").exists()


def test_an_iterator_that_fails_leaves_nothing(tmp_path: Path) -> None:
    def failing() -> Iterator[str]:
        yield "a"
        raise RuntimeError("the source broke")

    with pytest.raises(RuntimeError, match="the source broke"):
        packtool.tokenize(failing(), tmp_path / "store", tokenizer=ASSET)
    assert not (tmp_path / "store").exists()


def test_ids_are_arrays_of_numpy_too(tmp_path: Path) -> None:
    for name, given in {"lists": [[5, 6, 7], [8]], "arrays": [np.array([5, 6, 7]), np.array([8], np.uint16)]}.items():
        packtool.tokenize([{"ids": ids} for ids in given], tmp_path / name, tokenizer=ASSET, ids_field="ids")
    packtool.tokenize(pa.table({"ids": [[5, 6, 7], [8]]}), tmp_path / "table", tokenizer=ASSET, ids_field="ids")
    assert documents(tmp_path / "lists") == documents(tmp_path / "arrays") == documents(tmp_path / "table")
