"""Rows of Parquet and Arrow are the records that were written: what a record lacked is not there, JSON is parsed."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

import packtool
from packtool.errors import PacktoolError, UsageError
from packtool.text.conversations.layouts import RecordLayout
from packtool.text.corpus.python_records import copy_records
from packtool.text.corpus.read import SpanReader
from packtool.text.corpus.records import Fields, Span
from tests.text.corpus.reading import find, together
from tests.text.tokenizing.runs import ASSET, documents

CHAT = Fields(layout=RecordLayout("messages"))
POOL = {
    "x": st.integers(-(2**62), 2**62),
    "y": st.text(max_size=5),
    "z": st.lists(st.text(max_size=3) | st.none(), max_size=2),
    "w": st.fixed_dictionaries({}, optional={"a": st.booleans(), "b": st.floats(allow_nan=False)}),
}
ARGUMENTS = st.fixed_dictionaries({}, optional=POOL)
CALL = st.builds(
    lambda name, given: {"type": "function", "function": {"name": name, "arguments": given}}, st.text(), ARGUMENTS
)
MESSAGE = st.one_of(
    st.builds(lambda text: {"role": "user", "content": text}, st.text()),
    st.builds(
        lambda calls: {"role": "assistant", "content": "", "tool_calls": calls}, st.lists(CALL, min_size=1, max_size=2)
    ),
)
RECORD = st.builds(
    lambda messages, properties: {"messages": messages, "tools": [{"name": "f", "parameters": properties}]},
    st.lists(MESSAGE, min_size=1, max_size=3),
    ARGUMENTS,
)


def read(path: Path, fields: Fields, limit: int = 1 << 20) -> tuple[list[Any], list[tuple[int, str, str]]]:
    """Read texts, or the records of conversations."""
    [file] = find(path)
    documents, rejects = together(SpanReader(file, Span(0), fields, limit=limit))
    return [document.record if fields.chat else document for document in documents], rejects


def write(table: pa.Table, path: Path) -> Path:
    """Write a table as the suffix says: Parquet, Arrow's file, or its stream."""
    if path.suffix == ".parquet":
        parquet.write_table(table, path, row_group_size=2)
        return path
    kind = pa.ipc.new_stream if path.suffix == ".arrow" else pa.ipc.new_file
    with kind(path, table.schema) as writer:
        writer.write_table(table, max_chunksize=2)
    return path


@given(st.lists(RECORD, min_size=1, max_size=5), st.sampled_from(["a.parquet", "a.arrow", "a.feather"]))
def test_rows_are_the_records_that_were_written(records: list[dict[str, Any]], name: str) -> None:
    try:
        table = pa.Table.from_pylist(records)
        with tempfile.TemporaryDirectory() as place:
            path = write(table, Path(place) / name)
            found, rejects = read(path, CHAT)
    except pa.ArrowNotImplementedError:  # a struct without any field
        return
    assert not rejects
    # Where no record has arguments at all, they are a null column: an absence.
    assert found == records


def as_json(values: list[Any]) -> pa.Array:
    storage = pa.array([None if value is None else json.dumps(value) for value in values])
    return pa.ExtensionArray.from_storage(pa.json_(), storage)


@pytest.mark.parametrize("name", ["a.parquet", "a.arrow", "a.feather"])
def test_json_of_arrow_is_read_wherever_it_stands(tmp_path: Path, name: str) -> None:
    messages = [{"role": "user", "content": "q", "x": None}, {"role": "user", "content": "", "a": [None, {"b": None}]}]
    lists = pa.ListArray.from_arrays([0, 1, 2], as_json(messages))
    structs = pa.StructArray.from_arrays([as_json([{"n": None}, None])], ["parameters"])
    structs = pa.ListArray.from_arrays([0, 1, 2], structs)
    table = pa.table({"text": as_json(["one", {"x": 1}]), "messages": lists, "tools": structs, "n": as_json([1, "a"])})
    path = write(table, tmp_path / name)
    assert read(path, CHAT) == (
        [{"messages": messages[:1], "tools": [{"parameters": {"n": None}}]}, {"messages": messages[1:], "tools": [{}]}],
        [],
    )
    what = f"text field 'text' is an object, not a string (read as {name[2:].replace('feather', 'arrow')})"
    assert read(path, Fields()) == (["one"], [(2, "missing-text", what)])


