"""Mixed rows: nothing but places changes, and rows come out as mixed as random ones, no more and no less."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from packtool.metrics.homogeneity import Homogeneity, HomogeneityCounts
from packtool.packing import STRATEGIES, PackOptions, plan, plan_window, window_ranges
from packtool.packing.bins import mix as module
from packtool.packing.bins.exchange import HALF, RowSegments, even_costs, weights
from packtool.packing.bins.mix import mix
from packtool.plan import Plan, Segments, offsets_of
from packtool.shuffling.balance import pairs_of
from tests.test_laws import corpora, options_of


@st.composite
def cases(draw: st.DrawFn) -> tuple[int, list[list[int]]]:
    """A row length and rows; some hold more than they should, as bins larger than rows do."""
    sequence_length = draw(st.sampled_from([2, 8, 16, 50, 300]))
    length = st.integers(1, min(sequence_length, 40))
    few = draw(st.lists(length, min_size=1, max_size=3))
    row = st.lists(st.one_of(length, st.sampled_from(few)), min_size=1, max_size=9)
    return sequence_length, draw(st.lists(row, max_size=40))


def require_mixed(sequence_length, rows, seed, window=0, long_rows=0, even_cost=False):
    """Segments stay, no row gets more than L tokens, and what lies beyond the first L stays there."""
    length = np.array([length for row in rows for length in row], np.int64)
    offsets = offsets_of(np.array([len(row) for row in rows], np.int64))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_LEAST_BLOCK", 40)
        patch.setattr(module, "_ROWS_FOR_EACH_SUM", 0)
        items, moved = mix(
            np.arange(len(length)),
            length,
            offsets,
            sequence_length,
            seed=seed,
            window=window,
            long_rows=long_rows,
            even_cost=even_cost,
        )
    assert sorted(items.tolist()) == list(range(len(length)))
    assert len(moved) == len(offsets)
    for number, row in enumerate(rows):
        here = items[moved[number] : moved[number + 1]]
        if sum(row) <= sequence_length:
            assert 0 < length[here].sum() <= sequence_length
            continue
        assert length[here].sum() == sum(row)
        # What does not end within the row lies where it lay: at the end, in its order.
        kept = int(np.searchsorted(np.cumsum(row), sequence_length, side="right"))
        fixed = list(range(offsets[number] + kept, offsets[number + 1]))
        assert here[len(here) - len(fixed) :].tolist() == fixed


@settings(max_examples=150, deadline=None)
@given(cases(), st.integers(0, (1 << 64) - 1), st.integers(0, 1 << 40), st.integers(0, 50), st.booleans())
def test_no_row_gets_too_long_and_what_lies_beyond_stays(case, seed, window, long_rows, even_cost):
    require_mixed(*case, seed, window, long_rows, even_cost)


def test_rows_of_the_largest_length():
    rng = np.random.default_rng(1)
    rows = [rng.integers(1, 1 << 22, 4).tolist() for _ in range(60)]
    for even_cost in (False, True):
        require_mixed(1 << 24, rows, seed=3, even_cost=even_cost)


def greedy_rows(median: float, sigma: float, sequence_length: int, name: str = "bfd", documents: int = 60_000) -> Plan:
    lengths = np.round(np.random.default_rng(0).lognormal(np.log(median), sigma, documents))
    options = PackOptions(sequence_length=sequence_length, mix_rows=False if name == "bfd" else None)
    (only,) = plan(name, np.maximum(lengths, 2).astype(np.int64), options)
    return only


def homogeneity(only: Plan) -> Homogeneity:
    counts = HomogeneityCounts()
    counts.add(only.segments(np.arange(only.rows)))
    return counts.result()


FEW = [(400, 1.2, 2048, 300), (400, 1.2, 8192, 1000), (1000, 1.2, 32768, 1000), (3000, 1.2, 131_072, 10_000)]
"""Median, sigma, sequence length, documents: fewer than groups of equal sums need."""
MANY = [
    (400, 1.2, 2048, 60_000),
    (60, 1.2, 2048, 60_000),
    (100, 0.8, 512, 60_000),
    (400, 1.2, 8192, 60_000),
    (2, 0.3, 512, 60_000),
    (3000, 1.2, 32768, 60_000),
]


@pytest.mark.parametrize(("median", "sigma", "sequence_length", "documents"), FEW + MANY)
def test_rows_are_mixed_as_random_rows_are(median, sigma, sequence_length, documents):
    greedy = greedy_rows(median, sigma, sequence_length, documents=documents)
    before, after = homogeneity(greedy), homogeneity(greedy.mixed(42, 0))
    assert before.between_rows > 2 * before.random_rows
    assert 0.9 * after.random_rows < after.between_rows < 1.1 * after.random_rows
    assert (after.rows, after.segments) == (before.rows, before.segments)
    assert after.equal_but_one < max(0.02, before.equal_but_one / 10)


def test_documents_near_a_row_long_part_from_their_like():
    """Rows of one long document and two equal short ones, which no group of equal sums can part."""
    rng = np.random.default_rng(4)
    lengths = np.concatenate([1900 + rng.integers(0, 100, 300), np.repeat(rng.choice(np.arange(20, 60), 40), 15)])
    (greedy,) = plan("bfd", lengths, PackOptions(sequence_length=2048, mix_rows=False))
    before, after = homogeneity(greedy), homogeneity(greedy.mixed(42, 0))
    assert before.equal_but_one > 0.3
    assert after.equal_but_one < before.equal_but_one / 4


def test_rows_are_mixed_better_than_by_first_fit_in_random_order():
    greedy = greedy_rows(400, 1.2, 8192, documents=3000)
    peer = greedy_rows(400, 1.2, 8192, "first-fit-shuffle", documents=3000)
    assert homogeneity(greedy.mixed(42, 0)).between_rows <= homogeneity(peer).between_rows * 1.05
    assert greedy.rows <= peer.rows


def test_costs_are_evened_out_where_asked_and_rows_keep_their_sums():
    lengths = np.round(np.random.default_rng(0).lognormal(np.log(1500), 0.8, 60_000)).astype(np.int64) + 1
    (greedy,) = plan("bfd", lengths, PackOptions(sequence_length=32_768, mix_rows=False))
    mixed, even = greedy.mixed(42, 0), greedy.mixed(42, 0, even_cost=True)
    rows = np.arange(greedy.rows)
    assert segments_of(even.segments(rows)) == segments_of(greedy.segments(rows))
    np.testing.assert_array_equal(np.sort(even.segments(rows).tokens()), np.sort(mixed.segments(rows).tokens()))
    before, after = pairs_of(mixed.segments(rows)), pairs_of(even.segments(rows))
    assert before.sum() == after.sum()
    assert after.std() < 0.9 * before.std()


@settings(max_examples=100, deadline=None)
@given(
    rows=st.lists(st.lists(st.integers(1, 6), min_size=2, max_size=8), max_size=30), seed=st.integers(0, (1 << 64) - 1)
)
def test_evening_keeps_the_sums_of_rows_and_makes_no_costs_less_even(rows, seed):
    length = np.array([length for row in rows for length in row], np.int64)
    before = RowSegments(weights(8)[length], np.array([len(row) for row in rows], np.int64))
    after = even_costs(before, np.random.Philox(seed))
    assert sorted(after.weight.tolist()) == sorted(before.weight.tolist())
    found = np.split((after.weight >> HALF).astype(np.int64), offsets_of(after.counts)[1:-1]) if rows else []
    assert [int(row.sum()) for row in found] == [sum(row) for row in rows]
    assert sum(int((row**2).sum()) ** 2 for row in found) <= sum(sum(n * n for n in row) ** 2 for row in rows)


def test_evening_by_hand():
    """Rows of 4 + 4 and of eight ones: groups of four change places as soon as both are cut there."""
    rows = RowSegments(weights(8)[np.array([4, 4, 1, 1, 1, 1, 1, 1, 1, 1])], np.array([2, 8]))
    found = []
    for seed in range(20):
        after = even_costs(rows, np.random.Philox(seed))
        found.append([sorted((row >> HALF).tolist()) for row in np.split(after.weight, after.counts[:1])])
    even = [[1, 1, 1, 1, 4]] * 2
    assert found.count(even) > 10
    assert all(each in (even, [[4, 4], [1] * 8]) for each in found)


def columns(rows: Segments) -> list[tuple[int, int, int]]:
    return sorted(zip(rows.document.tolist(), rows.start.tolist(), rows.length.tolist(), strict=True))


def test_neighbours_of_equal_length_part_and_segments_lie_in_random_order():
    lengths = np.tile([30, 34], 5000)
    (greedy,) = plan("bfd", lengths, PackOptions(sequence_length=64, mix_rows=False))
    mixed = greedy.mixed(42, 0).segments(np.arange(greedy.rows))
    assert columns(mixed) == columns(greedy.segments(np.arange(greedy.rows)))
    first, second = mixed.document.reshape(-1, 2).T
    # Best fit puts the i-th of one length to the i-th of the other; mixed, their distance is that of random documents.
    assert np.abs(first - second).mean() == pytest.approx(len(lengths) / 3, rel=0.05)
    assert np.mean(lengths[first] == 34) == pytest.approx(0.5, abs=0.05)


def test_other_seeds_and_windows_give_other_rows():
    greedy = greedy_rows(60, 1.2, 2048, documents=2000)
    documents = [
        greedy.mixed(seed, window).segments(np.arange(greedy.rows)).document.tolist()
        for seed, window in ((42, 0), (42, 1), (43, 0), (42, 0))
    ]
    assert documents[0] == documents[3]
    assert len({tuple(each) for each in documents}) == 3


MIXING = [name for name, strategy in STRATEGIES.items() if "mix_rows" in strategy.accepts]


def segments_of(rows: Segments) -> list[tuple[int, int, int, int]]:
    columns = (rows.document, rows.start, rows.length, rows.repeated)
    return sorted(zip(*(column.tolist() for column in columns), strict=True))


def test_the_strategies_of_bins_mix_and_two_do_unasked():
    assert MIXING == ["ffd", "bfd", "bfd-extra", "seamless", "buckets"]
    assert [name for name in MIXING if STRATEGIES[name].mixes] == ["ffd", "bfd"]


@pytest.mark.parametrize("name", MIXING)
@settings(max_examples=12, deadline=None)
@given(data=st.data())
def test_only_places_change(name, data):
    size = data.draw(st.sampled_from([8, 16, 33]), label="size")
    lengths = data.draw(corpora(size), label="lengths")
    options = replace(options_of(name, size, data), optimize=False)
    even_cost = data.draw(st.booleans(), label="even_cost")
    plain, mixed, again, other = (
        plan(name, lengths, replace(options, **change))
        for change in (
            {"mix_rows": False},
            {"mix_rows": True, "seed": 3, "even_cost": even_cost},
            {"mix_rows": True, "seed": 3, "even_cost": even_cost},
            {"mix_rows": True, "seed": 4},
        )
    )
    for before, after, same, differs in zip(plain, mixed, again, other, strict=True):
        units = np.arange(before.units)
        old = before.segments(units)
        for one in (after, differs):
            new = one.segments(units)
            assert segments_of(new) == segments_of(old)
            assert new.tokens().sum() == old.tokens().sum()
            assert (new.tokens() > 0).all()
            assert (new.tokens() <= before.sequence_length).all()
            for figure in ("rows", "dropped", "eos_omitted", "eos_inserted", "least_rows"):
                assert getattr(one, figure) == getattr(before, figure)
        np.testing.assert_array_equal(after.segments(units).document, same.segments(units).document)


@pytest.mark.parametrize("name", MIXING)
def test_a_window_is_mixed_on_its_own(name):
    lengths = np.round(np.random.default_rng(2).lognormal(4, 1.3, 3000)).astype(np.int64) + 1
    given = {"buckets": (64, 256)} if name == "buckets" else {"sequence_length": 128}
    options = PackOptions(window_tokens=50_000, mix_rows=True, **given)

    def windows(lengths: np.ndarray) -> list[list[list[int]]]:
        ranges = window_ranges(lengths, options.window_tokens)
        parts = [plan_window(name, lengths[first:last], options, first) for first, last in ranges]
        return [[only.segments(np.arange(only.rows)).document.tolist() for only in plans] for plans in parts]

    first = windows(lengths)
    assert len(first) > 3
    # What changes in the last window leaves the others as they are.
    assert windows(np.append(lengths, 9))[: len(first) - 1] == first[:-1]
