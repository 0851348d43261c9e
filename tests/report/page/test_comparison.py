"""The comparison on a page: the verdict first, tables that sort."""

from __future__ import annotations

import re

import numpy as np

from packtool.report.page import page
from tests.reports import store_report


def test_the_verdict_comes_first_and_tables_sort() -> None:
    lengths = np.random.default_rng(2).lognormal(4, 1, 400).astype(np.int64) + 2
    text = page(store_report(lengths, ["all"], [128], [64, 256]))
    headings = re.findall("<h2>(.*?)</h2>", text)
    assert headings[:3] == ["Verdict", "Strategies", "Documents"]
    assert "<pre>packtool pack store -o packed --strategy bfd --sequence-length 128</pre>" in text
    assert text.count("<table class='sorts'>") == 2
    values = re.findall("<td class='words'>bfd</td>.*?data-value='(.*?)'", text)
    assert all(float(value) >= 0 for value in values)
    assert values
