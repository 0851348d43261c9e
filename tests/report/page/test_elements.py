"""Parts of pages: what users wrote is escaped, figures sort by their value."""

from __future__ import annotations

from xml.etree import ElementTree

import numpy as np
import pytest

from packtool.metrics import LengthCounts
from packtool.report.packed import lengths_of
from packtool.report.page.elements import Cell, definitions, facts, lengths_figure, sortable_table, table, tiles

EVIL = "<b>&'\""


@pytest.mark.parametrize(
    "made",
    [
        table([EVIL], [[EVIL]]),
        sortable_table([EVIL], [(EVIL, [[Cell(EVIL)]])]),
        definitions([(EVIL, EVIL)]),
        tiles([(EVIL, EVIL)]),
        facts([(EVIL, EVIL)]),
    ],
)
def test_what_users_wrote_is_escaped(made: str) -> None:
    root = ElementTree.fromstring(made)
    assert "".join(root.itertext()).count(EVIL) >= 2
    assert root.find(".//b") is None


def test_cells_carry_the_number_to_sort_by() -> None:
    made = sortable_table(["figure"], [("group", [[Cell("12%", 0.12, best=True)], [Cell("–")]])])
    cells = ElementTree.fromstring(made).findall(".//tbody/tr/td")
    assert [(cell.text, cell.get("data-value"), cell.get("class")) for cell in cells] == [
        ("12%", "0.12", "best"),
        ("–", None, None),
    ]


def test_quantiles_are_named() -> None:
    made = lengths_figure(lengths_of(LengthCounts.of(np.arange(1, 1001)), "tokens"))
    for name, value in (("shortest", "1"), ("median", "500"), ("p99", "990"), ("longest", "1,000")):
        assert f"<dt>{name}</dt><dd>{value}</dd>" in made
