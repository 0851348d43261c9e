"""Files that are fetched when they are opened."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
import xxhash

from packtool.errors import DataError, names
from packtool.places import mirror
from packtool.places.mirror import Mirror, fetched, size_of
from packtool.places.quota import Quota
from tests.places.bucket import Bucket

FILES = {f"tokens-0000{number}.npy": bytes([number]) * 1000 for number in range(5)} | {"manifest.json": b"{}"}


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Bucket:
    made = Bucket(monkeypatch)
    for name, data in FILES.items():
        made.put(f"set/{name}", data)
    return made


def opened(path: Path, limit: int | None = None) -> Mirror:
    made = Mirror("s3://bucket/set", path / "set", None if limit is None else Quota(limit))
    made.expect(
        {name: (len(data), xxhash.xxh3_128_hexdigest(data)) for name, data in FILES.items() if name != "manifest.json"}
    )
    return made


def test_a_file_is_fetched_once(bucket: Bucket, tmp_path: Path) -> None:
    made = opened(tmp_path)
    file = made.path / "tokens-00001.npy"
    assert size_of(file) == 1000
    assert not file.exists()
    assert fetched(file)
    assert file.read_bytes() == FILES[file.name]
    before = len(bucket.requests)
    made.fetch(file.name)
    assert len(bucket.requests) == before
    assert not fetched(made.path / "none.npy")
    assert not fetched(tmp_path / "elsewhere.npy")
    assert size_of(made.path / "none.npy") is None
    assert names[str(made.path)] == "s3://bucket/set"


def test_many_threads_fetch_a_file_once(bucket: Bucket, tmp_path: Path) -> None:
    made = opened(tmp_path)
    threads = [threading.Thread(target=made.fetch, args=("tokens-00002.npy",)) for _ in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert [path for method, path in bucket.requests if method == "get"] == ["bucket/set/tokens-00002.npy"]


def test_all_files_are_fetched_together(bucket: Bucket, tmp_path: Path) -> None:
    made = opened(tmp_path)
    made.fetch_all()
    for name, data in FILES.items():
        if name != "manifest.json":
            assert (made.path / name).read_bytes() == data


def test_what_was_fetched_first_makes_room(bucket: Bucket, tmp_path: Path) -> None:
    made = opened(tmp_path, 2500)
    for name in FILES:
        made.fetch(name)
    assert sorted(file.name for file in made.path.glob("[a-z]*")) == [
        "manifest.json",
        "tokens-00003.npy",
        "tokens-00004.npy",
    ]


@pytest.mark.parametrize(
    ("data", "code"), [(b"\1" * 999 + b"\2", "wrong-checksum"), (b"\1" * 999, "wrong-size"), (None, "missing-shard")]
)
def test_an_object_that_is_not_what_the_manifest_says_is_refused(
    data: bytes | None, code: str, bucket: Bucket, tmp_path: Path
) -> None:
    if data is None:
        bucket.delete_file("bucket/set/tokens-00001.npy")
    else:
        bucket.put("set/tokens-00001.npy", data)
    made = opened(tmp_path)
    with pytest.raises(DataError) as error:
        made.fetch_all()
    assert (error.value.code, error.value.where) == (code, "s3://bucket/set/tokens-00001.npy")
    assert not (made.path / "tokens-00001.npy").exists()


def test_too_little_room_is_found_before_anything_is_fetched(
    bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Usage:
        free = 4000

    monkeypatch.setattr("shutil.disk_usage", lambda _: Usage)
    with pytest.raises(DataError, match=r"5 kB are to be fetched, but only 4 kB are free\. Give --staging"):
        opened(tmp_path).fetch_all()
    assert not [path for method, path in bucket.requests if method == "get"]


def test_a_name_that_leads_out_of_the_dataset_is_not_fetched(bucket: Bucket, tmp_path: Path) -> None:
    made = opened(tmp_path)
    made.sizes["../secret"] = 3
    with pytest.raises(FileNotFoundError):
        made.fetch("../secret")
    assert mirror.mirror_of(tmp_path) is None
