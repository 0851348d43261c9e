"""What a file is, by its name and its first bytes."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from packtool.corpus.classify import classify
from packtool.corpus.records import Reject, Span
from tests.corpus.reading import find, read


def test_other_encodings_are_named(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_bytes('{"text": "a"}\n'.encode("utf-16"))
    [file] = find(tmp_path / "x.jsonl")
    [batch] = read(file, Span(0), "text")
    assert batch.rejects == [Reject(0, "damaged-file", "UTF-16 text; packtool reads UTF-8")]


@pytest.mark.parametrize(
    ("name", "head", "format", "compression"),
    [
        ("a.jsonl", b"", "jsonl", ""),
        ("a.NDJSON", b"{", "jsonl", ""),
        ("a.txt", b"{", "text", ""),
        ("a.md", b"{", "text", ""),
        ("a", b'\xef\xbb\xbf \n{"text": 1}', "jsonl", ""),
        ("a", b"plain", "text", ""),
        ("a.jsonl", b"PAR1", "parquet", ""),
        ("a.jsonl", gzip.compress(b"{}", mtime=0), "jsonl", "gzip"),
        ("a.gz", gzip.compress(b" {}", mtime=0), "jsonl", "gzip"),
        ("a.txt.gz", gzip.compress(b"x", mtime=0)[:-9], "text", "gzip"),
    ],
)
def test_bytes_tell_compression_and_parquet_and_names_the_rest(
    tmp_path: Path, name: str, head: bytes, format: str, compression: str
) -> None:
    (tmp_path / name).write_bytes(head)
    file = classify(name, str(tmp_path / name), None)
    assert (file.format, file.compression, file.bytes, file.problem) == (format, compression, len(head), "")
    assert classify(name, str(tmp_path / name), "lines").format == "lines"


@pytest.mark.parametrize(
    ("head", "problem"),
    [
        (b' [ {"text": 1}]', "one JSON array of objects, not JSON Lines, which has one object a line"),
        (gzip.compress(b"PAR1", mtime=0), "Parquet inside gzip; unpack it first"),
    ],
)
def test_what_cannot_be_read_as_it_is_has_its_problem_named(tmp_path: Path, head: bytes, problem: str) -> None:
    (tmp_path / "a.jsonl").write_bytes(head)
    assert classify("a.jsonl", str(tmp_path / "a.jsonl"), None).problem == problem
