"""Files opened where they lie: on this machine or in an object store."""

from __future__ import annotations

import gzip
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from packtool.corpus.records import Span
from packtool.errors import DataError
from packtool.places import client
from tests.corpus.reading import find, read

LINES = b"".join(b'{"text": "document %d"}\n' % n for n in range(20_000))


def test_object_stores_go_through_arrow(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "a.jsonl.gz").write_bytes(gzip.compress(LINES))
    (tmp_path / "b.jsonl").write_bytes(LINES)
    parquet.write_table(pa.table({"text": ["x"]}), tmp_path / "c.parquet")
    url = tmp_path.as_uri()
    files = find(url)
    assert [file.name for file in files] == ["b.jsonl", "c.parquet", "deep/a.jsonl.gz"]
    assert [sum(len(batch.documents) for batch in read(file, Span(0), "text")) for file in files] == [20_000, 1, 20_000]
    assert sum(len(batch.documents) for batch in read(files[0], Span(0, 1000, -1), "text")) < 20_000
    assert [file.name for file in find(url + "/**/*.gz")] == ["deep/a.jsonl.gz"]
    with pytest.raises(DataError, match="no such file or directory"):
        find(url + "/none.jsonl")
    with pytest.raises(DataError, match="can't open this object store"):
        find("nonsense://bucket/key")


def test_one_client_for_all_files_of_a_bucket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pyarrow import fs

    made = []
    original = fs.FileSystem.from_uri

    class Counting:
        @staticmethod
        def from_uri(location: str) -> object:
            made.append(location)
            return original(location)

    monkeypatch.setattr(fs, "FileSystem", Counting)
    monkeypatch.setattr(client, "_clients", {})
    for number in range(20):
        (tmp_path / f"{number}.jsonl").write_text('{"text": "a"}\n')
    (tmp_path / "a b.jsonl").write_text('{"text": "a"}\n')
    for number in range(20):
        store, path = client.filesystem(f"file://{tmp_path}/{number}.jsonl")
        assert path == f"{tmp_path}/{number}.jsonl"
        assert store.get_file_info(path).size == 14
    assert len(made) == 1
    store, path = client.filesystem(f"file://{tmp_path}/a%20b.jsonl")
    assert store.get_file_info(path).size == 14
    assert len(made) == 2, "only the client knows what this means"
