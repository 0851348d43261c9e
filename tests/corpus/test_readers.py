"""Streams, text files, Parquet, discovery, blocks, filters."""

from __future__ import annotations

import gzip
import io
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from packtool.corpus import discover
from packtool.corpus import text as text_files
from packtool.corpus.blocks import block_bytes, plan
from packtool.corpus.filters import Counted, Filters, size
from packtool.corpus.open import open_raw, open_stream, sniff
from packtool.corpus.read import SpanReader, records_before
from packtool.corpus.records import Batch, CorpusFile, Reject, Span, UnusableFileError
from packtool.errors import DataError
from tests.corpus.archives import COMPRESS


def find(location: Path | str, format: str | None = None) -> list[CorpusFile]:
    return discover.find(location, format).files


def read(file: CorpusFile, span: Span, text_field: str, **options: Any) -> Iterator[Batch]:
    return iter(SpanReader(file, span, text_field, **options))


LINES = b"".join(b'{"text": "document %d"}\n' % n for n in range(20_000))


def drain(path: Path, kind: str) -> bytes:
    stream = open_stream(open_raw(str(path)), kind)
    try:
        parts = []
        while part := stream.read(1 << 16):
            parts.append(part)
        return b"".join(parts)
    finally:
        stream.close()


@pytest.mark.parametrize("kind", COMPRESS)
def test_streams_of_several_members_and_damaged_ones(tmp_path: Path, kind: str) -> None:
    whole = COMPRESS[kind](LINES)
    assert sniff(whole[:16]) == kind
    path = tmp_path / "x"
    path.write_bytes(whole + whole)
    assert drain(path, kind) == LINES * 2
    for damaged in (whole[:-3], whole[: len(whole) // 2], whole + whole[:20], whole + b"garbage"):
        path.write_bytes(damaged)
        with pytest.raises(UnusableFileError, match=f"damaged {kind} stream"):
            drain(path, kind)


@pytest.mark.parametrize("kind", COMPRESS)
def test_what_comes_before_the_damage_is_kept(tmp_path: Path, kind: str) -> None:
    (tmp_path / "x.jsonl").write_bytes(COMPRESS[kind](LINES) + COMPRESS[kind](LINES)[:-4])
    [file] = find(tmp_path / "x.jsonl")
    assert (file.compression, file.format) == (kind, "jsonl")
    batches = list(read(file, Span(0), "text"))
    assert [reject.record for batch in batches for reject in batch.rejects] == [0]
    assert batches[-1].rejects[0].code == "damaged-file"
    documents = [text for batch in batches for text in batch.documents]
    assert documents[:20_000] == [f"document {n}" for n in range(20_000)]


def test_text_files_are_one_document_or_one_a_line(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"\xef\xbb\xbfone\r\n\r\n two \nthr\xc3\xa9e")
    [file] = find(tmp_path / "a.txt")
    assert [batch.documents for batch in read(file, Span(0), "text")] == [["one\r\n\r\n two \nthr\u00e9e"]]
    [file] = find(tmp_path / "a.txt", "lines")
    assert [t for batch in read(file, Span(0), "text") for t in batch.documents] == ["one", " two ", "thr\u00e9e"]
    (tmp_path / "b.txt").write_bytes(b"caf\xe9")
    [file] = find(tmp_path / "b.txt")
    [batch] = read(file, Span(0), "text")
    assert batch.rejects == [Reject(0, "invalid-utf8", "not valid UTF-8", b"caf\xe9")]


def test_long_text_files_come_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_files, "LONG", 10)
    monkeypatch.setattr(text_files, "CHUNK", 7)
    content = "\ufeffdéjà vu, 日本語 😀 " * 5
    (tmp_path / "a").write_text(content)
    [file] = find(tmp_path / "a", "text")
    [batch] = read(file, Span(0), "text")
    [document] = batch.documents
    for _ in range(2):
        assert "".join(document) == content[1:]
    assert size(document) == size(content[1:])
    (tmp_path / "a").write_bytes(content.encode() + b"\xff")
    [file] = find(tmp_path / "a", "text")
    [batch] = read(file, Span(0), "text")
    assert [reject.code for reject in batch.rejects] == ["invalid-utf8"]


def test_parquet_rows_and_columns(tmp_path: Path) -> None:
    texts = ["a", None, "ü", "", "e"]
    table = pa.table(
        {
            "text": texts,
            "big": pa.array(texts, pa.large_string()),
            "coded": pa.array(texts).dictionary_encode(),
            "deep": [{"body": t} for t in texts[:4]] + [None],
            "number": range(5),
        }
    )
    parquet.write_table(table, tmp_path / "x", row_group_size=2)
    [file] = find(tmp_path / "x")
    assert file.format == "parquet"
    for column in ("text", "big", "coded"):
        batches = list(read(file, Span(0), column))
        assert [text for batch in batches for text in batch.documents] == ["a", "ü", "", "e"]
        assert [r.record for batch in batches for r in batch.rejects] == [2]
    deep = list(read(file, Span(0), "deep.body"))
    assert [text for batch in deep for text in batch.documents] == ["a", "ü", ""]
    assert sum(len(batch.rejects) for batch in deep) == 2
    second = list(read(file, Span(0, 1, 2), "text"))
    assert [text for batch in second for text in batch.documents] == ["ü", ""]
    assert records_before(file, Span(0, 1, 2)) == 2
    for column, reason in (
        ("body", "no column 'body'; there are text, big, coded, deep, number"),
        ("number", "column 'number' holds int64, not strings"),
    ):
        [batch] = read(file, Span(0), column)
        assert batch.rejects == [Reject(0, "missing-text", reason)]


def test_parquet_with_bytes_that_are_no_text(tmp_path: Path) -> None:
    raw = pa.array([b"fine", b"\xff\xfe", None], pa.binary())
    broken = pa.Array.from_buffers(pa.string(), 3, raw.buffers())
    parquet.write_table(pa.table({"text": broken}), tmp_path / "x.parquet")
    [file] = find(tmp_path / "x.parquet")
    [batch] = read(file, Span(0), "text")
    assert batch.documents == ["fine"]
    assert [(r.record, r.code, r.raw) for r in batch.rejects] == [
        (2, "invalid-utf8", b"\xff\xfe"),
        (3, "missing-text", None),
    ]


def test_long_values_in_parquet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from packtool.corpus import parquet as parquet_files

    texts = ["short", "\ufefflong 😀 " * 100, None, "日本語 " * 100]
    table = pa.table({"text": texts, "coded": pa.array(texts).dictionary_encode()})
    parquet.write_table(table, tmp_path / "x.parquet")
    monkeypatch.setattr(parquet_files, "LONG", 50)
    monkeypatch.setattr(text_files, "CHUNK", 7)
    [file] = find(tmp_path / "x.parquet")
    for column in ("text", "coded"):
        [batch] = read(file, Span(0), column)
        assert ["".join(document) for document in batch.documents] == [text for text in texts if text]
        assert [reject.record for reject in batch.rejects] == [3]


@pytest.mark.parametrize("cut", [0, 3, 100, -1])
def test_damaged_parquet(tmp_path: Path, cut: int) -> None:
    parquet.write_table(pa.table({"text": ["some text"] * 500}), tmp_path / "x.parquet")
    raw = (tmp_path / "x.parquet").read_bytes()
    (tmp_path / "x.parquet").write_bytes(raw[:cut])
    [file] = find(tmp_path / "x.parquet")
    [batch] = read(file, Span(0), "text")
    assert batch.rejects[0].code == "damaged-file"
    assert "not a whole Parquet file" in batch.rejects[0].reason


def test_other_encodings_are_named(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_bytes('{"text": "a"}\n'.encode("utf-16"))
    [file] = find(tmp_path / "x.jsonl")
    [batch] = read(file, Span(0), "text")
    assert batch.rejects == [Reject(0, "damaged-file", "UTF-16 text; packtool reads UTF-8")]


def test_finding_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("b.jsonl", "a/z.txt", "a/y.json.gz", "a/.git/x", "_SUCCESS", ".hidden", "c"):
        path = tmp_path / "in" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(b"[1]") if name.endswith("gz") else b'\n {"text": 1}')
    kinds = [(file.name, file.format, file.compression) for file in find(tmp_path / "in")]
    assert kinds == [("a/y.json.gz", "jsonl", "gzip"), ("a/z.txt", "text", ""), ("b.jsonl", "jsonl", "")]
    assert discover.find(tmp_path / "in").skipped == ["c"]
    assert [file.format for file in find(tmp_path / "in" / "c")] == ["jsonl"]
    assert [file.name for file in find(tmp_path / "in" / "**" / "*.json*")] == ["a/y.json.gz", "b.jsonl"]
    monkeypatch.chdir(tmp_path / "in")
    assert [file.name for file in find("*.jsonl")] == ["b.jsonl"]
    assert [file.name for file in find("a/*")] == ["y.json.gz", "z.txt"]
    assert [file.format for file in find("b.jsonl", "lines")] == ["lines"]
    (tmp_path / "empty").mkdir()
    for nothing in (tmp_path / "empty", tmp_path / "gone", "*.none"):
        with pytest.raises(DataError, match=r"(empty directory|no such file|no file matches)"):
            find(nothing)


def test_a_pipe_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(DataError, match="Send it to standard input"):
        find(tmp_path / "pipe")


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


def test_blocks_do_not_depend_on_anything_but_files() -> None:
    def file(size: int, format: str = "jsonl", compression: str = "") -> CorpusFile:
        return CorpusFile("f", "f", size, format, compression)

    blocks = plan(
        [file(40), file(40), file(40), file(250), file(10), file(300, "text"), file(500, "jsonl", "gzip")], 100
    )
    assert [[(span.file, span.start, span.stop) for span in block] for block in blocks] == [
        [(0, 0, -1), (1, 0, -1)],
        [(2, 0, -1)],
        [(3, 0, 83)],
        [(3, 83, 166)],
        [(3, 166, -1)],
        [(4, 0, -1)],
        [(5, 0, -1)],
        [(6, 0, -1)],
    ]
    assert len(plan([file(1)] * 100_000, 1000)) == 100
    assert [block_bytes([file(total)]) >> 20 for total in (10**6, 8 << 30, 1 << 40)] == [16, 32, 64]


def test_parquet_blocks_are_row_groups(tmp_path: Path) -> None:
    parquet.write_table(
        pa.table({"text": [os.urandom(8).hex() for _ in range(1000)]}), tmp_path / "x", row_group_size=100
    )
    [file] = find(tmp_path / "x")
    blocks = plan([file], 5000)
    spans = [span for block in blocks for span in block]
    assert len(spans) > 2
    assert [span.stop for span in spans] == [*(span.start for span in spans[1:]), -1]
    whole = [t for batch in read(file, Span(0), "text") for t in batch.documents]
    assert [t for span in spans for batch in read(file, span, "text") for t in batch.documents] == whole


@given(st.text(st.sampled_from("ab \n\u00a0")), st.integers(0, 6), st.integers(0, 10), st.integers(0, 10))
def test_filters(text: str, min_words: int, min_chars: int, max_chars: int) -> None:
    keep = len(text.split()) >= min_words and min_chars <= len(text) <= max_chars
    pieces: Any = [text[at : at + 3] for at in range(0, len(text), 3)]
    filters = Filters(min_words, min_chars, max_chars)
    assert filters.keeps(text) == filters.keeps(pieces) == keep
    dropped = Counted()
    assert filters.split([text], [7], dropped) == ([text] * keep, [7] * keep)
    assert dropped == (Counted() if keep else Counted(1, len(text.split()), len(text)))


def test_reading_by_short_reads_is_the_same() -> None:
    class Dribble(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            return super().read(min(size or 1, 5))

    from packtool.corpus.jsonl import read_jsonl

    texts = [text for batch in read_jsonl(Dribble(LINES[:5000]), "text", 0, 4000) for text in batch.documents]
    assert texts == [f"document {n}" for n in range(len(texts))]
    assert len(texts) > 100
