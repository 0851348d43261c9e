"""Documents sorted by keys: as `sorted` does, in however many ranges."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from packtool.writing.sorting import DOCUMENT, sorted_documents

VALUES: list[list[Any]] = [
    ["a", "b", "é", "Z", "", "𝄞", "\uffff", None],
    [3.0, 10.0, -2.5, 1e300, -0.0, 0.0, float("-inf"), None],
    ["x", "y/z", "y", "long " * 9, None],
]
TYPES = [pa.large_string(), pa.float64(), pa.large_string()]


def by_definition(rows: list[tuple[Any, ...]], descending: list[bool]) -> list[int]:
    """Sort by the last key first; each sort keeps the order of what is equal."""
    order = list(range(len(rows)))
    for key in reversed(range(len(descending))):
        known = [n for n in order if rows[n][key] is not None]
        values = {n: rows[n][key] for n in known}
        known.sort(key=lambda n: values[n], reverse=descending[key])
        order = known + [n for n in order if rows[n][key] is None]
    return order


@pytest.mark.parametrize("cases", [100, pytest.param(5000, marks=pytest.mark.slow)])
def test_in_any_memory_the_order_is_that_of_sorted(tmp_path: Path, cases: int) -> None:
    draw, most = random.Random(cases), 0
    for _ in range(cases):
        keys = draw.sample(range(3), draw.randrange(1, 4))
        descending = [draw.random() < 0.5 for _ in keys]
        rows = [tuple(draw.choice(VALUES[key]) for key in keys) for _ in range(draw.randrange(1, 90))]
        tables, first = [], 0
        while first < len(rows):
            part = rows[first : first + draw.randrange(1, 40)]
            columns = {str(n): pa.array([row[n] for row in part], TYPES[key]) for n, key in enumerate(keys)}
            tables.append(pa.table({**columns, DOCUMENT: pa.array(range(first, first + len(part)))}))
            first += len(part)
        for memory in (1 << 30, draw.randrange(100, 4000)):
            parts = list(sorted_documents(lambda: iter(tables), descending, memory, tmp_path))  # noqa: B023
            found = pa.concat_tables(parts)
            most = max(most, len(parts))
            wanted = by_definition(rows, descending)
            assert found[DOCUMENT].to_pylist() == wanted
            assert found["0"].to_pylist() == [rows[n][0] for n in wanted]
    assert most > 2
    assert not list(tmp_path.iterdir())
