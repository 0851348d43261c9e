"""Laws of choosing documents: nearest to what was asked, nested, the same for every copy of a text."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from packtool.errors import UsageError
from packtool.selecting.mixture import epochs_of, passes
from packtool.selecting.sides import first_of_each, held_out, in_shard

LENGTHS = st.lists(st.integers(1, 50), min_size=1, max_size=60).map(np.array)
EPOCHS = st.fractions(0, 4, max_denominator=100)


@given(LENGTHS, EPOCHS, st.integers(0, 5), st.data())
def test_a_mixture_is_within_a_document_of_what_is_asked(
    lengths: Any, epochs: Fraction, seed: int, data: st.DataObject
) -> None:
    kept = np.array(data.draw(st.lists(st.sampled_from(range(len(lengths))), unique=True, min_size=1)))
    kept.sort()
    chosen = passes(lengths, kept, epochs, seed)
    wanted = epochs * int(lengths[kept].sum())
    assert abs(int(lengths[chosen].sum()) - wanted) <= Fraction(int(lengths[kept].max()), 2)
    times = np.bincount(chosen, minlength=len(lengths))
    assert set(times[kept]) <= {int(epochs // 1), int(epochs // 1) + 1}
    assert not times[np.setdiff1d(np.arange(len(lengths)), kept)].any()
    whole = len(kept) * int(epochs // 1)
    assert (chosen[:whole] == np.tile(kept, int(epochs // 1))).all()
    assert (np.diff(chosen[whole:]) > 0).all()


@given(LENGTHS, EPOCHS, EPOCHS, st.integers(0, 5))
def test_larger_fractions_hold_all_of_smaller_ones(lengths: Any, a: Fraction, b: Fraction, seed: int) -> None:
    kept = np.arange(len(lengths))
    small, large = (np.bincount(passes(lengths, kept, e, seed), minlength=len(lengths)) for e in sorted((a, b)))
    assert (small <= large).all()


@given(st.lists(st.integers(0, 20), min_size=1, max_size=80), st.integers(0, 9), st.fractions(0, 1), st.integers(1, 40))
def test_copies_are_on_the_same_side_in_any_store(texts: list[int], seed: int, share: Fraction, count: int) -> None:
    hashes = np.array(texts, np.uint64)
    lengths = np.arange(1, len(texts) + 1)
    held = held_out(hashes, lengths, seed=seed, share=share)
    alone = [held_out(hashes[n : n + 1], lengths[:1], seed=seed, share=share)[0] for n in range(len(texts))]
    assert held.tolist() == alone
    assert (held <= held_out(hashes, lengths, seed=seed, share=min(Fraction(1), share + Fraction(1, 10)))).all()
    for by_tokens in (False, True):
        amount = {"tokens": count} if by_tokens else {"documents": count}
        by_number = held_out(hashes, lengths, seed=seed, **amount)  # type: ignore[arg-type]
        sides: dict[int, bool] = {}
        for text, side in zip(texts, by_number.tolist(), strict=True):
            assert sides.setdefault(text, side) == side
        weights = lengths if by_tokens else np.ones(len(texts), np.int64)
        assert int(weights[by_number].sum()) >= min(count, int(weights.sum()))
    shards = [in_shard(hashes, number, count) for number in range(1, count + 1)]
    assert (np.sum(shards, axis=0) == 1).all()
    first = first_of_each(hashes)
    assert [texts[n] for n in np.flatnonzero(first)] == list(dict.fromkeys(texts))


def test_shares_are_what_they_say() -> None:
    hashes = np.arange(200_000, dtype=np.uint64)
    lengths = np.ones(len(hashes), np.int64)
    for share in (0.005, 0.3):
        held = held_out(hashes, lengths, seed=1, share=Fraction(str(share)))
        assert abs(held.mean() - share) < 5 * (share / len(hashes)) ** 0.5
    assert abs(in_shard(hashes, 2, 4).mean() - 0.25) < 0.01
    both = held_out(hashes, lengths, seed=1, share=Fraction("0.3")) & in_shard(hashes, 2, 4)
    assert abs(both.mean() - 0.075) < 0.01


def test_budgets_become_epochs_or_one_clear_error() -> None:
    half = Fraction(1, 2)
    found = epochs_of({"a": half, "b": half}, {"a": 100, "b": 50}, 80, Fraction(1))
    assert found == {"a": Fraction(2, 5), "b": Fraction(4, 5)}
    with pytest.raises(UsageError, match=r"0\.5 of 400 tokens takes 2 epochs of a\. Give .* or --max-epochs 2"):
        epochs_of({"a": half, "b": half}, {"a": 100, "b": 500}, 400, Fraction(1))
    with pytest.raises(UsageError, match=r"the shares sum to 0\.9"):
        epochs_of({"a": half, "b": Fraction("0.4")}, {"a": 100, "b": 500}, 40, Fraction(1))
