"""Plain text: one document a file or one a line; every line of a range once, none above the limit held."""

from __future__ import annotations

import io
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from packtool.text.corpus import text as text_files
from packtool.text.corpus.records import Fields, Reject, Span
from packtool.text.corpus.text import line_chunks, read_lines
from packtool.text.faults import Fault
from tests.text.corpus.reading import find, only_batch, read, together


def test_text_files_are_one_document_or_one_a_line(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"\xef\xbb\xbfone\r\n\r\n two \nthr\xc3\xa9e")
    assert only_batch(tmp_path / "a.txt").documents == ["one\r\n\r\n two \nthr\u00e9e"]
    [file] = find(tmp_path / "a.txt", "lines")
    assert together(read(file, Span(0), "text")) == (["one", " two ", "thr\u00e9e"], [])
    (tmp_path / "b.txt").write_bytes(b"caf\xe9")
    assert only_batch(tmp_path / "b.txt").rejects == [Reject(0, Fault("invalid-utf8", "not valid UTF-8"), b"caf\xe9")]


def test_a_text_file_may_be_larger_than_a_record(tmp_path: Path) -> None:
    content = "déjà vu, 日本語 😀 " * 5
    (tmp_path / "a.txt").write_text(content)
    batch = only_batch(tmp_path / "a.txt", limit=10)
    assert (batch.documents, batch.rejects) == ([content], [])


@given(
    st.lists(st.binary(max_size=30).map(lambda line: line.replace(b"\n", b"")), max_size=30),
    st.booleans(),
    st.lists(st.integers(0, 400), max_size=5),
    st.integers(1, 50),
)
def test_ranges_cover_every_line_once(parts: list[bytes], ended: bool, cuts: list[int], chunk: int) -> None:
    data = b"\n".join(parts) + (b"\n" if ended else b"")
    bounds = sorted({0, *(cut for cut in cuts if cut < len(data))})
    before, text_files.CHUNK = text_files.CHUNK, chunk
    try:
        read = [
            bytes(piece)
            for start, stop in zip(bounds, [*bounds[1:], -1], strict=True)
            for piece in line_chunks(io.BytesIO(data), start, stop)
        ]
    finally:
        text_files.CHUNK = before
    assert b"".join(read) == data
    assert all(piece.endswith(b"\n") for piece in read[:-1])


@given(st.lists(st.integers(0, 60), max_size=30), st.integers(1, 40), st.integers(1, 20), st.lists(st.integers(0, 900)))
def test_lines_above_the_limit_are_rejected_and_not_held(
    lengths: list[int], limit: int, chunk: int, cuts: list[int]
) -> None:
    data = b"".join(b"%c" % (97 + n % 26) * n + b"\n" for n, length in enumerate(lengths) for n in [length])
    bounds = sorted({0, *(cut for cut in cuts if cut < len(data))})
    before, text_files.CHUNK = text_files.CHUNK, chunk
    try:
        kept: list[str] = []
        sizes: list[int] = []
        for start, stop in zip(bounds, [*bounds[1:], -1], strict=True):
            for piece in line_chunks(io.BytesIO(data), start, stop, limit):
                assert isinstance(piece, text_files.LongLine) or len(piece) <= limit + 2 + 2 * chunk
            for batch in read_lines(io.BytesIO(data), Fields(), start, stop, limit):
                kept += [str(text) for text in batch.documents]
                sizes += [batch.records]
                assert all(reject.fault.code == "record-too-large" for reject in batch.rejects)
                assert len(batch.documents) + len(batch.rejects) <= batch.records
    finally:
        text_files.CHUNK = before
    assert kept == [line for line in data.decode().split("\n") if 0 < len(line) <= limit]
    assert sum(sizes) == len(lengths)
