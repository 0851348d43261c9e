"""Mixed rows: only places change, and where groups of equal sums abound, rows come out nearly as mixed as random."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from packtool.planning.metrics.homogeneity import Homogeneity, HomogeneityCounts
from packtool.planning.packing import STRATEGIES, PackOptions, plan
from packtool.planning.packing.bins import mix as module
from packtool.planning.packing.bins.mix import mix
from packtool.planning.plan import Plan, Segments, offsets_of
from tests.examples import examples
from tests.segments import Piece, listed


@st.composite
def cases(draw: st.DrawFn) -> tuple[int, list[list[int]]]:
    """A row length and rows; some hold more than they should, as bins larger than rows do."""
    sequence_length = draw(st.sampled_from([2, 8, 16, 50, 300]))
    length = st.integers(1, min(sequence_length, 40))
    few = draw(st.lists(length, min_size=1, max_size=3))
    row = st.lists(st.one_of(length, st.sampled_from(few)), min_size=1, max_size=9)
    return sequence_length, draw(st.lists(row, max_size=40))


def require_mixed(sequence_length, rows, seed, window=0):
    """Segments stay, each row keeps its tokens, and what lies beyond the first L stays there."""
    length = np.array([length for row in rows for length in row], np.int64)
    offsets = offsets_of(np.array([len(row) for row in rows], np.int64))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_BLOCK", 40)
        items, moved = mix(np.arange(len(length)), length, offsets, sequence_length, seed=seed, window=window)
    assert sorted(items.tolist()) == list(range(len(length)))
    assert len(moved) == len(offsets)
    for number, row in enumerate(rows):
        here = items[moved[number] : moved[number + 1]]
        assert length[here].sum() == sum(row)
        # What does not end within the row lies where it lay: at the end, in its order.
        kept = int(np.searchsorted(np.cumsum(row), sequence_length, side="right"))
        fixed = list(range(offsets[number] + kept, offsets[number + 1]))
        assert here[len(here) - len(fixed) :].tolist() == fixed


@examples(150)
@given(cases(), st.integers(0, (1 << 64) - 1), st.integers(0, 1 << 40))
def test_rows_keep_their_tokens_and_what_lies_beyond_stays(case, seed, window):
    require_mixed(*case, seed, window)


def test_no_rows_and_rows_of_the_largest_length():
    require_mixed(8, [], seed=3)
    rng = np.random.default_rng(1)
    require_mixed(1 << 24, [rng.integers(1, 1 << 22, 4).tolist() for _ in range(60)], seed=3)


def greedy_rows(median: float, sigma: float, sequence_length: int, name: str = "bfd", documents: int = 60_000) -> Plan:
    lengths = np.round(np.random.default_rng(0).lognormal(np.log(median), sigma, documents))
    options = PackOptions(sequence_length=sequence_length, mix_rows=False if name == "bfd" else None)
    (only,) = plan(name, np.maximum(lengths, 2).astype(np.int64), options)
    return only


def homogeneity(only: Plan) -> Homogeneity:
    counts = HomogeneityCounts()
    counts.add(only.segments(np.arange(only.rows)))
    return counts.result()


MANY = [
    (400, 1.2, 2048, 1.18),
    (60, 1.2, 2048, 1.43),
    (100, 0.8, 512, 1.05),
    (400, 1.2, 8192, 1.44),
    (2, 0.3, 512, 1.3),
    (3000, 1.2, 32_768, 1.48),
]
"""Median, sigma, sequence length, and how much more alike than random rows they may stay: hardly more than they do.

Of fewer documents rows stay more alike: tests/report/test_verdict.py has those, which reports name.
"""


@pytest.mark.parametrize(("median", "sigma", "sequence_length", "most"), MANY)
def test_rows_are_mixed_nearly_as_random_rows_are(median, sigma, sequence_length, most):
    greedy = greedy_rows(median, sigma, sequence_length)
    before, after = homogeneity(greedy), homogeneity(greedy.mixed(42, 0))
    assert before.between_rows > 2 * before.random_rows
    assert 0.9 * after.random_rows < after.between_rows < most * after.random_rows
    assert (after.rows, after.segments) == (before.rows, before.segments)
    assert after.equal_but_one < max(0.02, before.equal_but_one / 10)


def segments_of(rows: Segments) -> list[Piece]:
    return sorted(piece for row in listed(rows) for piece in row)


MIXING = [name for name, strategy in STRATEGIES.items() if "mix_rows" in strategy.accepts]


def test_the_strategies_of_bins_mix_and_two_do_unasked():
    assert MIXING == ["ffd", "bfd", "bfd-extra", "seamless", "buckets"]
    assert [name for name in MIXING if STRATEGIES[name].mixes] == ["ffd", "bfd"]
