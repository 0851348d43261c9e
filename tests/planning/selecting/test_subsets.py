"""Laws of sides: every copy of a text on the same one, shares as they are asked for."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from packtool.planning.selecting.subsets import bound_of_number, bound_of_share, first_of_each, held_out, in_shard

LENGTHS = st.lists(st.integers(1, 50), min_size=1, max_size=60).map(np.array)


@given(st.lists(st.integers(0, 20), min_size=1, max_size=80), st.integers(0, 9), st.fractions(0, 1), st.integers(1, 40))
def test_copies_are_on_the_same_side_in_any_store(texts: list[int], seed: int, share: Fraction, count: int) -> None:
    hashes = np.array(texts, np.uint64)
    lengths = np.arange(1, len(texts) + 1)
    bound = bound_of_share(share)
    held = held_out(hashes, seed=seed, bound=bound)
    alone = [held_out(hashes[n : n + 1], seed=seed, bound=bound)[0] for n in range(len(texts))]
    assert held.tolist() == alone
    more = bound_of_share(min(Fraction(1), share + Fraction(1, 10)))
    assert (held <= held_out(hashes, seed=seed, bound=more)).all()
    for by_tokens in (False, True):
        weights = lengths if by_tokens else np.ones(len(texts), np.int64)
        number = bound_of_number(lambda weights=weights: iter([(hashes, weights)]), count, seed=seed)
        by_number = held_out(hashes, seed=seed, bound=number)
        sides: dict[int, bool] = {}
        for text, side in zip(texts, by_number.tolist(), strict=True):
            assert sides.setdefault(text, side) == side
        assert int(weights[by_number].sum()) >= min(count, int(weights.sum()))
    shards = [in_shard(hashes, number, count) for number in range(1, count + 1)]
    assert (np.sum(shards, axis=0) == 1).all()
    half = len(texts) // 2
    spread = hashes * np.uint64(0x9E3779B97F4A7C15)  # over all groups of hashes, as hashes are
    for most in (1 << 22, 5):
        wanted = np.flatnonzero(hashes != 3)
        parts = [wanted[wanted < half], wanted[wanted >= half]]
        first = np.flatnonzero(
            first_of_each(lambda parts=parts: ((spread[n], n) for n in parts), len(texts), most=most)
        )
        assert [texts[n] for n in first] == [text for text in dict.fromkeys(texts) if text != 3]


def test_shares_are_what_they_say() -> None:
    hashes = np.arange(200_000, dtype=np.uint64)
    for share in (0.005, 0.3):
        held = held_out(hashes, seed=1, bound=bound_of_share(Fraction(str(share))))
        assert abs(held.mean() - share) < 5 * (share / len(hashes)) ** 0.5
    assert abs(in_shard(hashes, 2, 4).mean() - 0.25) < 0.01
    both = held_out(hashes, seed=1, bound=bound_of_share(Fraction("0.3"))) & in_shard(hashes, 2, 4)
    assert abs(both.mean() - 0.075) < 0.01
