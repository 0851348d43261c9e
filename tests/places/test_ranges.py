"""Ranges of objects: what is asked for, by few requests."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from packtool.errors import DataError
from packtool.places.ranges import GAP_BYTES, RangeReader, spans
from packtool.places.transfer import PART_BYTES
from tests.places.bucket import Bucket

DATA = np.random.default_rng(1).integers(0, 256, 1 << 20, np.uint8).tobytes()


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Bucket:
    made = Bucket(monkeypatch)
    made.put("a", DATA)
    return made


@given(st.lists(st.integers(0, 1 << 25), min_size=1, max_size=40, unique=True), st.integers(1, 1 << 20))
def test_requests_cover_every_range_and_join_only_neighbours(first: list[int], width: int) -> None:
    places = np.array(sorted(first))
    begin, size, request = spans(places, np.full(len(places), width))
    assert (begin[request] <= places).all()
    assert (places + width <= (begin + size)[request]).all()
    assert (size <= PART_BYTES + 2 * width + GAP_BYTES).all()
    gaps = places[1:] - (places[:-1] + width)
    assert (gaps[request[1:] == request[:-1]] <= GAP_BYTES).all()
    assert (np.diff(request) >= 0).all()


def test_neighbours_are_read_by_one_request() -> None:
    first = np.array([0, 100, 200, 200 + 2 * GAP_BYTES])
    begin, size, request = spans(first, np.full(4, 100))
    assert begin.tolist() == [0, 200 + 2 * GAP_BYTES]
    assert size.tolist() == [300, 100]
    assert request.tolist() == [0, 0, 0, 1]


def test_ranges_come_in_the_order_in_which_they_are_asked_for(bucket: Bucket) -> None:
    reader = RangeReader("s3://bucket/a")
    first = np.array([700_000, 5, 0, 5, 999_000])
    found = reader.take(first, 64)
    assert [row.tobytes() for row in found] == [DATA[place : place + 64] for place in first]
    assert reader.range(17, 900_000).tobytes() == DATA[17:900_017]
    assert bucket.requests.count(("get", "bucket/a")) == 1  # opened once
    assert pickle.loads(pickle.dumps(reader)).range(0, 3).tobytes() == DATA[:3]


def test_what_fails_now_and_then_is_asked_again_and_what_is_gone_is_told(bucket: Bucket) -> None:
    bucket.failures += [OSError("AWS Error SLOW_DOWN"), OSError("AWS Error SLOW_DOWN")]
    assert RangeReader("s3://bucket/a").read(0, 4) == DATA[:4]
    with pytest.raises(DataError) as error:
        RangeReader("s3://bucket/b").read(0, 4)
    assert (error.value.code, error.value.where) == ("missing-shard", "s3://bucket/b")
    with pytest.raises(DataError, match="fewer bytes than asked for"):
        RangeReader("s3://bucket/a").read(len(DATA) - 2, 4)
