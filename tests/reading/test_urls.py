"""Datasets of object stores, with tokens and without: whole shards in a cache, or rows by ranges."""

import threading
from pathlib import Path

import numpy as np
import pytest

import packtool
from packtool.errors import DataError, UsageError
from packtool.formats import manifest as manifests
from packtool.formats.schema import listed_files
from packtool.reading.stream import Stream
from tests.making import Make
from tests.places.s3_server import Bucket
from tests.reading.opening import batch_of
from tests.stores import contents, document_loss, write_store
from tests.writing.cases import require_same

LENGTHS = [5, 17, 2, 40, 9, 33, 8, 3, 12] * 6
URL, STORE = "s3://bucket/runs/index", "s3://bucket/store"
OPTIONS = {"strategy": "bfd", "sequence_length": 16, "shard_tokens": 256}


@pytest.fixture(autouse=True)
def place(make: Make, bucket: Bucket) -> Path:
    """A store that says which tokens train, and its rows with their tokens, and without: here and in the bucket."""
    made = make(LENGTHS, {"loss": document_loss}, whole=OPTIONS, index={**OPTIONS, "index_only": True})
    for name in ("store", "whole", "index"):
        bucket.put_all(made / name, name)
    return made


@pytest.mark.parametrize("fetch", ["shards", "rows"])
@pytest.mark.parametrize(("name", "holder"), [("whole", "whole"), ("index", "store")])
def test_rows_of_a_url_are_those_of_the_directory(
    place: Path, tmp_path: Path, name: str, holder: str, fetch: str
) -> None:
    there = packtool.open(f"s3://bucket/{name}", cache=tmp_path, fetch=fetch)
    whole = packtool.open(place / "whole")
    require_same(there, whole)
    require_same(there.epoch(4), whole.epoch(4))
    files = listed_files(manifests.read(place / holder))
    tokens = {each.xxh3_128 for each in files if "tokens-" in each.name}
    kept = {file.name for file in tmp_path.rglob("*")}
    assert bool(kept & tokens) == (fetch == "shards")


def test_a_stream_passes_it_on(place: Path, tmp_path: Path) -> None:
    there = Stream("s3://bucket/whole", epochs=2, cache=tmp_path, fetch="rows")
    here = Stream(place / "whole", epochs=2)
    keys = [len(here) - 1, 0, 8]
    assert (batch_of(there, keys)["input_ids"] == batch_of(here, keys)["input_ids"]).all()
    with pytest.raises(UsageError, match="fetch: 'row' is not a known value"):
        packtool.open(place / "whole", fetch="row")


def test_rows_by_ranges_take_a_few_requests(bucket: Bucket, tmp_path: Path) -> None:
    """Where the first of a shard has read its header, too."""
    dataset = packtool.open("s3://bucket/whole", cache=tmp_path, fetch="rows")
    dataset[0]
    bucket.requests.clear()
    dataset[3]
    assert [path for method, path in bucket.requests if method == "get"] == ["whole/tokens-00000.npy"]
    index = packtool.open("s3://bucket/index", cache=tmp_path, fetch="rows")
    index.batch(np.arange(len(index)))
    bucket.requests.clear()
    index.batch(np.arange(0, len(index), 3))
    assert len(bucket.requests) < len(index) / 2


@pytest.mark.parametrize("kind", ["tokens", "loss"])
def test_the_shards_of_a_batch_are_asked_at_the_same_time(bucket: Bucket, tmp_path: Path, kind: str) -> None:
    dataset = packtool.open("s3://bucket/index", cache=tmp_path, fetch="rows")
    rows = np.arange(len(dataset))
    expected = dataset.batch(rows, fields=("input_ids", "loss_mask"))
    asked, two, met = set(), threading.Event(), []

    def hold(method: str, key: str) -> None:
        if key.startswith(f"store/{kind}-"):
            asked.add(key)
            if len(asked) > 1:
                two.set()
            met.append(two.wait(20))

    bucket.hold = hold
    found = dataset.batch(rows, fields=("input_ids", "loss_mask"))
    assert met
    assert all(met)
    for name, values in expected.items():
        np.testing.assert_array_equal(found[name], values)


@pytest.mark.parametrize("fetch", ["rows", "shards"])
def test_an_overwritten_url_is_noticed(bucket: Bucket, place: Path, tmp_path: Path, fetch: str) -> None:
    """Read by ranges nothing is checked by a checksum, so the manifest is looked at after each read."""
    expected = packtool.open(place / "whole")[:].tolist()
    packtool.pack(place / "store", tmp_path / "other", **OPTIONS, seed=9)
    there = packtool.open("s3://bucket/whole", cache=tmp_path / "cache", fetch=fetch)
    assert there[0].tolist() == expected[0]
    bucket.put_all(tmp_path / "other", "whole")
    for read in (lambda: there[len(there) - 1], lambda: there.batch([len(there) - 2]), lambda: there.epoch(1)):  # type: ignore[union-attr]
        with pytest.raises(DataError) as caught:
            read()
        assert caught.value.code == "dataset-changed"


def test_what_is_packed_there_names_its_store_as_seen_from_it(bucket: Bucket, place: Path, tmp_path: Path) -> None:
    packtool.pack(STORE, URL, **OPTIONS, index_only=True)
    manifest = manifests.read(URL)
    assert isinstance(manifest, manifests.PackedManifest)
    assert manifest.stores == ["../../store"]
    with pytest.raises(
        DataError, match=r"names a token store that is not in the directory .*: \.\./\.\./store\. If you"
    ):
        packtool.open(URL, cache=tmp_path / "cache")
    assert not [name for name in bucket.names("runs/index") if name.startswith("tokens-")]
    require_same(packtool.open(URL, cache=tmp_path / "cache", stores=STORE), packtool.open(place / "whole"))
    assert packtool.verify(URL, store=STORE).problems == []
    assert packtool.show(URL, 3, store=STORE).segments == packtool.show(place / "whole", 3).segments
    packtool.materialize(URL, tmp_path / "written", store=STORE)
    assert contents(tmp_path / "written") == contents(place / "whole")
    packtool.shuffle(URL, tmp_path / "shuffled", epoch=1, store=STORE)
    packtool.shuffle(place / "whole", tmp_path / "expected", epoch=1)
    assert contents(tmp_path / "shuffled") == contents(tmp_path / "expected")
    with pytest.raises(
        UsageError, match="a dataset without tokens in an object store needs its token stores in one, too"
    ):
        packtool.pack(place / "store", URL, **OPTIONS, index_only=True)


def test_a_store_that_changed_or_is_gone_is_named(bucket: Bucket, place: Path, tmp_path: Path) -> None:
    other = write_store(tmp_path / "other", LENGTHS[::-1])
    damaged = (place / "store" / "manifest.json").read_bytes() + b" "
    for manifest, message in [
        ((other / "manifest.json").read_bytes(), f"{STORE}: not the token store .* Say where it lies now, with"),
        (damaged, f"{STORE}/manifest.json: changed since it was written: its own checksum differs"),
    ]:
        bucket.put("store/manifest.json", manifest)
        with pytest.raises(DataError, match=message):
            packtool.open("s3://bucket/index", cache=tmp_path / "cache")
    found = packtool.open("s3://bucket/index", cache=tmp_path / "cache", stores=place / "store")
    require_same(found, packtool.open(place / "whole"))
