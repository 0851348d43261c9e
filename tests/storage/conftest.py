"""Datasets of every kind, for tests that damage them; and an object store to write to."""

from __future__ import annotations

from pathlib import Path

import pytest

import packtool
from packtool.storage.uploads import directory_for
from tests.places.s3_server import Bucket
from tests.storage.outputs import URL
from tests.stores import write_store

LENGTHS = [5, 17, 2, 40, 9, 33, 8, 3, 12]


@pytest.fixture
def made(tmp_path: Path) -> Path:
    """A store, a packed dataset of one and one of several lengths, and an order."""
    store = write_store(tmp_path / "store", LENGTHS)
    packtool.pack(store, tmp_path / "packed", strategy="bfd", sequence_length=16, shard_tokens=64)
    packtool.pack(store, tmp_path / "several", strategy="decompose", sequence_length=16)
    packtool.shuffle(tmp_path / "several", tmp_path / "order", order_only=True)
    return tmp_path


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Bucket:
    return Bucket(monkeypatch)


@pytest.fixture
def staged(bucket: Bucket, tmp_path: Path) -> Path:
    """The directory that stands for an output at `URL`."""
    return directory_for(URL, tmp_path / "staging")
