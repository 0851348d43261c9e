"""Directories: each read once, links and pipes told, nothing left out without a word."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from packtool.corpus.discover import find
from packtool.errors import DataError

LINE = b'{"text": "a"}\n'


def make(top: Path, *names: str) -> Path:
    for name in names:
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_bytes(LINE)
    return top


def names(top: Path, **options: object) -> list[str]:
    return [file.name for file in find(top, **options).files]  # type: ignore[arg-type]


def test_each_directory_is_read_once_and_by_its_own_name(tmp_path: Path) -> None:
    top = make(tmp_path / "top", "z/x.jsonl", "y.jsonl")
    (top / "up").symlink_to("..", target_is_directory=True)
    (top / "z" / "round").symlink_to("..", target_is_directory=True)
    (top / "a").symlink_to("z", target_is_directory=True)
    make(tmp_path, "beside/b.jsonl")
    found = find(top)
    assert [file.name for file in found.files] == ["up/beside/b.jsonl", "y.jsonl", "z/x.jsonl"]
    assert found.repeated == [str(top / each) for each in ("a", "up/top", "z/round")]


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_directory_that_cannot_be_listed_is_an_error(tmp_path: Path) -> None:
    make(tmp_path, "a.jsonl", "closed/b.jsonl")
    (tmp_path / "closed").chmod(0)
    with pytest.raises(DataError, match=r"closed: the directory can't be read \(permission denied\)"):
        find(tmp_path)


def test_a_listing_error_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path, "a.jsonl", "closed/b.jsonl")
    original = os.scandir

    def refuse(path: str | int) -> object:  # a number where pytest removes the directory
        if str(path).endswith("closed"):
            raise PermissionError(13, "Permission denied", str(path))
        return original(path)

    monkeypatch.setattr(os, "scandir", refuse)
    with pytest.raises(DataError, match=r"closed: the directory can't be read \(permission denied\)"):
        find(tmp_path)


def test_links_to_nothing_and_pipes_are_errors_unless_left_out(tmp_path: Path) -> None:
    make(tmp_path, "a.jsonl")
    (tmp_path / "gone.jsonl").symlink_to("nowhere")
    with pytest.raises(DataError, match=r"gone\.jsonl: a link that leads nowhere \(no such file or directory\)"):
        find(tmp_path)
    with pytest.raises(DataError, match=r"gone\.jsonl: can't be read"):
        find(tmp_path / "gone.jsonl")
    assert names(tmp_path, exclude=["gone*"]) == ["a.jsonl"]
    (tmp_path / "gone.jsonl").unlink()
    (tmp_path / "self.jsonl").symlink_to("self.jsonl")
    with pytest.raises(DataError, match=r"self\.jsonl: a link that leads nowhere"):
        find(tmp_path)
    (tmp_path / "self.jsonl").unlink()
    os.mkfifo(tmp_path / "pipe.jsonl")
    with pytest.raises(DataError, match=r"pipe\.jsonl: not a regular file but a pipe"):
        find(tmp_path)
    (tmp_path / "pipe.jsonl").rename(tmp_path / "pipe")
    assert names(tmp_path) == ["a.jsonl"]
    assert find(tmp_path).skipped == ["pipe"]


SCRIPT = """
import sys
from packtool.corpus.discover import find
print([ascii(file.name) for file in find(sys.argv[1]).files])
"""


def test_names_are_the_same_in_every_locale(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for name in (b"caf\xe9.jsonl", "日本.jsonl".encode(), b"z.jsonl", b"\x80\xff.jsonl"):
        (tmp_path / "in" / os.fsdecode(name)).write_bytes(LINE)
    outputs = []
    for variables in ({}, {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}):
        command = [sys.executable, "-c", SCRIPT, str(tmp_path / "in")]
        outputs.append(subprocess.check_output(command, env={**os.environ, **variables}))
    assert outputs[0] == outputs[1]
    found = [file.name for file in find(tmp_path / "in").files]
    assert found == ["caf\\xe9.jsonl", "z.jsonl", "\\x80\\xff.jsonl", "日本.jsonl"]
