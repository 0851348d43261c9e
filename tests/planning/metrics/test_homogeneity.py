"""Homogeneity of rows: against the plain formula, added up in any parts, at the edges."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from packtool.planning.metrics.homogeneity import HomogeneityCounts
from packtool.planning.plan import Segments, offsets_of


def segments_of(rows: list[list[int]], document: np.ndarray | None = None) -> Segments:
    length = np.array([length for row in rows for length in row], np.int64)
    zeros = np.zeros_like(length)
    document = np.arange(len(length)) if document is None else document
    return Segments(document, zeros, length, zeros, offsets_of(np.array([len(row) for row in rows], np.int64)))


def count(rows: Segments) -> HomogeneityCounts:
    counts = HomogeneityCounts()
    counts.add(rows)
    return counts


ROWS = st.lists(st.lists(st.sampled_from([1, 2, 3, 7, 7, 50, 2048, 1 << 24]), min_size=1, max_size=8), max_size=12)


@settings(deadline=None)
@given(ROWS.filter(len))
def test_as_the_formula_says(rows):
    found = count(segments_of(rows)).result()
    logs = [np.log(row) for row in rows]
    everything = np.concatenate(logs)
    total = ((everything - everything.mean()) ** 2).sum()
    between = sum(len(row) * (row.mean() - everything.mean()) ** 2 for row in logs)
    assert found.between_rows == pytest.approx(between / total if total > 1e-9 else 0, abs=1e-3)
    several = [row for row in rows if len(row) > 2]
    alike = [row for row in several if max(row.count(length) for length in row) >= len(row) - 1]
    assert found.rows_of_several == len(several)
    assert found.equal_but_one == (len(alike) / len(several) if several else 0)


@settings(deadline=None)
@given(ROWS, st.integers(0, 12))
def test_parts_add_up_exactly(rows, cut):
    whole = segments_of(rows)
    parts = count(whole[:cut])
    parts += count(whole[cut:])
    assert vars(parts) == vars(count(whole))
    assert parts.result() == count(whole).result()


def test_random_rows_have_on_average_what_is_expected_of_them():
    rng = np.random.default_rng(0)
    sizes = rng.integers(1, 9, 300)
    length = np.round(rng.lognormal(4, 1.2, sizes.sum())).astype(np.int64) + 1
    shares = []
    for _ in range(200):
        rng.shuffle(length)
        rows = [part.tolist() for part in np.split(length, np.cumsum(sizes)[:-1])]
        found = count(segments_of(rows)).result()
        shares.append(found.between_rows)
    assert np.mean(shares) == pytest.approx(found.random_rows, rel=0.01)


def test_the_edges():
    nothing = HomogeneityCounts().result()
    assert (nothing.rows, nothing.between_rows, nothing.random_rows, nothing.equal_but_one) == (0, 0, 0, 0)
    alike = count(segments_of([[4, 4, 4], [4]])).result()
    assert (alike.between_rows, alike.equal_but_one) == (0, 1)
    # The largest row there can be, of the shortest texts: no sum overflows.
    row = [2] * (1 << 20)
    assert count(segments_of([row, [1 << 24]])).result().between_rows == 1
