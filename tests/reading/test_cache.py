"""Datasets of object stores: whole shards in a cache, or rows by ranges."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import packtool
from packtool.errors import DataError, UsageError
from packtool.formats import manifest as manifests
from packtool.formats.schema import listed_files
from packtool.reading.stream import Stream
from tests.places.s3_server import Bucket
from tests.reading.opening import batch_of
from tests.stores import write_store

LENGTHS = [5, 17, 2, 40, 9, 33, 8, 3, 12] * 6
URL = "s3://bucket/packed"


@pytest.fixture
def packed(tmp_path: Path) -> Path:
    write_store(tmp_path / "store", LENGTHS)
    packtool.pack(tmp_path / "store", tmp_path / "packed", strategy="bfd", sequence_length=16, shard_tokens=256)
    return tmp_path / "packed"


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch, packed: Path) -> Bucket:
    made = Bucket(monkeypatch)
    made.put_all(packed, "packed")
    return made


@pytest.mark.parametrize("fetch", ["shards", "rows"])
def test_rows_of_a_url_are_those_of_the_directory(bucket: Bucket, packed: Path, tmp_path: Path, fetch: str) -> None:
    here = packtool.open(packed)
    there = packtool.open(URL, cache=tmp_path / "cache", fetch=fetch)
    rows = np.array([len(here) - 1, 0, 7, 7, 30])
    assert (there[:] == here[:]).all()
    assert (there[rows] == here[rows]).all()
    assert (there[5] == here[5]).all()
    assert (there.segments(9) == here.segments(9)).all()
    for name, values in here.batch(rows).items():
        assert np.array_equal(there.batch(rows)[name], values), name
    assert (there.epoch(4)[:] == here.epoch(4)[:]).all()
    manifest = manifests.read(packed)
    tokens = {each.xxh3_128 for each in listed_files(manifest) if "tokens-" in each.name or "segments-" in each.name}
    kept = {file.name for file in (tmp_path / "cache").rglob("*")}
    assert bool(kept & tokens) == (fetch == "shards")


def test_a_row_by_ranges_takes_a_few_requests(bucket: Bucket, tmp_path: Path) -> None:
    dataset = packtool.open(URL, cache=tmp_path, fetch="rows")
    dataset[0]  # the first of a shard reads its header, too
    bucket.requests.clear()
    dataset[3]
    assert [path for method, path in bucket.requests if method == "get"] == ["packed/tokens-00000.npy"]


def test_what_else_could_be_fetched_is_refused(packed: Path) -> None:
    with pytest.raises(UsageError, match="fetch: 'row' is not a known value"):
        packtool.open(packed, fetch="row")


def test_a_stream_passes_it_on(bucket: Bucket, packed: Path, tmp_path: Path) -> None:
    there = Stream(URL, epochs=2, cache=tmp_path / "cache", fetch="rows")
    here = Stream(packed, epochs=2)
    keys = [len(here) - 1, 0, 8]
    assert (batch_of(there, keys)["input_ids"] == batch_of(here, keys)["input_ids"]).all()


def test_verify_reads_a_url_through_the_cache_and_finds_damage(bucket: Bucket) -> None:
    found = packtool.verify(URL)
    assert found.problems == []
    assert found.tokens > 256
    data = bucket.get("packed/tokens-00001.npy")
    bucket.put("packed/tokens-00001.npy", data[:-1] + bytes([data[-1] ^ 1]))
    (problem,) = packtool.verify(URL).problems
    assert isinstance(problem, DataError)
    assert (problem.code, problem.where) == ("wrong-checksum", f"{URL}/tokens-00001.npy")


@pytest.mark.parametrize("fetch", ["rows", "shards"])
def test_an_overwritten_url_is_noticed(bucket: Bucket, packed: Path, tmp_path: Path, fetch: str) -> None:
    """Read by ranges nothing is checked by a checksum, so the manifest is looked at after each read."""
    expected = packtool.open(packed)[:].tolist()
    packtool.pack(packed.parent / "store", tmp_path / "other", strategy="bfd", sequence_length=16, seed=9)
    there = packtool.open(URL, cache=tmp_path / "cache", fetch=fetch)
    assert there[0].tolist() == expected[0]
    bucket.put_all(tmp_path / "other", "packed")
    for read in (lambda: there[len(there) - 1], lambda: there.batch([len(there) - 2]), lambda: there.epoch(1)):  # type: ignore[union-attr]
        with pytest.raises(DataError) as caught:
            read()
        assert caught.value.code == "dataset-changed"