def test_a_map_is_an_object_and_bytes_are_text(tmp_path: Path) -> None:
    kind = pa.list_(pa.map_(pa.string(), pa.string()))
    rows = [[[("role", "user"), ("content", "Hi")], [("role", "assistant"), ("content", "Ho")]]]
    table = pa.table({"messages": pa.array(rows, kind), "text": pa.array(["é".encode()]), "raw": pa.array([b"\xff"])})
    path = write(table, tmp_path / "a.parquet")
    assert read(path, CHAT) == ([{"messages": [dict(message) for message in rows[0]]}], [])
    assert read(path, Fields()) == (["é"], [])
    assert read(path, Fields("raw")) == ([], [(1, "invalid-utf8", "column 'raw': not valid UTF-8")])
    assert read(path, Fields(), limit=1) == ([], [(1, "record-too-large", "a record of 2 bytes, above the limit of 1")])


def test_times_beside_what_is_said_are_left_out(tmp_path: Path) -> None:
    fields = [("role", pa.string()), ("content", pa.string()), ("at", pa.timestamp("us", "UTC"))]
    said = [{"role": "user", "content": "a", "at": 5}, {"role": "assistant", "content": "b", "at": None}]
    kind = pa.list_(pa.struct(fields))
    path = write(pa.table({"messages": pa.array([said], kind), "tools": pa.array([[]], kind)}), tmp_path / "a.parquet")
    [(_, code, reason)] = read(path, CHAT)[1]
    assert (code, reason) == ("bad-field", "column 'tools.at' holds timestamp[us, tz=UTC], which JSON has not")
    path = write(pa.table({"messages": pa.array([said], kind)}), tmp_path / "b.parquet")
    messages = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
    assert read(path, CHAT) == ([{"messages": messages}], [])


def test_what_json_has_not_is_refused_by_name(tmp_path: Path, chat: dict[str, Any]) -> None:
    kind = pa.list_(pa.struct([("role", pa.string()), ("content", pa.timestamp("s"))]))
    path = write(pa.table({"messages": pa.array([[{"role": "user", "content": 5}]], kind)}), tmp_path / "a.parquet")
    message = r"'messages\.content' holds timestamp\[ms\], which JSON has not"
    with pytest.raises(PacktoolError, match=f"{message}. Cast it to strings"):
        packtool.tokenize(path, tmp_path / "s", conversations="messages", **chat)
    with pytest.raises(UsageError, match=message):
        copy_records(Rows(parquet.read_table(path)), tmp_path, CHAT)


@pytest.mark.parametrize("options", [{}, {"dry_run": True}, {"on_error": "skip"}])
@pytest.mark.filterwarnings("ignore:.*no document is left")
def test_a_file_without_row_groups_may_be_the_first(tmp_path: Path, options: dict[str, Any]) -> None:
    schema = pa.schema([("text", pa.string())])
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    parquet.ParquetWriter(corpus / "a.parquet", schema).close()
    assert parquet.ParquetFile(corpus / "a.parquet").num_row_groups == 0
    write(pa.table({"text": ["one"]}), corpus / "b.parquet")
    assert packtool.info(corpus / "a.parquet").kind == "not written by packtool"
    packtool.tokenize(corpus, tmp_path / "s", tokenizer=ASSET, **options)
    if "dry_run" not in options:
        assert len(documents(tmp_path / "s")) == 1


@pytest.mark.parametrize("cut", [-9, 700, 60])
def test_damage_of_arrow_is_told(tmp_path: Path, cut: int) -> None:
    table = pa.table({"text": [f"document {number}" for number in range(100)]})
    for name in ("a.arrow", "a.feather"):
        path = write(table, tmp_path / name)
        path.write_bytes(path.read_bytes()[:cut])
        found, [(record, code, reason)] = read(path, Fields())
        assert found == [f"document {number}" for number in range(len(found))]
        assert (record, code) == (0, "damaged-file")
        assert "not a whole Arrow file" in reason or "without its end" in reason


def test_a_dataset_in_a_program_is_read_like_its_file(tmp_path: Path) -> None:
    records: list[Any] = [
        {"text": "a", "messages": [{"role": "user", "content": "a", "x": {"n": 1}}]},
        {"messages": [{"role": "x"}]},
    ]
    file = copy_records(Rows(pa.Table.from_pylist(records)), tmp_path, CHAT)
    lines = [json.loads(line) for line in Path(file.location).read_text().splitlines()]
    assert lines == [{"messages": records[0]["messages"], "text": True}, {"messages": records[1]["messages"]}]


class Rows:
    """Has what `tokenize` asks of a `Dataset`: its rows have a null for whatever a record lacks."""

    features = "known"

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    @property
    def column_names(self) -> list[str]:
        return list(self._table.column_names)

    def select_columns(self, names: list[str]) -> Rows:
        return Rows(self._table.select(names))

    def with_format(self, kind: str) -> Rows:
        assert kind == "arrow"
        return self

    def iter(self, batch_size: int) -> Any:
        return (self._table.slice(first, batch_size) for first in range(0, len(self._table), batch_size))
