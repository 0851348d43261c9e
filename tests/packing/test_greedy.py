"""Bins on the histogram are those of the algorithms item by item: `ffd`, `bfd`, `bfd-extra`, `seamless`."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from packtool.errors import UsageError
from packtool.packing import PackOptions, assign, plan
from packtool.packing.histogram import best_fit, first_fit
from packtool.packing.seamless import slides
from packtool.plan import Plan
from tests.packing import oracles
from tests.packing.tokens import render


def bins_of(only: Plan) -> list[list[oracles.Piece]]:
    """Documents, starts and lengths of each row, in order."""
    pieces = only.segments(np.arange(only.units))
    columns = list(zip(pieces.document.tolist(), pieces.start.tolist(), pieces.length.tolist(), strict=True))
    return [columns[a:b] for a, b in zip(pieces.offsets, pieces.offsets[1:], strict=False)]


def one(name: str, lengths: list[int], **options: object) -> Plan:
    (only,) = plan(name, np.array(lengths, np.int64), PackOptions(**options))
    return only


@st.composite
def cases(draw: st.DrawFn) -> tuple[int, list[int]]:
    """A row length and documents: short, of a few lengths, simple fractions of the row, longer than it."""
    size = draw(st.sampled_from([2, 3, 5, 8, 16, 31, 64, 600, 1100]))
    few = draw(st.lists(st.integers(1, size), min_size=1, max_size=4))
    parts = [max(1, size // n) for n in (1, 2, 3, 4, 5, 7)]
    length = draw(
        st.sampled_from(
            [
                st.integers(1, size),
                st.integers(1, max(1, size // 8)),
                st.integers(max(1, size // 4), size),
                st.sampled_from(few),
                st.sampled_from(parts),
                st.integers(1, 4 * size),
            ]
        )
    )
    return size, draw(st.lists(length, max_size=120))


@settings(max_examples=400, deadline=None)
@given(cases())
def test_ffd_and_bfd_item_by_item(case):
    size, lengths = case
    items = oracles.chunks(lengths, size)
    assert bins_of(one("ffd", lengths, sequence_length=size)) == oracles.first_fit(items, size)
    assert bins_of(one("bfd", lengths, sequence_length=size)) == oracles.best_fit(items, size)


@settings(max_examples=300, deadline=None)
@given(cases(), st.data())
def test_bins_larger_than_rows_item_by_item(case, data):
    size, lengths = case
    extra = data.draw(st.sampled_from([0, 1, size // 4, size - 1]))
    bins = oracles.best_fit(oracles.chunks(lengths, size), size + extra)
    only = one("bfd-extra", lengths, sequence_length=size, extra_capacity=extra)
    assert bins_of(only) == oracles.settle(bins, size)
    repetition = data.draw(st.sampled_from([Fraction(0), Fraction(1, 10), Fraction("0.3"), Fraction(1)]))
    only = one("seamless", lengths, sequence_length=size, extra_capacity=extra, max_repetition=repetition)
    assert bins_of(only) == oracles.seamless(lengths, size, repetition, extra)


@pytest.mark.parametrize("fit", [first_fit, best_fit])
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_large_runs_and_small_ones_are_assigned_alike(fit, data):
    """Thousands of items, so that runs are copied as blocks, in batches, and one by one."""
    capacity = data.draw(st.integers(2, 200))
    seed = data.draw(st.integers(0, 1 << 32))
    few = np.random.default_rng(seed).integers(1, capacity + 1, data.draw(st.integers(1, 30)))
    lengths = np.random.default_rng(seed + 1).choice(few, 9000)
    counts = np.bincount(lengths, minlength=capacity + 1)
    keys = (capacity - lengths).astype(np.uint16)
    order = assign.stable_order(keys, counts[::-1])
    np.testing.assert_array_equal(order, np.argsort(keys, kind="stable"))
    runs = fit(counts, capacity)
    placed, offsets = assign.assign(order, counts, runs)
    assert (np.bincount(placed, minlength=len(lengths)) == 1).all()
    run = np.repeat(np.arange(len(runs.bins)), runs.bins)
    totals = np.add.reduceat(lengths[placed], offsets[:-1])
    np.testing.assert_array_equal(totals, runs.tokens()[run])
    assert totals.max() <= capacity
    # Items of one length are taken in their own order within each run, and from one run to the next in that of `first`.
    inside = np.arange(len(placed)) - offsets[:-1].repeat(np.diff(offsets))
    assert (np.diff(lengths[placed])[inside[1:] > 0] <= 0).all()


def test_keys_beyond_16_bits_are_sorted_in_two_passes():
    keys = np.random.default_rng(0).choice(np.array([0, 5, 65535, 65536, 65541, 200_000], np.uint32), 300_000)
    order = assign.stable_order(keys, np.bincount(keys))
    np.testing.assert_array_equal(order, np.argsort(keys, kind="stable"))


def test_rows_beyond_16_bits():
    lengths = [70_000, 3, 140_001, 69_999, 100_000]
    items = oracles.chunks(lengths, 100_000)
    assert bins_of(one("ffd", lengths, sequence_length=100_000)) == oracles.first_fit(items, 100_000)


def test_ffd_by_hand():
    lengths = [5, 3, 6, 2]
    assert render(one("ffd", lengths, sequence_length=8), lengths) == [
        "c0 c1 c2 c3 c4 cE d0 dE",
        "a0 a1 a2 a3 aE b0 b1 bE",
    ]


def test_long_documents_are_cut_to_rows_and_an_eos_alone_is_left_out():
    lengths = [9, 3]
    only = one("bfd", lengths, sequence_length=4)
    assert render(only, lengths) == ["a0 a1 a2 a3", "a4 a5 a6 a7", "b0 b1 bE ."]
    assert (only.dropped, only.eos_omitted) == (0, 1)


def test_what_exceeds_a_row_is_dropped_and_counted():
    lengths = [5, 4, 3]
    only = one("bfd-extra", lengths, sequence_length=8, extra_capacity=1)
    assert render(only, lengths) == ["a0 a1 a2 a3 aE b0 b1 b2", "c0 c1 cE . . . . ."]
    assert (only.dropped, only.eos_omitted) == (0, 1)
    only = one("bfd-extra", lengths, sequence_length=8, extra_capacity=4)
    assert render(only, lengths) == ["a0 a1 a2 a3 aE b0 b1 b2"]
    assert (only.dropped, only.eos_omitted) == (2, 2)


def test_best_fit_into_larger_bins_can_lose_short_documents_behind_whole_rows():
    lengths = [8, 2]
    only = one("bfd-extra", lengths, sequence_length=8, extra_capacity=2)
    assert render(only, lengths) == ["a0 a1 a2 a3 a4 a5 a6 aE"]
    assert (only.dropped, only.eos_omitted) == (1, 1)


def test_bins_below_a_row_are_joined_and_cut():
    lengths = [5, 5, 5]
    only = one("seamless", lengths, sequence_length=8, extra_capacity=0)
    assert render(only, lengths) == ["a0 a1 a2 a3 aE b0 b1 b2", "b3 bE c0 c1 c2 c3 cE ."]
    only = one("seamless", lengths, sequence_length=8, extra_capacity=0, remainder="drop")
    assert render(only, lengths) == ["a0 a1 a2 a3 aE b0 b1 b2"]
    assert (only.dropped, only.eos_omitted) == (5, 2)


def test_sliding_rows_overlap_evenly():
    lengths = [19]
    only = one("seamless", lengths, sequence_length=8, max_repetition=Fraction("0.4"))
    assert render(only, lengths) == [
        "a0 a1 a2 a3 a4 a5 a6 a7",
        "a5' a6' a7' a8 a9 a10 a11 a12",
        "a11' a12' a13 a14 a15 a16 a17 aE",
    ]


def test_the_repetition_is_an_exact_fraction():
    # n = 3, L = 10, r_max = 0.1: m = ceil(3) = 3, where binary floating point makes it 4.
    lengths = np.array([36, 37])
    assert slides(lengths, 10, Fraction("0.1")).tolist() == [False, True]
    assert slides(lengths, 10, Fraction("0.1000000000000000000000000000001")).tolist() == [True, True]


@pytest.mark.parametrize("repetition", ["0", "0.05", "0.3", "0.5", "1"])
def test_seamless_covers_every_document_without_a_gap(repetition):
    size, share = 512, Fraction(repetition)
    lengths = np.arange(size, 40 * size + 1)
    options = PackOptions(sequence_length=size, max_repetition=share, extra_capacity=0)
    (only,) = plan("seamless", lengths, options)
    n, rest = np.divmod(lengths, size)
    overlap = np.array([-((-k * share * size) // 1) for k in n.tolist()], np.int64)
    slide = (rest > 0) & (lengths + overlap >= (n + 1) * size)
    pieces = only.segments(np.arange(int((n + slide).sum())))
    assert (np.diff(pieces.offsets) == 1).all()
    assert (pieces.length == size).all()
    np.testing.assert_array_equal(np.bincount(pieces.document, minlength=len(lengths)), n + slide)
    first = np.concatenate([[True], np.diff(pieces.document) != 0])
    last = np.concatenate([first[1:], [True]])
    assert (pieces.start[first] == 0).all()
    assert (pieces.repeated[first] == 0).all()
    ends = pieces.start + size
    covered = np.where(slide, lengths, n * size)
    np.testing.assert_array_equal(ends[last], covered)
    again = ends[:-1] - pieces.start[1:]
    np.testing.assert_array_equal(again[~first[1:]], pieces.repeated[1:][~first[1:]])
    assert again[~first[1:]].min(initial=0) >= 0
    most = -(-((n + 1) * size - lengths) // n)
    assert (pieces.repeated <= np.where(slide, most, 0)[pieces.document]).all()
    assert pieces.repeated.max() <= -((-share * size) // 1)


def test_an_extra_of_a_whole_row_is_refused():
    with pytest.raises(UsageError, match=r"--extra-capacity: 8 is out of range\. Give a number from 0 to 7\."):
        one("seamless", [3], sequence_length=8, extra_capacity=8)


def test_windows_are_planned_one_after_the_other():
    lengths = [5, 3, 6, 2, 9, 4]
    only = one("ffd", lengths, sequence_length=8, window_tokens=8)
    assert bins_of(only) == [[(4, 0, 8)], [(0, 0, 5), (1, 0, 3)], [(2, 0, 6), (3, 0, 2)], [(5, 0, 4)]]
    assert only.eos_omitted == 1
