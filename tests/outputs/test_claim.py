"""What lies at an output, and whether a run may go on with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from packtool.errors import DataError
from packtool.outputs.claim import key_of, lies_at
from packtool.places.local import LocalPlace
from tests.formats.outputs import STORE, code, finish, names, prepare


def test_a_finished_output_that_lost_a_file_is_not_kept(tmp_path: Path) -> None:
    finish(prepare(tmp_path / "o", "tokenize", key="k"))
    (tmp_path / "o" / "tokens-00000.npy").unlink()
    with pytest.raises(DataError, match="not there as it was written"):
        prepare(tmp_path / "o", "tokenize", key="k", resume=True)
    finish(prepare(tmp_path / "o", "tokenize", key="k", overwrite=True))
    assert names(tmp_path / "o") == STORE


@pytest.mark.parametrize("resume", [False, True])
def test_killed_before_its_state_was_written(tmp_path: Path, resume: bool) -> None:
    (tmp_path / "unfinished" / "scratch").mkdir(parents=True)
    (tmp_path / "unfinished" / "state.json.0123abcd.partial").write_text("{")
    (tmp_path / "unfinished" / "lock").write_text("{")
    assert lies_at(LocalPlace(tmp_path), "tokenize", "k") == "nothing"
    assert not prepare(tmp_path, "tokenize", key="k", resume=resume).resumed
    assert lies_at(LocalPlace(tmp_path), "tokenize", "k") == "unfinished"
    assert lies_at(LocalPlace(tmp_path), "tokenize", "other") == "other"


def test_resume_refuses_what_is_not_an_output(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").touch()
    assert code(tmp_path, resume=True) == "nothing-to-resume"
    assert names(tmp_path) == ["letter.txt"]


def test_keys_depend_on_every_part() -> None:
    assert key_of({"a": 1, "b": 2}, "x") == key_of({"b": 2, "a": 1}, "x")
    assert key_of({"a": 1}, "x") != key_of({"a": 1}, "y")
