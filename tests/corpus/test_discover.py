"""What arguments stand for: every file once, nothing left out without a word."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest

from packtool.corpus.discover import find
from packtool.errors import DataError
from tests.corpus.reading import find as files

LINE = b'{"text": "a"}\n'


def make(top: Path, *names: str) -> Path:
    for name in names:
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_bytes(LINE)
    return top


def names(top: Path, **options: object) -> list[str]:
    return [file.name for file in find(top, **options).files]  # type: ignore[arg-type]


def test_only_known_suffixes_are_read_from_a_directory(tmp_path: Path) -> None:
    make(tmp_path, "a.jsonl", "b.JSONL", "README.md", "t.xml", "d/dataset_info.json", "d/e.txt.gz", "LICENSE", "x.gz")
    found = find(tmp_path)
    assert [file.name for file in found.files] == ["a.jsonl", "b.JSONL", "d/e.txt.gz"]
    assert found.skipped == ["LICENSE", "README.md", "d/dataset_info.json", "t.xml", "x.gz"]
    assert names(tmp_path, include=["*.md", "d/*"]) == ["README.md", "d/dataset_info.json", "d/e.txt.gz"]
    assert names(tmp_path, exclude=["*.JSONL", "d/**"]) == ["a.jsonl"]
    assert names(tmp_path / "README.md") == ["README.md"]
    with pytest.raises(DataError, match=r"no file is left\. Check --include and --exclude"):
        find(tmp_path, include=["*.nothing"])
    (tmp_path / "a.jsonl").unlink()
    (tmp_path / "b.JSONL").unlink()
    (tmp_path / "d" / "e.txt.gz").unlink()
    with pytest.raises(DataError, match=r"no file has a known suffix; there are LICENSE, README\.md"):
        find(tmp_path)


def test_finding_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("b.jsonl", "a/z.txt", "a/y.json.gz", "a/.git/x", "_SUCCESS", ".hidden", "c"):
        path = tmp_path / "in" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        plain = b"plain" if name.endswith("txt") else b'\n {"text": 1}'
        path.write_bytes(gzip.compress(b"[1]") if name.endswith("gz") else plain)
    kinds = [(file.name, file.format, file.compression) for file in files(tmp_path / "in")]
    assert kinds == [("a/y.json.gz", "jsonl", "gzip"), ("a/z.txt", "text", ""), ("b.jsonl", "jsonl", "")]
    assert find(tmp_path / "in").skipped == ["c"]
    assert [file.format for file in files(tmp_path / "in" / "c")] == ["jsonl"]
    assert [file.name for file in files(tmp_path / "in" / "**" / "*.json*")] == ["a/y.json.gz", "b.jsonl"]
    monkeypatch.chdir(tmp_path / "in")
    assert [file.name for file in files("*.jsonl")] == ["b.jsonl"]
    assert [file.name for file in files("a/*")] == ["y.json.gz", "z.txt"]
    assert [file.format for file in files("b.jsonl", "lines")] == ["lines"]
    (tmp_path / "empty").mkdir()
    for nothing in (tmp_path / "empty", tmp_path / "gone", "*.none"):
        with pytest.raises(DataError, match=r"(empty directory|no such file|no file matches)"):
            files(nothing)


def test_a_pipe_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(DataError, match="Send it to standard input"):
        files(tmp_path / "pipe")
