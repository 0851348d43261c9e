"""Rows dealt to ranks: all of them, equally many each, and never so that a step takes longer than undealt."""

from __future__ import annotations

from itertools import combinations, permutations
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from packtool.planning import packing
from packtool.planning.packing import PackOptions
from packtool.planning.plan import INSERTED_EOS, PADDING, Segments, offsets_of
from packtool.planning.shuffling.balance import (
    STEP,
    TURN,
    as_they_come,
    deal,
    deal_turns,
    dealt_in,
    dealt_order,
    pairs_of,
    time_taken,
)


@st.composite
def batches(draw: st.DrawFn, most_rows: int = 6) -> tuple[np.ndarray[Any, Any], int]:
    """Costs of the rows of some batches, and a number of ranks that divides them."""
    ranks, each = draw(st.integers(1, 5)), draw(st.integers(1, most_rows))
    cost = st.one_of(st.integers(0, 3), st.integers(0, 1 << 33))
    row = st.lists(cost, min_size=ranks * each, max_size=ranks * each)
    return np.array(draw(st.lists(row, min_size=1, max_size=3)), np.int64), ranks


@settings(max_examples=200, deadline=None)
@given(drawn=batches(), micro=st.integers(1, 7))
def test_every_row_is_dealt_once_and_ranks_have_equally_many(drawn: tuple[Any, int], micro: int) -> None:
    costs, ranks = drawn
    for dealt in (deal(costs, ranks), deal_turns(costs, ranks, micro), as_they_come(costs, ranks)):
        assert dealt.shape == (len(costs), ranks, costs.shape[1] // ranks)
        for batch in dealt:
            assert sorted(batch.reshape(-1).tolist()) == list(range(costs.shape[1]))


@settings(max_examples=100, deadline=None)
@given(drawn=batches(), other=batches())
def test_a_batch_is_dealt_the_same_whatever_is_dealt_with_it(drawn: tuple[Any, int], other: tuple[Any, int]) -> None:
    costs, ranks = drawn
    for way in (STEP, TURN):
        alone = np.concatenate([dealt_in(way, batch[None], ranks, 2) for batch in costs])
        np.testing.assert_array_equal(dealt_in(way, costs, ranks, 2), alone)


def naive(costs: list[int], ranks: int) -> list[list[int]]:
    """Largest first, each to the rank with the least among those with room."""
    dealt: list[list[int]] = [[] for _ in range(ranks)]
    for row in sorted(range(len(costs)), key=lambda row: (-costs[row], row)):
        room = [rank for rank in range(ranks) if len(dealt[rank]) < len(costs) // ranks]
        dealt[min(room, key=lambda rank: (sum(costs[row] for row in dealt[rank]), rank))].append(row)
    return dealt


@settings(max_examples=200, deadline=None)
@given(drawn=batches())
def test_as_the_rule_says(drawn: tuple[Any, int]) -> None:
    costs, ranks = drawn
    if costs.shape[1] > ranks:
        assert deal(costs, ranks).tolist() == [naive(batch, ranks) for batch in costs.tolist()]
    else:
        assert (np.diff(np.take_along_axis(costs, deal(costs, ranks)[:, :, 0], axis=1)) <= 0).all()


@settings(max_examples=200, deadline=None)
@given(drawn=batches(), micro=st.integers(1, 7))
def test_no_batch_takes_longer_than_as_it_comes(drawn: tuple[Any, int], micro: int) -> None:
    costs, ranks = drawn
    for way, rule in ((STEP, deal(costs, ranks)), (TURN, deal_turns(costs, ranks, micro))):
        taken, plain, ruled = (
            time_taken(costs, dealt, way, micro)
            for dealt in (dealt_in(way, costs, ranks, micro), as_they_come(costs, ranks), rule)
        )
        assert (taken == np.minimum(plain, ruled)).all()


def test_rows_in_an_order_that_no_rule_finds_stay() -> None:
    costs = np.array([[1, 2, 1, 2, 4, 2]])  # 6 and 6 as they come; largest first makes 5 and 7
    assert time_taken(costs, deal(costs, 2)).tolist() == [7]
    assert dealt_in(STEP, costs, 2).tolist() == [[[0, 2, 4], [1, 3, 5]]]


def best_step(costs: list[int], ranks: int) -> int:
    """The least largest sum, by trying every dealing of equally many."""
    if ranks == 1:
        return sum(costs)
    found = []
    for rest in combinations(range(1, len(costs)), len(costs) // ranks - 1):
        mine = {0, *rest}
        others = [cost for row, cost in enumerate(costs) if row not in mine]
        found.append(max(sum(costs[row] for row in mine), best_step(others, ranks - 1)))
    return min(found)


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_the_largest_sum_is_near_the_least(data: st.DataObject) -> None:
    ranks, each = data.draw(st.sampled_from([(2, 2), (2, 3), (2, 4), (3, 2), (3, 3)]))
    costs = np.array([data.draw(st.lists(st.integers(0, 100), min_size=ranks * each, max_size=ranks * each))])
    dealt = deal(costs, ranks)
    largest = int(costs[0][dealt[0]].sum(axis=1).max())
    least = best_step(costs[0].tolist(), ranks)
    assert least <= largest <= 4 / 3 * least


@settings(max_examples=30, deadline=None)
@given(costs=st.lists(st.integers(0, 50), min_size=6, max_size=6))
def test_no_turns_of_one_row_wait_less(costs: list[int]) -> None:
    for ranks in (2, 3):
        least = min(sum(max(each[i : i + ranks]) for i in range(0, 6, ranks)) for each in permutations(costs))
        found = np.array([costs])[0][deal_turns(np.array([costs]), ranks)[0]]
        assert found.max(axis=0).sum() == least


def test_time_taken_by_hand() -> None:
    costs = np.array([[4, 2, 1, 1]])
    dealt = np.array([[[0, 2], [1, 3]]])  # sums 5 and 3; turns 4, 2 and 1, 1
    assert time_taken(costs, dealt).tolist() == [5]
    assert time_taken(costs, dealt, TURN).tolist() == [4 + 1]
    assert time_taken(costs, dealt, TURN, micro_batch=2).tolist() == [5]


def test_pairs_are_those_of_a_causal_mask_within_documents() -> None:
    generator = np.random.default_rng(1)
    for _ in range(50):
        rows = []
        for _ in range(3):
            row: list[tuple[int, int]] = []
            for _ in range(generator.integers(1, 6)):
                row.append((int(generator.integers(0, 9)), int(generator.integers(1, 7))))
                if generator.random() < 0.3:
                    row.append((INSERTED_EOS, 1))
                if generator.random() < 0.2:
                    row += [(PADDING, 2)] * generator.integers(1, 3)
            if generator.random() < 0.5:
                row.append((PADDING, 3))
            rows.append(row)
        flat = np.array([segment for row in rows for segment in row], np.int64)
        zeros = np.zeros(len(flat), np.int64)
        segments = Segments(flat[:, 0], zeros, flat[:, 1], zeros, offsets_of(np.array([len(row) for row in rows])))
        for row, pairs in zip(rows, pairs_of(segments).tolist(), strict=True):
            owner: list[int] = []
            for number, (document, length) in enumerate(row):
                goes_on = document == INSERTED_EOS or (document == PADDING and number and row[number - 1][0] == PADDING)
                owner += [owner[-1] if goes_on else number] * length
            expected = sum(owner[i] == owner[j] for i in range(len(owner)) for j in range(i + 1))
            assert pairs == expected


def test_long_rows_of_long_tailed_lengths() -> None:
    """512 rows of 131,072 tokens over 64 ranks."""
    generator = np.random.default_rng(7)
    lengths = np.minimum(np.exp(generator.normal(np.log(1500), 1.6, 100_000)), 400_000).astype(np.int64) + 1
    (plan,) = packing.plan("bfd", lengths, PackOptions(sequence_length=131_072))
    pairs = pairs_of(plan.segments(np.arange(plan.rows)))
    generator.shuffle(pairs)
    costs = pairs[: len(pairs) // 512 * 512].reshape(-1, 512)
    mean = costs.sum(axis=1) / 64
    assert (1 - mean / time_taken(costs, as_they_come(costs, 64))).mean() > 0.4
    assert (1 - mean / time_taken(costs, dealt_in(STEP, costs, 64))).mean() <= 0.02
    turns = time_taken(costs, dealt_in(TURN, costs, 64, 1), TURN)
    np.testing.assert_array_equal(turns, np.sort(costs, axis=1)[:, 63::64].sum(axis=1))


@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_an_order_is_dealt_batch_by_batch_however_it_comes(data: st.DataObject) -> None:
    ranks, each = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 4))
    batch = ranks * each
    order = np.array(data.draw(st.permutations(range(data.draw(st.integers(0, 40))))), np.int64)
    costs = np.array(data.draw(st.lists(st.integers(0, 1000), min_size=len(order), max_size=len(order))), np.int64)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(order)))))
    found = np.concatenate(list(dealt_order(np.split(order, cuts), lambda rows: costs[rows], ranks, batch)))
    whole = len(order) // batch * batch
    np.testing.assert_array_equal(found[whole:], order[whole:])
    for first in range(0, whole, batch):
        here, before = found[first : first + batch], order[first : first + batch]
        assert sorted(here.tolist()) == sorted(before.tolist())
        dealt = dealt_in(STEP, costs[before][None], ranks)[0]
        for rank in range(ranks):
            np.testing.assert_array_equal(here[rank::ranks], before[dealt[rank]])
