"""The report of a packed dataset: counted from its rows, and a few of them to draw."""

from __future__ import annotations

import numpy as np

from packtool.planning.metrics.summary import measure
from packtool.planning.metrics.tally import Tally
from packtool.planning.plan import INSERTED_EOS, PADDING
from packtool.report.dataset_report import sample_rows
from packtool.report.types import PackedReport
from tests.segments import segments


def test_agrees_with_the_tally(report: PackedReport, tally: Tally) -> None:
    metrics = measure([tally], 8)
    assert report.lengths is not None
    assert report.metrics.padding_ratio == metrics.padding_ratio
    assert report.metrics.steps_per_epoch == -(-tally.rows // 8)
    assert sum(b.rows for b in report.documents_per_row) == tally.rows
    assert sum(b.documents for b in report.lengths.histogram) == len(tally.lengths)
    assert report.lengths.total == int(tally.lengths.sum())
    [bucket] = report.buckets
    assert (bucket.row_share, bucket.token_share) == (1, 1)


def test_segments_are_named_and_their_cut_ends_marked() -> None:
    pieces = [
        [(0, 0, 5, 0), (PADDING, 0, 3, 0)],
        [(1, 0, 4, 0), (2, 0, 3, 0), (INSERTED_EOS, 0, 1, 0)],
        [(1, 4, 4, 0), (3, 2, 4, 0)],
    ]
    rows = sample_rows(segments(pieces), np.array([5, 9, 4, 9]))
    found = [
        [(each.kind, each.length, each.document_length, each.cut_before, each.cut_after) for each in row.segments]
        for row in rows
    ]
    assert found == [
        [("document", 5, 5, False, False), ("padding", 3, 0, False, False)],
        [("document", 4, 9, False, True), ("document", 3, 4, False, False), ("eos", 1, 0, False, False)],
        [("document", 4, 9, True, False), ("document", 4, 9, True, True)],
    ]
