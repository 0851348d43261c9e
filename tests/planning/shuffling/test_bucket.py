"""The bucket shuffle: batches of rows of one length."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from packtool.errors import UsageError
from packtool.planning.shuffling.bucket import batches


@given(
    rows=st.lists(st.integers(0, 40), min_size=1, max_size=4),
    size=st.integers(1, 4),
    seed=st.integers(0, 99),
    keep_rest=st.booleans(),
)
def test_batches(rows: list[int], size: int, seed: int, keep_rest: bool) -> None:
    buckets = [(2 << number, count) for number, count in enumerate(rows)]
    tokens = size * buckets[-1][0]
    table = batches(buckets, tokens, keep_rest=keep_rest, seed=seed, epoch=0)
    for length, count in buckets:
        mine = np.sort(table[table["bucket"] == length], order="first_row")
        covered = np.concatenate([np.arange(b["first_row"], b["first_row"] + b["rows"]) for b in mine] or [[]])
        expected = count if keep_rest else count - count % (tokens // length)
        np.testing.assert_array_equal(covered, np.arange(expected))
        full = mine["rows"] * length == tokens
        assert full[:-1].all()
        assert keep_rest or full.all()


def test_batches_come_in_random_order() -> None:
    tables = [batches([(2, 8), (4, 8)], 8, keep_rest=True, seed=42, epoch=epoch) for epoch in range(20)]
    assert len({table.tobytes() for table in tables}) > 17  # of 720


def test_batch_tokens_that_do_not_fit() -> None:
    with pytest.raises(
        UsageError, match=r"6 tokens is not a whole number of rows of 4\. Give a multiple of 12"
    ) as caught:
        batches([(2, 1), (3, 1), (4, 1)], 6, keep_rest=True, seed=0, epoch=0)
    assert caught.value.code == "bad-batch-tokens"
