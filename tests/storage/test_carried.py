"""Datasets that are sent to other processes."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from packtool.errors import DataError
from packtool.places.quota import Quota
from packtool.storage import carried
from packtool.storage.carried import FromStore, arrived, forget_fetched
from packtool.storage.remote import mirror
from packtool.storage.token_store import Corpus
from tests.places.bucket import Bucket
from tests.stores import write_store


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Bucket:
    made = Bucket(monkeypatch)
    made.put_all(write_store(tmp_path / "store", [5, 6, 7] * 7), "store")
    return made


def test_a_local_dataset_is_its_path(tmp_path: Path) -> None:
    assert carried.carried(tmp_path) == tmp_path
    assert arrived(tmp_path) == tmp_path


def test_one_in_a_store_is_fetched_anew_by_each_process_and_run(bucket: Bucket, tmp_path: Path) -> None:
    made = mirror("s3://bucket/store", tmp_path / "stage", quota=Quota(20_000))
    corpus = Corpus([made.path])
    sent = pickle.dumps(corpus)
    there = pickle.loads(sent)
    path = there.stores[0].path
    assert path != made.path
    assert there.shards[2].tolist() == Corpus([tmp_path / "store"]).shards[2].tolist()
    assert [each.name for each in path.glob("tokens-*")] == ["tokens-00002.npy"]
    assert pickle.loads(sent).stores[0].path == path
    place = carried.carried(made.path)
    assert isinstance(place, FromStore)
    other = arrived(FromStore(place.url, place.version, place.limit, "another run"))
    assert other != path
    assert not path.exists()
    forget_fetched()
    assert not other.exists()


def test_another_dataset_at_the_url_is_refused(bucket: Bucket, tmp_path: Path) -> None:
    place = carried.carried(mirror("s3://bucket/store", tmp_path / "stage", quota=Quota(20_000)).path)
    bucket.put_all(write_store(tmp_path / "other", [9] * 7), "store")
    with pytest.raises(DataError, match=r"s3://bucket/store: has been replaced since the command began\. Run"):
        arrived(place)
    forget_fetched()
