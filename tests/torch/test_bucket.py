"""The loader reads a bucket of a real object store, in worker processes."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import packtool
from tests.interop.object_store import Client, environment, object_store, put
from tests.stores import write_store

pytestmark = [pytest.mark.torch, pytest.mark.slow]
torch = pytest.importorskip("torch")

from packtool.torch import Loader  # noqa: E402

URL = "s3://rows/packed"


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    place = tmp_path_factory.mktemp("bucket")
    write_store(place / "store", [7, 31, 64, 12, 90, 3] * 300, per_shard=200)
    packtool.pack(place / "store", place / "packed", strategy="bfd", sequence_length=64, shard_tokens=4096)
    with pytest.MonkeyPatch.context() as patch, object_store(place) as endpoint:
        for name, value in environment(endpoint).items():
            patch.setenv(name, value)
        store = Client(endpoint)
        store.bucket("rows")
        put(store, place / "packed", "rows/packed")
        yield place / "packed"


def read(loader: Loader) -> list[dict[str, Any]]:
    return [{name: torch.as_tensor(value).clone() for name, value in batch.items()} for batch in loader]


@pytest.mark.parametrize("fetch", ["shards", "rows"])
@pytest.mark.parametrize("workers", [0, 2])
def test_batches_of_a_bucket_are_those_of_the_directory(rows: Path, tmp_path: Path, fetch: str, workers: int) -> None:
    options: dict[str, Any] = {"batch_size": 8, "epochs": 2}
    there = read(Loader(URL, **options, cache=tmp_path, fetch=fetch, num_workers=workers))
    here = read(Loader(rows, **options))
    assert len(there) == len(here) > 10
    for one, other in zip(there, here, strict=True):
        assert one.keys() == other.keys()
        for name, value in other.items():
            assert torch.equal(one[name], value), name
