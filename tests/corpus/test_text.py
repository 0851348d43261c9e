"""Plain text: one document a file or one a line, long files in pieces."""

from __future__ import annotations

from pathlib import Path

import pytest

from packtool.corpus import text as text_files
from packtool.corpus.filters import size
from packtool.corpus.records import Reject, Span
from tests.corpus.reading import find, read


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
