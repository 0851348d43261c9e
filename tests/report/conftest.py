"""A small packing to report on."""

from __future__ import annotations

import numpy as np
import pytest

from packtool.formats.schema import Shuffle
from packtool.planning.metrics.ledger import balance
from packtool.planning.metrics.tally import Tally
from packtool.planning.packing.plans import Bins, RowsPlan
from packtool.report.dataset_report import report_of_rows
from packtool.report.types import PackedReport
from packtool.writing.layout import Layout

LENGTHS = np.random.default_rng(7).integers(100, 2000, 500).astype(np.uint32)


@pytest.fixture(scope="session")
def rows() -> RowsPlan:
    """Documents of 100 to 2000 tokens, whole, in rows of 8192 with room left."""
    row = np.cumsum(LENGTHS, dtype=np.int64) // 6000
    offsets = np.concatenate([[0], np.flatnonzero(np.diff(row)) + 1, [len(LENGTHS)]])
    return RowsPlan(8192, LENGTHS, bins=Bins(np.arange(len(LENGTHS)), offsets), whole=True)


@pytest.fixture(scope="session")
def tally(rows: RowsPlan) -> Tally:
    tally = Tally(LENGTHS, 8192)
    tally.add(Layout(rows).segments(0, rows.rows))
    return tally


@pytest.fixture
def report(rows: RowsPlan, tally: Tally) -> PackedReport:
    return report_of_rows(
        [tally],
        balance(int(LENGTHS.sum()), len(LENGTHS), [rows], [tally]),
        strategy="ffd",
        options={"sequence_length": 8192},
        shuffle=Shuffle(method="atom", atom_size=8192, seed=42, epoch=1),
        batch_size=8,
    )
