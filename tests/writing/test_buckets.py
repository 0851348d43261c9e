"""Buckets written in one pass or two: memory decides which, and the bytes do not depend on it."""

from __future__ import annotations

from pathlib import Path

import pytest

import packtool
from tests.writing.cases import KINDS


def test_memory_decides_the_path(store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packtool.pack(store, tmp_path / "corpus", shuffle=False, **KINDS["concat"])
    monkeypatch.setattr("packtool.writing.shards.partition", _never)
    packtool.shuffle(tmp_path / "corpus", tmp_path / "whole", memory="1MB")
    with pytest.raises(AssertionError, match="partitioned"):
        packtool.shuffle(tmp_path / "corpus", tmp_path / "parts", memory="1kB")


def _never(*_: object, **__: object) -> None:
    raise AssertionError("partitioned")
