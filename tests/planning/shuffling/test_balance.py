"""Rows dealt to ranks: all of them, equally many each, and never so that a step takes longer than undealt."""

from itertools import permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from packtool.planning import packing
from packtool.planning.packing import PackOptions
from packtool.planning.plan import INSERTED_EOS, PADDING
from packtool.planning.shuffling.balance import (
    STEP,
    TURN,
    as_they_come,
    deal,
    deal_turns,
    dealt_in,
    pairs_of,
    time_taken,
)
from tests.examples import examples
from tests.segments import segments


@st.composite
def batches(draw: st.DrawFn, most_rows: int = 6) -> tuple[np.ndarray[Any, Any], int]:
    """Costs of the rows of some batches, and a number of ranks that divides them."""
    ranks, each = draw(st.integers(1, 5)), draw(st.integers(1, most_rows))
    cost = st.one_of(st.integers(0, 3), st.integers(0, 1 << 33))
    row = st.lists(cost, min_size=ranks * each, max_size=ranks * each)
    return np.array(draw(st.lists(row, min_size=1, max_size=3)), np.int64), ranks


@examples(200)
@given(drawn=batches(), micro=st.integers(1, 7))
def test_every_row_is_dealt_once_and_ranks_have_equally_many(drawn: tuple[Any, int], micro: int) -> None:
    costs, ranks = drawn
    for dealt in (deal(costs, ranks), deal_turns(costs, ranks, micro), as_they_come(costs, ranks)):
        assert dealt.shape == (len(costs), ranks, costs.shape[1] // ranks)
        for batch in dealt:
            assert sorted(batch.reshape(-1).tolist()) == list(range(costs.shape[1]))


@examples(100)
@given(drawn=batches(), other=batches())
def test_a_batch_is_dealt_the_same_whatever_is_dealt_with_it(drawn: tuple[Any, int], other: tuple[Any, int]) -> None:
    costs, ranks = drawn
    for way in (STEP, TURN):
        alone = np.concatenate([dealt_in(way, batch[None], ranks, 2) for batch in costs])
        np.testing.assert_array_equal(dealt_in(way, costs, ranks, 2), alone)


def naive(costs: list[int], ranks: int) -> list[list[int]]:
    """Deal turn by turn, the largest row to the rank with the least so far; then let pairs of ranks exchange rows."""
    order = sorted(range(len(costs)), key=lambda row: -costs[row])
    dealt: list[list[int]] = [[] for _ in range(ranks)]

    def load(rank: int) -> int:
        return sum(costs[row] for row in dealt[rank])

    for first in range(0, len(order), ranks):
        for rank, row in zip(sorted(range(ranks), key=load), order[first : first + ranks], strict=True):
            dealt[rank].append(row)
    each = len(costs) // ranks
    if 1 in (ranks, each):
        return dealt
    least = max(sum(costs) // ranks, max(costs) + sum(sorted(costs)[: each - 1]))
    enough, step = least + least // 256, -(-each // 8)
    for cycle in range(8):
        before = max(map(load, range(ranks)))
        if before <= enough:
            break
        apart = ranks // 2
        while apart:
            by_load = sorted(range(ranks), key=load)[ranks % (2 * apart) :]
            for block in range(0, len(by_load), 2 * apart):
                ranked = by_load[block : block + 2 * apart]
                for high, low in zip(ranked[apart:], ranked[:apart][::-1], strict=True):
                    if load(high) > enough:
                        swap(costs, dealt[high], dealt[low], load(high) - load(low), range(cycle % step, each, step))
            apart //= 2
        if max(map(load, range(ranks))) >= before:
            break
    return dealt


def swap(costs: list[int], high: list[int], low: list[int], gap: int, candidates: range) -> None:
    """Try all exchanges of two rows, and make the one that leaves the smallest gap, if it is smaller than before."""
    tried = [(abs(gap - 2 * (costs[high[i]] - costs[low[j]])), i, j) for i in range(len(high)) for j in candidates]
    left, i, j = min(tried)
    if left < gap:
        high[i], low[j] = low[j], high[i]


@examples(200)
@given(drawn=batches(most_rows=10))
def test_as_the_rule_says(drawn: tuple[Any, int]) -> None:
    costs, ranks = drawn
    assert deal(costs, ranks).tolist() == [naive(batch, ranks) for batch in costs.tolist()]


@examples(200)
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
    costs = np.array([[4, 6, 2, 1, 4, 6, 4, 1]])  # 14 and 14 as they come; 13 and 15 by the rule
    assert time_taken(costs, deal(costs, 2)).tolist() == [15]
    assert dealt_in(STEP, costs, 2).tolist() == [[[0, 2, 4, 6], [1, 3, 5, 7]]]


@examples(30)
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
        pieces = segments([[(document, 0, length, 0) for document, length in row] for row in rows])
        for row, pairs in zip(rows, pairs_of(pieces).tolist(), strict=True):
            owner: list[int] = []
            for number, (document, length) in enumerate(row):
                goes_on = document == INSERTED_EOS or (document == PADDING and number and row[number - 1][0] == PADDING)
                owner += [owner[-1] if goes_on else number] * length
            expected = sum(owner[i] == owner[j] for i in range(len(owner)) for j in range(i + 1))
            assert pairs == expected


@pytest.mark.parametrize(
    ("sigma", "length", "ranks", "undealt", "most"),
    [
        (1.6, 131_072, 64, 0.45, 0.005),
        (1.0, 32_768, 64, 0.45, 0.025),  # the longest document is as much as a rank should have in all
        (1.0, 131_072, 8, 0.1, 0.005),
    ],
)
def test_waiting_for_long_rows(sigma: float, length: int, ranks: int, undealt: float, most: float) -> None:
    """Batches of 512 rows, of documents of lognormal lengths."""
    generator = np.random.default_rng(7)
    documents = 16 * 512 * length // int(1500 * np.exp(sigma**2 / 2))
    lengths = np.minimum(np.exp(generator.normal(np.log(1500), sigma, documents)), 400_000).astype(np.int64) + 1
    (plan,) = packing.plan("bfd", lengths, PackOptions(sequence_length=length, mix_rows=False))
    pairs = pairs_of(plan.segments(np.arange(plan.rows)))
    generator.shuffle(pairs)
    costs = pairs[: len(pairs) // 512 * 512].reshape(-1, 512)
    mean = costs.sum(axis=1) / ranks
    assert (1 - mean / time_taken(costs, as_they_come(costs, ranks))).mean() > undealt
    assert (1 - mean / time_taken(costs, dealt_in(STEP, costs, ranks))).mean() < most
    turns = time_taken(costs, dealt_in(TURN, costs, ranks, 1), TURN)
    np.testing.assert_array_equal(turns, np.sort(costs, axis=1)[:, ranks - 1 :: ranks].sum(axis=1))
