"""Rows to shards: what an interrupted run wrote is kept only where it is, bit for bit, what that run wrote."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import packtool
from tests.interrupting import DAMAGES, interrupted
from tests.making import Make, drawn_lengths
from tests.stores import contents


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("pattern", ["tokens-*", "segments-*", "segment_o*", "unfinished/pieces/shard/*"])
def test_a_shard_that_changed_is_made_again(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: Callable[[Path], object], pattern: str
) -> None:
    options: dict[str, Any] = {"strategy": "bfd", "sequence_length": 64, "shard_tokens": 1024}
    place = make(drawn_lengths(200, 59, seed=5), whole=options)
    interrupted(monkeypatch, packtool.pack, place / "store", tmp_path / "out", **options)
    for file in sorted((tmp_path / "out").glob(pattern))[1:3]:
        damage(file)
    packtool.pack(place / "store", tmp_path / "out", **options, resume=True)
    assert contents(tmp_path / "out") == contents(place / "whole")
