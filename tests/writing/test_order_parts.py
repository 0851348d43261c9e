"""Orders that are worked out in parts are the same, and draw each key once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from packtool.shuffling import atom
from packtool.shuffling.atom import AtomShuffle
from packtool.writing.order_parts import order_parts


@pytest.mark.parametrize("memory", [1, 64, 700, 4096, 1 << 20])
@pytest.mark.parametrize("stored", [False, True])
def test_an_order_piece_by_piece(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, memory: int, stored: bool) -> None:
    monkeypatch.setattr("packtool.writing.order_parts._KEYS_AT_ONCE", 17)
    drawn = []

    def keys(seed: int, purpose: int, epoch: int, first: int, count: int) -> np.ndarray:  # type: ignore[type-arg]
        drawn.append(count)
        return original(seed, purpose, epoch, first, count)

    original = atom.keys
    monkeypatch.setattr(atom, "keys", keys)
    shuffle = AtomShuffle(100, 7, 42, 1, AtomShuffle(100, 7, 41, 0) if stored else None)
    parts = list(order_parts(shuffle, memory, tmp_path))
    assert len(parts) == (1 if stored or memory > 6400 else 1 << min(12, (6400 // memory).bit_length()))
    np.testing.assert_array_equal(np.concatenate(parts), shuffle.order())
    assert sum(drawn) == (100 if len(parts) > 1 else 0), "each key is drawn once"
    assert list(tmp_path.iterdir()) == []


def test_what_an_interrupted_run_left_is_not_used(tmp_path: Path) -> None:
    (tmp_path / "order-00000.keys").write_bytes(bytes(160))
    shuffle = AtomShuffle(100, 0, 42, 1)
    np.testing.assert_array_equal(np.concatenate(list(order_parts(shuffle, 700, tmp_path))), shuffle.order())
