"""Rows as strips: as wide as their pieces, coloured by length, cuts marked."""

from __future__ import annotations

import re

import numpy as np
import pytest

from packtool.comparing.trial import PICTURED, spread_rows
from packtool.packing import PackOptions, plan
from packtool.report.packed import sample_rows
from packtool.report.page.axes import WIDTH
from packtool.report.page.row_picture import row_picture
from packtool.writing.layout import Layout


def rows_of(lengths: list[int], strategy: str, sequence_length: int) -> str:
    array = np.array(lengths)
    (whole,) = plan(strategy, array, PackOptions(sequence_length=sequence_length))
    layout = Layout(whole)
    return row_picture("rows", sample_rows(layout.segments(0, layout.rows), array))


def test_blocks_are_as_wide_as_their_pieces_and_coloured_by_length() -> None:
    drawing = rows_of([16, 12, 4], "concat", 16)
    widths = [float(width) for width in re.findall(r'class="piece \w+" .*?width="([\d.]+)"', drawing)]
    assert widths == pytest.approx([WIDTH, WIDTH * 3 / 4, WIDTH / 4], abs=0.5)
    assert re.findall(r'class="piece (\w+)"', drawing) == ["l1", "l1", "l0"]
    assert "cut" not in drawing


def test_cut_ends_are_marked_and_a_missing_eos_is_none() -> None:
    assert rows_of([20], "concat", 8).count('class="cut"') == 4
    assert rows_of([9], "bfd", 8).count('class="cut"') == 0


def test_many_short_pieces_of_one_colour_are_one_block() -> None:
    assert rows_of([2] * 2000, "bfd", 4000).count("<rect") == 1


def test_a_few_rows_evenly_spread() -> None:
    lengths = np.full(100, 8)
    (whole,) = plan("bfd", lengths, PackOptions(sequence_length=8))
    layout = Layout(whole)
    rows = spread_rows(layout.segments, layout.rows)
    assert rows.groups == PICTURED
    assert (rows.document[0], rows.document[-1]) == (0, 99)
    assert spread_rows(layout.segments, 0).groups == 0
