"""Temporary directories go, whatever happens in them."""

from pathlib import Path

import pytest

from packtool.support import temporary


def test_attempts_at_one_task_do_not_meet(tmp_path: Path) -> None:
    with temporary.own_directory(tmp_path, "task-3.") as first, temporary.own_directory(tmp_path, "task-3.") as second:
        assert first != second
        assert {first, second} == set(tmp_path.glob("task-3.*/"))
        (first / "shard").touch()
        (first / "shard").replace(tmp_path / "shard")
    assert [path.name for path in tmp_path.iterdir()] == ["shard"]


def test_an_attempt_on_a_disk_of_ones_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(temporary, "_place", [tmp_path])
    with pytest.raises(ValueError, match="in the middle"), temporary.own_directory(None, "task-3.") as path:
        assert path.parent == tmp_path
        (path / "shard").touch()
        raise ValueError("in the middle")
    assert not list(tmp_path.iterdir())


def test_what_is_left_goes_at_the_end() -> None:
    with temporary.temporary_directory() as path:
        temporary.remove_all()
        assert not path.exists()
