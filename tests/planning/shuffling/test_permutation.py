"""The permutation: uniform, the same however it is drawn, and different for every seed, epoch and purpose."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from packtool.planning.arrays import Arrays
from packtool.planning.shuffling.permutation import Purpose, keys, order_by, permutation

FAR = st.sampled_from([0, (1 << 40) + 1]) | st.integers(0, 1 << 60)


@given(far=FAR, first=st.integers(0, 50), count=st.integers(0, 50), seed=st.integers(0, (1 << 64) - 1))
def test_keys_do_not_depend_on_how_they_are_drawn(far: int, first: int, count: int, seed: int) -> None:
    whole = keys(seed, Purpose.ATOM_ORDER, 3, far, first + count)
    np.testing.assert_array_equal(keys(seed, Purpose.ATOM_ORDER, 3, far + first, count), whole[first:])


@given(st.lists(st.integers(0, 5), max_size=40), st.sampled_from([0, 1, 40, 61]))
def test_order_by_is_a_stable_sort(drawn: list[int], shift: int) -> None:
    some = np.array(drawn, np.uint64) << np.uint64(shift)
    np.testing.assert_array_equal(order_by(some), np.argsort(some, kind="stable"))


@given(atoms=st.integers(0, 300), at_once=st.integers(1, 400), first=st.integers(0, 9), seed=st.integers(0, 1 << 63))
def test_a_permutation_does_not_depend_on_how_many_are_sorted_at_a_time(
    atoms: int, at_once: int, first: int, seed: int
) -> None:
    arrays = Arrays()
    arrays.sorted_at_once = at_once
    drawn = permutation(atoms, seed=seed, first=first, arrays=arrays)
    expected = np.argsort(keys(seed, Purpose.ATOM_ORDER, 0, first, atoms), kind="stable")
    np.testing.assert_array_equal(drawn, expected)
    assert drawn.dtype == np.uint32


def test_every_seed_epoch_and_purpose_draws_its_own_keys() -> None:
    seeds = [0, 1, 42, 43, 42 + (1 << 32), 42 << 32, 42 + (1 << 63), (1 << 64) - 1]
    epochs = [0, 1, 2, 42, (1 << 32) - 1]
    purposes = [Purpose.ATOM_ORDER, Purpose.ROTATION, Purpose.BATCH_ORDER]
    drawn = [tuple(keys(*each, 0, 4)) for each in product(seeds, purposes, epochs)]
    # What careless seeding would give: the seed alone, or seed and epoch as a list, which NumPy pads with zeros.
    for seed, epoch in product(seeds, epochs):
        for entropy in (seed, [seed, epoch]):
            drawn.append(tuple(np.random.Philox(np.random.SeedSequence(entropy)).random_raw(4)))
    plain = len(seeds) * len(epochs) * 2
    assert len(set(drawn[:-plain])) == len(drawn) - plain
    assert not set(drawn[:-plain]) & set(drawn[-plain:])


@pytest.mark.parametrize("vary", ["seed", "epoch"])
def test_every_permutation_is_equally_likely(vary: str) -> None:
    orders = [tuple(permutation(4, **{"seed": 42, vary: number})) for number in range(2400)]
    counts = [orders.count(each) for each in sorted(set(orders))]
    assert len(counts) == 24
    assert stats.chisquare(counts).pvalue > 0.001


def test_epochs_are_independent() -> None:
    first = np.concatenate([permutation(50, seed=seed, epoch=0) for seed in range(200)])
    second = np.concatenate([permutation(50, seed=seed, epoch=1) for seed in range(200)])
    assert abs(stats.pearsonr(first, second).statistic) < 0.03  # standard error 0.01
