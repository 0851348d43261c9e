"""Orders whose global batches are dealt to ranks: the same batches, each rank equally busy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import packtool
from packtool.errors import UsageError
from packtool.reading.costs import row_pairs
from tests.stores import write_store


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    lengths = np.minimum(np.random.default_rng(1).lognormal(3.5, 1.3, 3000).astype(int) + 1, 512).tolist()
    return write_store(tmp_path_factory.mktemp("dealt") / "store", lengths)


def test_an_order_dealt_to_ranks(store: Path, tmp_path: Path) -> None:
    packtool.pack(store, tmp_path / "rows", strategy="bfd", sequence_length=512)
    packtool.shuffle(tmp_path / "rows", tmp_path / "plain", epoch=1, order_only=True)
    packtool.shuffle(tmp_path / "rows", tmp_path / "dealt", epoch=1, order_only=True, ranks=4, global_batch=32)
    rows = packtool.open(tmp_path / "rows").rows
    pairs = row_pairs(rows, np.arange(len(rows)))
    plain, dealt = (np.load(tmp_path / name / "order.npy") for name in ("plain", "dealt"))
    for first in range(0, len(plain), 32):
        assert sorted(plain[first : first + 32].tolist()) == sorted(dealt[first : first + 32].tolist())
    waited = []
    for order in (plain, dealt):
        loads = pairs[order[: len(order) // 32 * 32]].reshape(-1, 8, 4).sum(axis=1)  # batches, ranks
        waited.append((1 - loads.mean(axis=1) / loads.max(axis=1)).mean())
    assert waited[1] < 0.02
    assert waited[0] > 0.05


def test_an_order_that_can_not_be_dealt(store: Path, tmp_path: Path) -> None:
    rows, atoms, bare = tmp_path / "rows", tmp_path / "atoms", tmp_path / "bare"
    packtool.pack(store, rows, strategy="bfd", sequence_length=512)
    packtool.pack(store, atoms, strategy="concat", sequence_length=512, atom_size=128)
    packtool.pack(store, bare, strategy="bfd", sequence_length=512, segments=False)
    for source, options, message in [
        (rows, {"ranks": 4, "global_batch": 32, "order_only": False}, "--ranks: --ranks deals an order, not rows"),
        (rows, {"ranks": 4}, "--global-batch: needed to deal rows to ranks"),
        (rows, {"global_batch": 4}, "--ranks: needed to deal rows to ranks"),
        (rows, {"ranks": 4, "global_batch": 6}, "--global-batch: 6 rows can't be divided evenly among 4 ranks"),
        (atoms, {"ranks": 4, "global_batch": 32}, "its rows do not move one by one"),
        (bare, {"ranks": 4, "global_batch": 32}, "written with --no-segments"),
    ]:
        with pytest.raises(UsageError, match=message):
            packtool.shuffle(source, tmp_path / "order", **{"order_only": True, **options})
