"""Ranks share every row of a global batch, whatever it costs, without a stream."""

from typing import Literal

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from packtool.reading.sharing import GlobalBatch, Sharing
from tests.examples import examples


@examples(200)
@given(
    rows=st.lists(st.integers(1, 25), min_size=1, max_size=3),
    world=st.integers(1, 5),
    micro=st.none() | st.integers(1, 7),
    balance=st.sampled_from([None, "step", "turn"]),
    fill=st.booleans(),
)
def test_every_row_once(
    rows: list[int], world: int, micro: int | None, balance: Literal["step", "turn"] | None, fill: bool
) -> None:
    batches = []
    for number, count in enumerate(rows):
        addresses = np.stack([np.arange(count)] * 4, axis=1)
        batches.append(GlobalBatch(100 * number, 100 * number + count, 32, addresses))
    ranks = [Sharing(rank, world, micro, balance, fill) for rank in range(world)]
    shares = [sharing.shares(batches, lambda addresses: addresses[:, 3] ** 2) for sharing in ranks]
    for number, batch in enumerate(batches):
        count = rows[number]
        took = [list(sharing.micro_batches(batch, share[number])) for sharing, share in zip(ranks, shares, strict=True)]
        own = [[each.addresses[: len(each.addresses) - each.filled, 3] for each in mine] for mine in took]
        assert sorted(np.concatenate([part for mine in own for part in mine]).tolist()) == list(range(count))
        assert {len(mine) for mine in took} == {ranks[0].count(count)}
        assert list(ranks[0].fewest(count)) == [min(map(len, parts)) for parts in zip(*own, strict=True)]
        for parts in zip(*took, strict=True):
            assert len({(each.consumed, each.ahead) for each in parts}) == 1
            assert not fill or len({len(each.addresses) for each in parts}) == 1
            assert all(each.filled == 0 or not each.addresses[-each.filled :].any() for each in parts), "the first row"
        assert [each.consumed for each in took[0]] == [batch.first] * (len(took[0]) - 1) + [batch.last]
