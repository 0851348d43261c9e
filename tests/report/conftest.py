"""A small packing to report on."""

from __future__ import annotations

import numpy as np
import pytest

from packtool.metrics.ledger import Ledger
from packtool.metrics.tally import Tally
from packtool.packing.plans import Bins, RowsPlan
from packtool.report.packed import report_of_rows
from packtool.report.schema import PackedReport
from packtool.storage.schema import Shuffle
from packtool.writing.layout import Layout


@pytest.fixture(scope="session")
def tally() -> Tally:
    """Documents of 100 to 2000 tokens, whole, in rows of 8192 with room left."""
    lengths = np.random.default_rng(7).integers(100, 2000, 500).astype(np.uint32)
    row = np.cumsum(lengths, dtype=np.int64) // 6000
    offsets = np.concatenate([[0], np.flatnonzero(np.diff(row)) + 1, [len(lengths)]])
    plan = RowsPlan(8192, lengths, bins=Bins(np.arange(len(lengths)), offsets), whole=True)
    tally = Tally(lengths, 8192)
    tally.add(Layout(plan).segments(0, plan.rows))
    return tally


@pytest.fixture
def report(tally: Tally) -> PackedReport:
    ledger = Ledger(
        stored=tally.placed,
        left_out=0,
        packed_again=0,
        input=tally.placed,
        placed=tally.placed,
        dropped=0,
        repeated=0,
        eos=tally.eos,
        eos_inserted=0,
        eos_omitted=0,
        padding=tally.padding,
        output=tally.output,
        rows=tally.rows,
    )
    return report_of_rows(
        [tally],
        ledger,
        strategy="ffd",
        options={"sequence_length": 8192},
        shuffle=Shuffle(method="atom", atom_size=8192, seed=42, epoch=1),
        batch_size=8,
    )
