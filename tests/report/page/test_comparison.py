"""The comparison on a page: the verdict first, tables that sort."""

from __future__ import annotations

import re

import msgspec
import numpy as np

from packtool.report.page.page import page
from packtool.shuffling.balance import Waiting
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


def test_waiting_is_drawn_for_each_strategy_and_row_length() -> None:
    report = store_report(np.full(40, 30), ["bfd", "length-buckets"], [128], [64, 256])
    assert report.comparison is not None
    bfd, buckets = report.comparison.entries

    def waits(length: int, share: float) -> Waiting:
        return Waiting(length, 4, 8, None, 1, share, share / 10, 0.0, 2 * share, share / 5)

    entries = [
        msgspec.structs.replace(bfd, waiting=[waits(128, 0.4)]),
        msgspec.structs.replace(buckets, waiting=[waits(64, 0.2), waits(128, 0.1)]),
    ]
    text = page(msgspec.structs.replace(report, comparison=msgspec.structs.replace(report.comparison, entries=entries)))
    drawn = dict(re.findall(r"<svg[^>]*aria-label=[\"']Waiting: (.*?)[\"'].*?>(.*?)</svg>", text, re.DOTALL))
    once, turns = "Ranks that meet once a step", "Ranks that meet after every row"
    assert sorted(drawn) == sorted(f"{meet}, rows of {size} tokens" for meet in (once, turns) for size in (64, 128))
    tips = {title: re.findall("<title>(.*?)</title>", svg) for title, svg in drawn.items()}
    assert tips[f"{once}, rows of 128 tokens"] == [
        "bfd: as dealt 40.00%",
        "bfd: balanced 4.00%",
        "length-buckets: as dealt 10.00%",
        "length-buckets: balanced 1.00%",
    ]
    assert tips[f"{turns}, rows of 64 tokens"] == [
        "length-buckets: as dealt 40.00%",
        "length-buckets: balanced 4.00%",
    ]
