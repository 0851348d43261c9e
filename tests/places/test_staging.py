"""Where datasets of object stores lie while a command works on them."""

from __future__ import annotations

from pathlib import Path

import pytest

from packtool.places import staging


def test_a_dataset_keeps_its_name_and_has_a_directory_of_its_own(tmp_path: Path) -> None:
    one = staging.directory_for("s3://bucket/a/packed", tmp_path, "outputs")
    other = staging.directory_for("s3://bucket/b/packed", tmp_path, "outputs")
    assert one.name == other.name == "packed"
    assert one != other
    assert one != staging.directory_for("s3://bucket/a/packed", tmp_path, "outputs", "2")
    assert one == staging.directory_for("s3://bucket/a/packed", tmp_path, "outputs")


def test_what_is_removed_takes_empty_directories_with_it(tmp_path: Path) -> None:
    root = tmp_path / "staging"
    one = staging.directory_for("s3://bucket/a", root, "inputs")
    other = staging.directory_for("s3://bucket/b", root, "inputs")
    for path in (one, other):
        path.mkdir(parents=True)
    staging.remove(one)
    assert not one.exists()
    assert other.exists()
    staging.remove(other)
    assert not root.exists()


def test_the_cache_is_where_the_user_has_caches(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert staging.cache_directory() == tmp_path / "packtool"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert staging.cache_directory() == Path.home() / ".cache" / "packtool"
