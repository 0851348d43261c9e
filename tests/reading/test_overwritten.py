"""A dataset that is overwritten while it is read: the old rows, or an error that says so; never rows of the other."""

import pickle
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import packtool
from packtool.errors import DataError
from packtool.reading.batches import GlobalBatches
from packtool.reading.stream import Stream
from tests.making import Make, drawn_lengths
from tests.stores import write_store

LENGTHS = drawn_lengths(100, 59, 3, 1)
Pack = Callable[[int], None]


ROWS = {"strategy": "bfd", "sequence_length": 32}
SEVERAL = {"strategy": "buckets", "buckets": (16, 32, 64)}


@pytest.fixture(params=[ROWS, {**ROWS, "index_only": True}, SEVERAL], ids=["rows", "index-only", "several"])
def pack(request: pytest.FixtureRequest, make: Make, tmp_path: Path) -> Pack:
    """Write the dataset in `rows`, in many shards; the same documents in another order with another seed."""
    make(LENGTHS, at=tmp_path)

    def call(seed: int) -> None:
        options = {**request.param, "shard_tokens": 256, "seed": seed}
        packtool.pack(tmp_path / "store", tmp_path / "rows", **options, overwrite=True)

    call(1)
    return call


def stream_of(tmp_path: Path) -> Stream:
    several = any((tmp_path / "rows").glob("bucket-*"))
    return Stream(tmp_path / "rows", epochs=2, batch_tokens=128 if several else None)


def read(batches: GlobalBatches, stream: Stream) -> Iterator[list[Any]]:
    for turn in batches:
        yield stream.batch(turn.addresses, turn.length)["input_ids"].tolist()


@pytest.mark.parametrize("at", [0, 1, 7])
@pytest.mark.parametrize("worker", [False, True])
def test_rows_are_the_old_ones_until_it_is_noticed(tmp_path: Path, pack: Pack, at: int, worker: bool) -> None:
    """In this process, or in a worker that opens the dataset late."""
    expected = list(read(GlobalBatches(stream_of(tmp_path)), stream_of(tmp_path)))
    stream = stream_of(tmp_path)
    reader = pickle.loads(pickle.dumps(stream)) if worker else stream
    found = []
    with pytest.raises(DataError) as caught:
        for number, rows in enumerate(read(GlobalBatches(stream), reader)):
            found.append(rows)
            if number == at:
                pack(2)
    assert caught.value.code == "dataset-changed"
    assert f"{tmp_path / 'rows'}: changed since it was opened: its manifest is another." in str(caught.value)
    assert len(found) > at
    assert found == expected[: len(found)]


def test_another_epoch_and_a_gone_dataset(tmp_path: Path, pack: Pack) -> None:
    dataset = packtool.open(tmp_path / "rows")
    options: Any = {} if hasattr(dataset, "rows") else {"batch_tokens": 128}
    copy = pickle.dumps(dataset.epoch(1, **options))
    pack(2)
    calls: list[Callable[[], object]] = [lambda: dataset.epoch(1, **options), lambda: pickle.loads(copy)]
    for call in calls:
        with pytest.raises(DataError, match="changed since it was opened: its manifest is another"):
            call()
    pack(1)
    for call in calls:
        call()  # the same bytes are the same dataset
    (tmp_path / "rows" / "manifest.json").unlink()
    for call in calls:
        with pytest.raises(DataError) as caught:
            call()
        assert caught.value.code in ("no-manifest", "dataset-changed")


def test_a_store_that_rows_are_gathered_from(make: Make, tmp_path: Path) -> None:
    make(LENGTHS, at=tmp_path, rows={**ROWS, "index_only": True})
    copy = pickle.dumps(Stream(tmp_path / "rows"))
    shutil.rmtree(tmp_path / "store")
    write_store(tmp_path / "store", LENGTHS[::-1])
    with pytest.raises(DataError, match="not the token store that the rows were planned from, or changed since"):
        pickle.loads(copy).source(0).epoch(0)
