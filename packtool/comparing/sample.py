"""A few rows to look at: of the first documents, packed as a candidate packs them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from packtool import packing
from packtool.comparing.candidates import Candidate
from packtool.plan import Ints, Segments, distinct
from packtool.writing.layout import Layout

SAMPLE = 20_000
"""Documents that are packed for a picture."""
PICTURED = 6
"""Rows of a picture."""


def sample_rows(lengths: Ints, candidate: Candidate) -> Segments:
    """List rows evenly spread over what the candidate makes of the first documents.

    Of several row lengths, those of the one with the most tokens.
    """
    plans = packing.plan(candidate.strategy, lengths[:SAMPLE], candidate.options)
    layout = Layout(max(plans, key=lambda plan: plan.rows * plan.sequence_length))
    return spread_rows(layout.segments, layout.rows)


def spread_rows(segments: Callable[[int, int], Segments], rows: int) -> Segments:
    """List some rows, evenly spread, of all that `segments(first, last)` gives."""
    wanted = distinct(np.linspace(0, rows - 1, PICTURED).astype(np.int64)).tolist() if rows else []
    return Segments.concatenate([segments(row, row + 1) for row in wanted] or [segments(0, 0)])
