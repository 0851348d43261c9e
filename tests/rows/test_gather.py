"""Gathering against slicing, at every piece size around the sizes Arrow treats specially."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import packtool.rows.gather as module
from packtool.errors import DataError
from packtool.places.slices import SliceReader
from packtool.planning.plan import INSERTED_EOS, PADDING, offsets_of
from packtool.rows.gather import Copier, Gatherer, Locator
from tests.segments import segments

PAD, EOS = 60001, 60002


class FromShards(SliceReader):
    """Reads slices of arrays in memory as if they were in files."""

    def __init__(self, shards: list[np.ndarray]) -> None:
        self._shards = shards

    def __call__(self, number: np.ndarray, first: np.ndarray, count: np.ndarray) -> list[bytes]:
        return [self._shards[n][at : at + size].tobytes() for n, at, size in zip(number, first, count, strict=True)]


def gatherer(shards: list[np.ndarray], starts: np.ndarray, *, from_files: bool = False) -> Gatherer:
    locate = Locator(shards, lambda d: starts[d])
    fills = {"pad_id": PAD, "eos_id": EOS, "longest_fill": 64}
    return Gatherer(shards, locate, dtype=shards[0].dtype, **fills, read=FromShards(shards) if from_files else None)


@given(
    dtype=st.sampled_from(["<u2", "<u4"]),
    documents=st.lists(st.integers(1, 40), min_size=1, max_size=12),
    cuts=st.sets(st.integers(1, 11)),
    data=st.data(),
)
def test_gathering_is_slicing(dtype: str, documents: list[int], cuts: set[int], data: st.DataObject) -> None:
    starts = offsets_of(np.array(documents, np.int64))
    stream = np.arange(starts[-1]).astype(dtype)
    borders = [0, *(int(starts[c]) for c in sorted(cuts) if c < len(documents)), len(stream)]
    shards = [stream[a:b] for a, b in itertools.pairwise(borders)]
    pieces, expected = [], []
    for _ in range(data.draw(st.integers(0, 12))):
        kind = data.draw(st.sampled_from(["document", "document", "document", "padding", "eos"]))
        if kind == "document":
            d = data.draw(st.integers(0, len(documents) - 1))
            a = data.draw(st.integers(0, documents[d] - 1))
            n = data.draw(st.integers(1, documents[d] - a))
            pieces.append((d, a, n, 0))
            expected.append(stream[starts[d] + a : starts[d] + a + n])
        elif kind == "padding":
            n = data.draw(st.integers(1, 64))
            pieces.append((PADDING, 0, n, 0))
            expected.append(np.full(n, PAD, dtype))
        else:
            pieces.append((INSERTED_EOS, 0, 1, 0))
            expected.append(np.full(1, EOS, dtype))
    times = data.draw(st.sampled_from([1, 100]), label="times")  # a few slices are copied in another way than many
    gather = gatherer(shards, starts, from_files=data.draw(st.booleans()))
    tokens = gather(segments([pieces * times]))
    np.testing.assert_array_equal(tokens, np.concatenate([np.empty(0, dtype), *(expected * times)]))


def test_shards_beyond_the_reach_of_a_view_are_seen_through_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_WINDOW", 64)
    stream = np.arange(1000, dtype="<u2")
    place = np.tile(np.arange(0, 968, 11), 10)
    length = np.full(len(place), 29)
    got = Copier([stream], stream.dtype)(np.zeros(len(place), np.int64), place, length)
    np.testing.assert_array_equal(got, np.concatenate([stream[a : a + 29] for a in place]))


@pytest.mark.parametrize(("start", "length"), [(9, 2), (-1, 2), (10, 1), (3, -1), (1 << 40, 1)])
def test_what_lies_outside_is_refused_and_not_read(start: int, length: int) -> None:
    copy = Copier([np.arange(99, dtype="<u2"), np.arange(10, dtype="<u2")], np.dtype("<u2"))
    array, starts, lengths = (np.full(1000, value) for value in (1, 2, 8))
    assert len(copy(array, starts, lengths)) == 8000
    starts[500], lengths[500] = start, length
    with pytest.raises(DataError, match="a segment lies outside the tokens of every shard") as caught:
        copy(array, starts, lengths)
    assert caught.value.code == "bad-segments"
