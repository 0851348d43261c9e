"""Rows to shards: what an interrupted run wrote is kept only where it is, bit for bit, what that run wrote."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import packtool
from tests.interrupting import DAMAGES, interrupted
from tests.stores import contents, write_store

LENGTHS = np.random.default_rng(5).integers(1, 60, 200).tolist()


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("pattern", ["tokens-*", "segments-*", "segment_o*", "unfinished/pieces/shard/*"])
def test_a_shard_that_changed_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: Callable[[Path], object], pattern: str
) -> None:
    store = write_store(tmp_path / "store", LENGTHS)
    options: dict[str, Any] = {"strategy": "bfd", "sequence_length": 64, "shard_tokens": 1024}
    packtool.pack(store, tmp_path / "whole", **options)
    interrupted(monkeypatch, packtool.pack, store, tmp_path / "out", **options)
    for file in sorted((tmp_path / "out").glob(pattern))[1:3]:
        damage(file)
    packtool.pack(store, tmp_path / "out", **options, resume=True)
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")
