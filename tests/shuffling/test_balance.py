"""Rows dealt to ranks: all of them, equally many each, as evenly as exchanging can make it."""

from __future__ import annotations

from itertools import combinations, permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from packtool import packing
from packtool.packing import PackOptions
from packtool.plan import INSERTED_EOS, PADDING, Segments, offsets_of
from packtool.shuffling.balance import (
    CLOSE,
    STEP,
    TURN,
    deal,
    deal_turns,
    dealt_in,
    dealt_order,
    least_waiting,
    pairs_of,
    waiting,
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
    for dealt in (deal(costs, ranks), deal_turns(costs, ranks, micro), dealt_in("", costs, ranks)):
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


@settings(max_examples=200, deadline=None)
@given(drawn=batches())
@example(drawn=(np.array([[0, 1, 2, 2, 3, 3, 3, 7, 7]]), 3))  # two have the largest sum
def test_no_exchange_of_two_rows_would_lower_the_largest_sum(drawn: tuple[Any, int]) -> None:
    costs, ranks = drawn
    for batch, dealt in zip(costs, deal(costs, ranks), strict=True):
        loads = [sum(batch[row] for row in rank) for rank in dealt.tolist()]
        most = max(loads)
        if most * (1 - CLOSE) <= sum(loads) / ranks:
            continue
        high = loads.index(most)
        for other in range(ranks):
            for mine in dealt[high]:
                for theirs in dealt[other] if other != high else []:
                    moved = batch[mine] - batch[theirs]
                    exchanged = [*loads[:high], most - moved, *loads[high + 1 :]]  # others may have as much
                    exchanged[other] += moved
                    assert max(exchanged) >= most - batch.max() * 2.0**-14  # 18 bits compared


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
    if least:
        assert least_waiting(costs, ranks)[0] <= 1 - costs.sum() / ranks / least + 1e-12


@settings(max_examples=30, deadline=None)
@given(costs=st.lists(st.integers(0, 50), min_size=6, max_size=6))
def test_no_turns_of_one_row_wait_less(costs: list[int]) -> None:
    for ranks in (2, 3):
        least = min(sum(max(each[i : i + ranks]) for i in range(0, 6, ranks)) for each in permutations(costs))
        found = np.array([costs])[0][deal_turns(np.array([costs]), ranks)[0]]
        assert found.max(axis=0).sum() == least


def test_waiting_by_hand() -> None:
    costs = np.array([[4, 2, 1, 1]])
    dealt = np.array([[[0, 2], [1, 3]]])  # sums 5 and 3; turns 4, 2 and 1, 1
    assert waiting(costs, dealt)[0] == pytest.approx(1 - 4 / 5)
    assert waiting(costs, dealt, TURN)[0] == pytest.approx(1 - (3 + 1) / (4 + 1))
    assert waiting(costs, dealt, TURN, micro_batch=2)[0] == pytest.approx(1 - 4 / 5)
    assert waiting(np.zeros((1, 4), np.int64), dealt)[0] == 0


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
            if generator.random() < 0.5:
                row.append((PADDING, 3))
            rows.append(row)
        flat = np.array([segment for row in rows for segment in row], np.int64)
        zeros = np.zeros(len(flat), np.int64)
        segments = Segments(flat[:, 0], zeros, flat[:, 1], zeros, offsets_of(np.array([len(row) for row in rows])))
        for row, pairs in zip(rows, pairs_of(segments).tolist(), strict=True):
            owner: list[int] = []
            for number, (document, length) in enumerate(row):
                owner += [-1 if document == PADDING else owner[-1] if document == INSERTED_EOS else number] * length
            expected = sum(owner[i] == owner[j] >= 0 for i in range(len(owner)) for j in range(i + 1))
            assert pairs == expected


def test_long_rows_of_long_tailed_lengths() -> None:
    """512 rows of 131,072 tokens over 64 ranks."""
    generator = np.random.default_rng(7)
    lengths = np.minimum(np.exp(generator.normal(np.log(1500), 1.6, 100_000)), 400_000).astype(np.int64) + 1
    (plan,) = packing.plan("bfd", lengths, PackOptions(sequence_length=131_072))
    pairs = pairs_of(plan.segments(np.arange(plan.rows)))
    generator.shuffle(pairs)
    costs = pairs[: len(pairs) // 512 * 512].reshape(-1, 512)
    assert waiting(costs, dealt_in("", costs, 64)).mean() > 0.4
    assert waiting(costs, deal(costs, 64)).mean() <= 0.001
    turns = waiting(costs, deal_turns(costs, 64), TURN)
    ordered = np.sort(costs, axis=1).reshape(len(costs), 8, 64)
    least = 1 - ordered.mean(axis=2).sum(axis=1) / ordered[:, :, -1].sum(axis=1)
    np.testing.assert_allclose(turns, least)


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
        dealt = deal(costs[before][None], ranks)[0]
        for rank in range(ranks):
            np.testing.assert_array_equal(here[rank::ranks], before[dealt[rank]])
