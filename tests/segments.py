"""Segments as lists: of rows, or other groups, and the pieces in each."""

from collections.abc import Sequence

import numpy as np

from packtool.planning.plan import Segments, offsets_of

Piece = tuple[int, int, int, int]
"""Document, start, length, and how many of its tokens are repeated."""


def segments(groups: Sequence[Sequence[Piece]]) -> Segments:
    """Make segments of lists."""
    table = np.array([piece for group in groups for piece in group], np.int64).reshape(-1, 4)
    return Segments(*table.T, offsets_of(np.array([len(group) for group in groups], np.int64)))


def listed(rows: Segments) -> list[list[Piece]]:
    """List what segments hold."""
    columns = (rows.document, rows.start, rows.length, rows.repeated)
    pieces = list(zip(*(column.tolist() for column in columns), strict=True))
    return [pieces[a:b] for a, b in zip(rows.offsets[:-1], rows.offsets[1:], strict=True)]
