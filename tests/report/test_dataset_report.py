"""The report of a packed dataset: counted from its rows, and a few of them to draw."""

import numpy as np

from packtool.planning.plan import INSERTED_EOS, PADDING
from packtool.report.dataset_report import sample_rows
from tests.segments import segments


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
