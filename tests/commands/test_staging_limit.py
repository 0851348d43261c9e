"""What is kept of inputs in object stores."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from packtool.commands.places import _staging_cache, in_part
from packtool.errors import UsageError
from packtool.formats.manifest import read
from packtool.formats.schema import listed_files
from packtool.options.pack import PackArguments
from packtool.places.cached import Cache, CachedPlace
from packtool.places.place import Place
from packtool.places.store import StorePlace
from tests.places.s3_server import Bucket
from tests.stores import write_store


@pytest.fixture
def places(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[Place]:
    bucket = Bucket(monkeypatch)
    for name in ("one", "two"):
        bucket.put_all(write_store(tmp_path / name, [5, 6, 7] * 7), name)
    return [StorePlace(f"s3://bucket/{name}") for name in ("one", "two")]


def limit_of(places: list[Place], limit: int | None, scheduler: str | None = None) -> int | None:
    resources: dict[str, Any] = {"workers": 2, "scheduler": scheduler, "staging": "staging", "staging_limit": limit}
    return _staging_cache(PackArguments("in", "out", strategy="bfd", **resources), places).limit


def sizes(places: list[Place]) -> list[int]:
    return [each.bytes for place in places for each in listed_files(read(place))]


def test_what_fits_is_kept_whole(places: list[Place], tmp_path: Path) -> None:
    whole = sum(sizes(places))
    assert limit_of(places, whole) is None
    assert limit_of(places, whole - 1) == whole - 1
    assert limit_of(places, whole, "local") == whole // 2
    for limit, part in ((None, False), (whole - 1, True), (whole, False)):
        assert in_part([CachedPlace(place, Cache(tmp_path / "cache", limit)) for place in places]) == part
    assert not in_part([tmp_path])


def test_by_default_half_of_what_is_free(places: list[Place], monkeypatch: pytest.MonkeyPatch) -> None:
    class Usage:
        free = 60_000

    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage)
    assert sum(sizes(places)) > 30_000
    assert limit_of(places, None) == 30_000


def test_a_limit_below_a_shard_for_each_worker_is_refused(places: list[Place]) -> None:
    with pytest.raises(UsageError) as error:
        limit_of(places, 239)
    assert str(error.value).startswith("staging_limit: 239 B is too little for 2 workers that each read a shard.")
    assert str(error.value).endswith(" kB, on a disk with as much room, or fewer workers.")
