"""The global order of samples: the same for any number of ranks, and after stopping anywhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import packtool
from packtool.errors import DataError, UsageError
from packtool.reading.sampler import GlobalBatches
from packtool.reading.stream import Stream
from tests.stores import write_store

LENGTHS = np.random.default_rng(3).integers(1, 60, 60).tolist()


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("sampler")
    write_store(place / "store", LENGTHS)
    packtool.pack(place / "store", place / "rows", strategy="concat", sequence_length=32)
    packtool.pack(place / "store", place / "buckets", strategy="buckets", buckets=(16, 32, 64))
    return place / "rows"


def dealt(turns: list[list[list[Any]]]) -> list[Any]:
    """The samples of one global batch in order, from what each rank reads of it turn by turn."""
    shares = [[key for keys in rank for key in keys] for rank in turns]
    return [shares[i % len(shares)][i // len(shares)] for i in range(sum(map(len, shares)))]


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_every_world_sees_the_same_batches_from_anywhere(rows: Path, data: st.DataObject) -> None:
    stream = Stream(rows, epochs=data.draw(st.integers(1, 3), label="epochs"))
    size = data.draw(st.sampled_from([4, 8, 12]), label="batch size")
    micro = data.draw(st.sampled_from([None, 1, 2, 3]), label="micro batch size")
    drop = data.draw(st.booleans(), label="drop last")
    seen: list[int] = []
    state: dict[str, Any] = {"samples": 0, "items": stream.items}
    while True:
        world = data.draw(st.sampled_from([1, 2, 4]), label="world size")
        steps = data.draw(st.integers(1, 6), label="global batches")
        ranks = []
        for rank in range(world):
            ranks.append(
                GlobalBatches(stream, size, rank=rank, world_size=world, micro_batch_size=micro, drop_last=drop)
            )
            ranks[-1].load_state_dict(state)
        readers = [iter(each) for each in ranks]
        for _ in range(steps):
            before = ranks[0].consumed
            turns: list[list[list[Any]]] = [[] for _ in ranks]
            while ranks[0].consumed == before:
                taken = [next(reader, None) for reader in readers]
                assert (taken[0] is None) == all(keys is None for keys in taken)
                if taken[0] is None:
                    break
                for mine, keys in zip(turns, taken, strict=True):
                    assert keys is not None
                    assert micro is None or len(keys) <= micro
                    mine.append(keys)
            seen += dealt(turns)
            state = ranks[0].state_dict()
            assert all(each.state_dict() == state for each in ranks)
        if ranks[0].finished:
            break
    whole = len(stream) - (len(stream) % size if drop else 0)
    assert seen == list(range(whole))
    assert ranks[0].left_out == len(stream) - whole


@pytest.mark.parametrize("micro", [None, 3])
@pytest.mark.parametrize("drop", [True, False])
def test_its_length_is_what_it_yields(rows: Path, micro: int | None, drop: bool) -> None:
    for path, size in ((rows, 8), (rows.parent / "buckets", 1)):
        stream = Stream(path, epochs=2, batch_tokens=128 if size == 1 else None, drop_rest=drop)
        for rank in range(2):
            batches = GlobalBatches(stream, size, rank=rank, world_size=2, micro_batch_size=micro, drop_last=drop)
            assert len(list(batches)) == len(batches) > 0
            assert len(list(batches)) == len(batches)  # after the end it begins again


def test_a_state_at_the_end_has_nothing_left(rows: Path) -> None:
    batches = GlobalBatches(Stream(rows), 4)
    list(batches)
    again = GlobalBatches(Stream(rows), 4)
    again.load_state_dict(batches.state_dict())
    assert list(again) == []


def test_rows_of_a_bucket_are_dealt_out(rows: Path) -> None:
    path = rows.parent / "buckets"
    stream = Stream(path, epochs=2, batch_tokens=128)
    worlds = {
        world: [list(GlobalBatches(stream, rank=rank, world_size=world, drop_last=False)) for rank in range(world)]
        for world in (1, 2)
    }
    assert len(worlds[1][0]) == len(worlds[2][0]) == len(worlds[2][1]) == len(stream)
    for number, (only,) in enumerate(zip(*worlds[1], strict=True)):
        assert only == [(number, row) for row in range(stream.rows_of(number))]
        parts = [worlds[2][rank][number] for rank in range(2)]
        found = [key for part in parts for key in part if key[1] >= 0]  # type: ignore[index]
        assert sorted(found) == only
        whole = stream.batch(only)
        for part, rank in zip(parts, range(2), strict=True):
            np.testing.assert_array_equal(stream.batch(part)["input_ids"], whole["input_ids"][rank::2])
    with pytest.raises(UsageError, match=r"batch_tokens: batch \d+ has \d rows, which can't be dealt out evenly to 3"):
        list(GlobalBatches(stream, rank=0, world_size=3))


def test_what_makes_no_sense(rows: Path) -> None:
    stream = Stream(rows)
    for arguments, message in [
        ({"batch_size": 0}, "batch_size: 0 is not a positive number"),
        ({"batch_size": 8, "world_size": 3}, "batch_size: 8 samples can't be dealt out evenly to 3 ranks"),
        ({"rank": 2, "world_size": 2, "batch_size": 2}, "rank: 2 is not a rank of 2"),
        ({"micro_batch_size": 0}, "micro_batch_size: 0 is not a positive number"),
    ]:
        with pytest.raises(UsageError, match=message):
            GlobalBatches(stream, **arguments)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="batch_size: the dataset's batches are the global batches"):
        GlobalBatches(Stream(rows.parent / "buckets", batch_tokens=128), 2)
    with pytest.raises(UsageError, match="epochs: 0 is out of range"):
        Stream(rows, epochs=0)
    with pytest.raises(UsageError, match="orders: there are 1 orders for 2 epochs"):
        Stream(rows, epochs=2, orders=["x"])
    with pytest.raises(UsageError, match="extra_token: a model that shifts labels itself"):
        Stream(rows, labels="same", extra_token=True)
    with pytest.raises(DataError, match="the state is of a dataset of 1 samples, this one has"):
        GlobalBatches(stream).load_state_dict({"samples": 0, "items": 1})
