"""docs/report-schema.md names everything that a report holds."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from packtool.comparison import candidates, compare
from packtool.metrics import LengthCounts
from packtool.metrics.mixing import Mixing
from packtool.report.comparison import comparison_section
from packtool.report.document import lengths_section, mixing_section

FREE = {"options", "shuffle", "tokenizer", "counts"}


def names(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield name
            if name not in FREE:
                yield from names(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from names(inner)


def test_every_name_is_documented(report: dict[str, Any]) -> None:
    text = (Path(__file__).parents[2] / "docs" / "report-schema.md").read_text("utf-8")
    documented = set(re.findall(r"`([a-z_0-9]+)`", text))
    lengths = np.random.default_rng(0).integers(2, 500, 200)
    counts = LengthCounts.of(lengths)
    comparison = comparison_section(list(compare(lengths, candidates(["all"], [64]))), counts, 2)
    mixed = mixing_section(Mixing([3], 2).result(), 8)
    found = set(names([report, {"mixing": [mixed], "comparison": comparison}, lengths_section(counts, "words")]))
    assert len(found) > 80
    assert sorted(found - documented) == []
