"""Metrics of whole datasets: of no rows, of several buckets."""

from __future__ import annotations

import numpy as np

from packtool.planning.metrics.summary import measure
from packtool.planning.metrics.tally import Tally
from packtool.planning.plan import PADDING
from tests.segments import segments


def test_nothing_at_all() -> None:
    metrics = measure([Tally(np.zeros(0, np.uint32), 8)], batch_size=4)
    assert metrics.rows == metrics.documents == metrics.steps_per_epoch == 0
    assert metrics.padding_ratio == metrics.cut_of_all_ratio == metrics.mean_context == 0


def test_buckets_are_measured_together() -> None:
    lengths = np.array([4, 4, 8, 9, 3], np.uint32)
    short, long = Tally(lengths, 4), Tally(lengths, 8)
    short.add(segments([[(0, 0, 4, 0)], [(1, 0, 4, 0)], [(3, 8, 1, 0), (PADDING, 0, 3, 0)]]))
    long.add(segments([[(2, 0, 8, 0)], [(3, 0, 8, 0)]]))
    metrics = measure([short, long], batch_size=1)
    assert metrics.rows == 5
    assert metrics.fitting_documents == 5  # that of 9 tokens has a text of 8
    assert metrics.cut_documents == metrics.cut_fitting_documents == 1  # the dropped one; 3 lacks its EOS
    assert metrics.steps_per_epoch == 2 + 2  # batches of 8 tokens: two rows of 4, or one of 8
    assert metrics.row_excess == 0
    assert metrics.padding_ratio == 3 / 28
