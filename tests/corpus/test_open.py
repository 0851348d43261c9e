"""Files opened where they lie: on this machine or in an object store."""

from __future__ import annotations

import gzip
import io
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from packtool.corpus.open import GoogleFile
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


class _Refusing:
    """As the client of Google's store: a seek to the end is an error."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def size(self) -> int:
        return len(self._data)

    def tell(self) -> int:
        return self._at

    def seek(self, at: int) -> None:
        if at >= len(self._data):
            raise OSError("OUT_OF_RANGE")
        self._at = at

    def read(self, size: int) -> bytes:
        assert 0 < size <= len(self._data) - self._at
        found = self._data[self._at : self._at + size]
        self._at += size
        return found

    def close(self) -> None:
        pass


def test_the_end_of_a_file_of_googles_store_is_its_end():
    with GoogleFile(_Refusing(b"0123456789")) as file:
        assert file.seek(0, io.SEEK_END) == 10
        assert (file.read(4), file.tell()) == (b"", 10)
        assert file.seek(-4, io.SEEK_END) == 6
        assert (file.read(2), file.seek(1, io.SEEK_CUR), file.read()) == (b"67", 9, b"9")
        assert file.seek(2) == 2
        assert (file.readall(), file.readable(), file.seekable()) == (b"23456789", True, True)
    assert io.BufferedReader(GoogleFile(_Refusing(b"ab\ncd"))).readlines() == [b"ab\n", b"cd"]
