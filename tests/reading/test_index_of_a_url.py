"""Datasets without tokens in object stores: rows gathered from stores that lie there, by ranges or by whole shards."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest

import packtool
from packtool.errors import DataError, UsageError
from packtool.formats import manifest as manifests
from packtool.formats.schema import listed_files
from tests.places.s3_server import Bucket
from tests.stores import contents, document_loss, write_store
from tests.writing.cases import require_same

LENGTHS = [5, 17, 2, 40, 9, 33, 8, 3, 12] * 6
URL, STORE = "s3://bucket/runs/index", "s3://bucket/store"
OPTIONS = {"strategy": "bfd", "sequence_length": 16, "shard_tokens": 256}


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """The rows with their tokens and which of them train, and without, in this directory."""
    write_store(tmp_path / "store", LENGTHS, loss=document_loss)
    packtool.pack(tmp_path / "store", tmp_path / "whole", **OPTIONS)
    packtool.pack(tmp_path / "store", tmp_path / "index", **OPTIONS, index_only=True)
    return tmp_path


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch, here: Path) -> Bucket:
    made = Bucket(monkeypatch)
    made.put_all(here / "store", "store")
    return made


def test_what_is_packed_there_names_its_store_as_seen_from_it(bucket: Bucket, here: Path, tmp_path: Path) -> None:
    packtool.pack("s3://bucket/store", URL, **OPTIONS, index_only=True)
    manifest = manifests.read(URL)
    assert isinstance(manifest, manifests.PackedManifest)
    assert manifest.stores == ["../../store"]
    with pytest.raises(
        DataError, match=r"names a token store that is not in the directory .*: \.\./\.\./store\. If you"
    ):
        packtool.open(URL, cache=tmp_path / "cache")
    assert not [name for name in bucket.names("runs/index") if name.startswith("tokens-")]
    require_same(packtool.open(URL, cache=tmp_path / "cache", stores=STORE), packtool.open(here / "whole"))
    assert packtool.verify(URL, store=STORE).problems == []
    assert packtool.show(URL, 3, store=STORE).segments == packtool.show(here / "whole", 3).segments
    packtool.materialize(URL, here / "written", store=STORE)
    assert contents(here / "written") == contents(here / "whole")
    packtool.shuffle(URL, here / "shuffled", epoch=1, store=STORE)
    packtool.shuffle(here / "whole", here / "expected", epoch=1)
    assert contents(here / "shuffled") == contents(here / "expected")


@pytest.mark.parametrize("fetch", ["shards", "rows"])
def test_rows_of_a_url_are_those_with_tokens(bucket: Bucket, here: Path, fetch: str) -> None:
    bucket.put_all(here / "index", "index")
    there = packtool.open("s3://bucket/index", cache=here / "cache", fetch=fetch)
    whole = packtool.open(here / "whole")
    require_same(there, whole)
    require_same(there.epoch(4), whole.epoch(4))
    of_store = manifests.read(here / "store")
    tokens = {each.xxh3_128 for each in listed_files(of_store) if "tokens-" in each.name}
    kept = {file.name for file in (here / "cache").rglob("*")}
    assert bool(kept & tokens) == (fetch == "shards")


def test_a_batch_by_ranges_takes_a_few_requests(bucket: Bucket, here: Path) -> None:
    bucket.put_all(here / "index", "index")
    dataset = packtool.open("s3://bucket/index", cache=here / "cache", fetch="rows")
    dataset.batch(np.arange(len(dataset)))  # the first of a shard reads its header, too
    bucket.requests.clear()
    dataset.batch(np.arange(0, len(dataset), 3))
    assert len(bucket.requests) < len(dataset) / 2


@pytest.mark.parametrize("kind", ["tokens", "loss"])
def test_the_shards_of_a_batch_are_asked_at_the_same_time(bucket: Bucket, here: Path, kind: str) -> None:
    bucket.put_all(here / "index", "index")
    dataset = packtool.open("s3://bucket/index", cache=here / "cache", fetch="rows")
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


def test_a_store_that_changed_or_is_gone_is_named(bucket: Bucket, here: Path, tmp_path: Path) -> None:
    bucket.put_all(here / "index", "index")
    other = write_store(tmp_path / "other", LENGTHS[::-1])
    damaged = (here / "store" / "manifest.json").read_bytes() + b" "
    for manifest, message in [
        (
            (other / "manifest.json").read_bytes(),
            "s3://bucket/store: not the token store .* Say where it lies now, with",
        ),
        (damaged, "s3://bucket/store/manifest.json: changed since it was written: its own checksum differs"),
    ]:
        bucket.put("store/manifest.json", manifest)
        with pytest.raises(DataError, match=message):
            packtool.open("s3://bucket/index", cache=tmp_path / "cache")
    found = packtool.open("s3://bucket/index", cache=tmp_path / "cache", stores=here / "store")
    require_same(found, packtool.open(here / "whole"))


def test_a_store_that_stays_here_is_refused(bucket: Bucket, here: Path) -> None:
    with pytest.raises(
        UsageError, match="a dataset without tokens in an object store needs its token stores in one, too"
    ):
        packtool.pack(here / "store", URL, **OPTIONS, index_only=True)
