"""Segments as records and back; the row that a message names."""

import numpy as np
import pytest

from packtool.errors import DataError
from packtool.formats.names import SEGMENT
from packtool.formats.segment_table import from_table, no_segments, require_rows, to_table
from packtool.planning.plan import INSERTED_EOS, PADDING, Segments


def test_segments_come_back_as_they_were() -> None:
    rows = Segments(
        np.array([1 << 40, PADDING, INSERTED_EOS]),
        np.array([(1 << 32) - 1, 0, 0]),
        np.array([7, 2, 1]),
        np.array([3, 0, 0]),
        np.array([0, 1, 1, 3]),
    )
    table = to_table(rows)
    assert (table.dtype, len(table)) == (SEGMENT, 3)
    again = from_table(table, rows.offsets.astype(np.uint32))
    for name in Segments.__slots__:
        np.testing.assert_array_equal(getattr(again, name), getattr(rows, name))
        assert getattr(again, name).dtype == np.int64


def test_a_table_that_was_not_written_is_named() -> None:
    error = no_segments("somewhere")
    assert (error.code, error.where) == ("no-segments", "somewhere")
    assert error.remedy == "pack again without --no-segments"


@pytest.mark.parametrize(
    ("offsets", "row"),
    [([0, 1, 2, 2, 4], 9), ([0, 1, 3, 2, 4], 9), ([-1, 1, 2, 3, 4], 7), ([0, 1, 2, 3, 5], 10), ([0, 1, 5, 3, 4], 8)],
)
def test_the_first_row_outside_the_table_is_named(offsets: list[int], row: int) -> None:
    require_rows(np.array([0, 1, 2, 3, 4]), 4, 7, "somewhere")
    with pytest.raises(
        DataError, match=rf"somewhere: row {row}: its segments lie outside the segment table\. Make the"
    ):
        require_rows(np.array(offsets), 4, 7, "somewhere")
