"""Files opened where they lie: on this machine or in an object store."""

from __future__ import annotations

import gzip
import io
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from packtool.corpus.open import StoreFile, in_store
from packtool.corpus.records import Span
from packtool.errors import DataError, UsageError
from tests.corpus.reading import find, read
from tests.places.s3_server import Bucket, serve

LINES = b"".join(b'{"text": "document %d"}\n' % n for n in range(20_000))


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[Bucket]:
    with serve(monkeypatch) as found:
        yield found


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


def test_the_end_of_a_file_of_a_store_is_its_end(bucket: Bucket) -> None:
    bucket.put("corpus/a.txt", b"0123456789")
    with StoreFile(*in_store("s3://bucket/corpus/a.txt")) as file:
        assert file.seek(0, io.SEEK_END) == 10
        assert (file.read(4), file.tell()) == (b"", 10)
        assert file.seek(-4, io.SEEK_END) == 6
        assert (file.read(2), file.seek(1, io.SEEK_CUR), file.read()) == (b"67", 9, b"9")
        assert file.seek(2) == 2
        assert (file.readall(), file.readable(), file.seekable()) == (b"23456789", True, True)
    bucket.put("corpus/b.txt", b"ab\ncd")
    assert io.BufferedReader(StoreFile(*in_store("s3://bucket/corpus/b.txt"))).readlines() == [b"ab\n", b"cd"]
    with pytest.raises(FileNotFoundError):
        StoreFile(*in_store("s3://bucket/corpus/c.txt"))


def test_a_bucket_is_read_like_a_directory(bucket: Bucket, tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "a b.jsonl.gz").write_bytes(gzip.compress(LINES))
    (tmp_path / "b.jsonl").write_bytes(LINES)
    (tmp_path / "_c.jsonl").write_bytes(LINES)
    bucket.put_all(tmp_path, "corpus")
    files = find("s3://bucket/corpus")
    assert [file.name for file in files] == ["b.jsonl", "deep/a b.jsonl.gz"]
    assert [sum(len(batch.documents) for batch in read(file, Span(0), "text")) for file in files] == [20_000] * 2
    assert [file.name for file in find("s3://bucket/corpus/**/*.gz")] == ["deep/a b.jsonl.gz"]
    assert [file.name for file in find("s3://bucket/corpus/b.jsonl")] == ["b.jsonl"]
    with pytest.raises(UsageError, match="the URL holds credentials"):
        find("s3://key:secret@bucket/corpus")
