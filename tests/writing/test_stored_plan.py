"""The plan of rows that are stored."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import packtool
from packtool.formats.packed import PackedDataset
from packtool.writing.stored_plan import stored_plans
from tests.writing.cases import KINDS


def test_scanning_is_reading(store: Path, tmp_path: Path) -> None:
    packtool.pack(store, tmp_path / "corpus", shuffle=False, **KINDS["concat-8"])
    (plan,) = stored_plans(PackedDataset(tmp_path / "corpus"))
    whole = plan.segments(np.arange(plan.units))
    for first, last in [(0, plan.units), (3, 3), (5, 29), (plan.units - 3, plan.units)]:
        piece = plan.scan(first, last)
        for name in ("document", "start", "length", "repeated", "offsets"):
            np.testing.assert_array_equal(getattr(piece, name), getattr(whole[first:last], name))
