"""Parts of pages: what users wrote is escaped, figures sort by their value."""

from __future__ import annotations

from xml.etree import ElementTree

import numpy as np
import pytest

from packtool.metrics.lengths import LengthCounts
from packtool.report.figures import percent
from packtool.report.packed import lengths_of
from packtool.report.page.elements import facts, lengths_figure, section, tiles
from packtool.report.table import Column, Table, table_of

EVIL = "<b>&'\""


@pytest.mark.parametrize(
    "made",
    [
        f"<div>{section(table_of(EVIL, [Column(EVIL, str, meaning=EVIL)], [EVIL], EVIL))}</div>",
        f"<div>{section(Table(EVIL, [Column(EVIL, str)], [(EVIL, [EVIL])]))}</div>",
        tiles([(EVIL, EVIL)]),
        facts([(EVIL, EVIL)]),
    ],
)
def test_what_users_wrote_is_escaped(made: str) -> None:
    root = ElementTree.fromstring(made)
    assert "".join(root.itertext()).count(EVIL) >= 2
    assert root.find(".//b") is None


def test_cells_carry_the_number_to_sort_by() -> None:
    column = Column("figure", lambda row: row[0], percent, "a share", better=-1)
    made = section(Table("", [column], [("group", [(0.12,), (0.5,), (None,)])], contest=list))
    root = ElementTree.fromstring(f"<div>{made}</div>")
    assert [(cell.text, cell.get("data-value"), cell.get("class")) for cell in root.findall(".//tbody/tr/td")] == [
        ("12.00%", "0.12", "best"),
        ("50.00%", "0.5", None),
        ("–", None, None),
    ]
    assert [head.get("title") for head in root.findall(".//thead/tr/th")] == ["a share"]


def test_a_table_without_rows_is_left_out() -> None:
    assert section(table_of("title", [Column("figure", str)], [])) == ""


def test_quantiles_are_named() -> None:
    made = lengths_figure(lengths_of(LengthCounts.of(np.arange(1, 1001)), "tokens"))
    for name, value in (("shortest", "1"), ("median", "500"), ("p99", "990"), ("longest", "1,000")):
        assert f"<dt>{name}</dt><dd>{value}</dd>" in made
