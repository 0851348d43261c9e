"""A packed dataset on a page."""

from __future__ import annotations

from packtool.report.page.page import page
from packtool.report.schema import PackedReport
from tests.reports import measured


def test_where_every_token_went_is_told_in_numbers(report: PackedReport) -> None:
    text = page(measured(report))
    ledger = report.ledger
    for name, tokens in (("padding", ledger.padding), ("EOS", ledger.eos)):
        assert f"<td class='words'>  {name}</td><td data-value='{tokens}'>{tokens:,}</td>" in text
