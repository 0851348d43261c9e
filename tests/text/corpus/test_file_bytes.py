"""A corpus file while it is read: wherever it lies, its checksum is that of the bytes that were read, and any change is
an error."""

import gzip
import io
import random
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from packtool.errors import DataError, PacktoolError
from packtool.text.corpus.file_bytes import FileBytes, StoreFile, in_store
from packtool.text.corpus.records import CorpusFile, Span
from tests.places.s3_server import Bucket
from tests.text.corpus import reading
from tests.text.corpus.reading import LINES, find


@pytest.mark.parametrize("stored", [False, True], ids=["file", "object store"])
@pytest.mark.parametrize("size", [0, 1, 63, 64, 65, 1000])
def test_it_reads_as_the_file_itself(tmp_path: Path, bucket: Bucket, size: int, stored: bool) -> None:
    draw = random.Random(size)
    data = draw.randbytes(size)
    (tmp_path / "a").write_bytes(data)
    bucket.put("a", data)
    [file] = find(tmp_path / "a", "text")
    opened = StoreFile(*in_store("s3://bucket/a")) if stored else FileBytes(file)
    plain = io.BytesIO(data)
    for _ in range(300):
        if draw.random() < 0.5:
            place = draw.choice([(draw.randrange(size + 9), 0), (draw.randrange(9), 1), (-draw.randrange(size + 1), 2)])
            assert opened.seek(*place) == plain.seek(*place)
        wanted = draw.choice([-1, 0, 1, 7, 64, 200, 5000])
        assert opened.read(wanted) == plain.read(wanted)
        assert opened.tell() == plain.tell()
    opened.seek(0)
    assert (opened.readall(), opened.readable(), opened.seekable()) == (data, True, True)


def test_the_end_of_a_file_is_that_of_its_listing(tmp_path: Path) -> None:
    """A file that grows while it is read has its footer where it was; the change is an error of its own."""
    (tmp_path / "a").write_bytes(b"12345")
    [file] = find(tmp_path / "a", "text")
    opened = FileBytes(file)
    with (tmp_path / "a").open("ab") as more:
        more.write(b"67")
    assert (opened.seek(-2, io.SEEK_END), opened.read(2)) == (3, b"45")
    with pytest.raises(DataError, match="it had 5 bytes and has 7"):
        opened.require_unchanged()


def test_an_object_that_is_not_there_is_no_file(bucket: Bucket) -> None:
    with pytest.raises(FileNotFoundError):
        StoreFile(*in_store("s3://bucket/a"))


def count(file: CorpusFile) -> int:
    return sum(len(batch.documents) for batch in reading.read(file, Span(0), "text"))


@pytest.mark.parametrize(
    ("url", "said"),
    [
        (
            "gcs://b/a.jsonl",
            "no store is known by gcs://; there are s3://, gs://, hf://, az://, https://. Write gs://b.",
        ),
        ("oss://b/a.jsonl", ". Write s3://, with the address of its S3 endpoint in AWS_ENDPOINT_URL."),
        ("hdfs://name/a", ". Copy its files to one of them, or to this machine, first."),
        ("az://container/key", "can't open this object store"),
        ("s3://key:secret@bucket/corpus", "holds credentials"),
    ],
)
def test_a_store_that_can_not_be_read_is_told(url: str, said: str) -> None:
    with pytest.raises(PacktoolError) as error:
        find(url)
    assert said in str(error.value)


@pytest.mark.parametrize("scheme", ["file", "s3"])
def test_a_store_is_read_like_a_directory(bucket: Bucket, tmp_path: Path, scheme: str) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "a b.jsonl.gz").write_bytes(gzip.compress(LINES))
    (tmp_path / "b.jsonl").write_bytes(LINES)
    (tmp_path / "_c.jsonl").write_bytes(LINES)
    parquet.write_table(pa.table({"text": ["x"]}), tmp_path / "d.parquet")
    bucket.put_all(tmp_path, "corpus")
    url = {"file": f"file://{tmp_path}", "s3": "s3://bucket/corpus"}[scheme]
    files = find(url)
    assert [file.name for file in files] == ["b.jsonl", "d.parquet", "deep/a b.jsonl.gz"]
    assert [count(file) for file in files] == [20_000, 1, 20_000]
    assert sum(len(batch.documents) for batch in reading.read(files[0], Span(0, 1000, -1), "text")) < 20_000
    assert [file.name for file in find(url + "/**/*.gz")] == ["deep/a b.jsonl.gz"]
    assert [file.name for file in find(url + "/b.jsonl")] == ["b.jsonl"]
    with pytest.raises(DataError, match="no such file or directory"):
        find(url + "/none.jsonl")
