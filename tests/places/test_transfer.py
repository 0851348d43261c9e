"""Whole objects up, ranges down. An upload that is given up: tests/interop/test_s3.py, with a real store."""

from __future__ import annotations

from pathlib import Path
from threading import Event

import pytest

from packtool.errors import DataError
from packtool.places import transfer
from tests.places.bucket import Bucket

DATA = bytes(range(256)) * 11


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Bucket:
    monkeypatch.setattr(transfer, "PART_BYTES", 100)
    return Bucket(monkeypatch)


def test_what_goes_up_comes_down(bucket: Bucket, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(DATA)
    transfer.upload(tmp_path / "file", "s3://bucket/a/b", Event())
    assert bucket.get("a/b") == DATA
    for size in (0, 1, 100, 101, len(DATA)):
        assert b"".join(transfer.download("s3://bucket/a/b", size)) == DATA[:size]
    assert transfer.read("s3://bucket/a/b", 5, 7) == DATA[5:12]
    assert transfer.read("s3://bucket/a/b") == DATA
    assert transfer.size_of("s3://bucket/a/b") == len(DATA)
    assert transfer.size_of("s3://bucket/a/c") is None
    assert transfer.names_below("s3://bucket/a") == {"b": len(DATA)}
    transfer.remove("s3://bucket/a/b")
    transfer.remove("s3://bucket/a/b")
    assert transfer.names_below("s3://bucket/a") == {}


def test_a_request_that_fails_is_made_again(bucket: Bucket, tmp_path: Path) -> None:
    bucket.put("a", DATA)
    bucket.failures += [OSError("AWS Error SLOW_DOWN"), OSError("AWS Error SLOW_DOWN")]
    assert b"".join(transfer.download("s3://bucket/a", len(DATA))) == DATA
    bucket.failures += [OSError("AWS Error ACCESS_DENIED")]
    with pytest.raises(DataError, match="refuses access"):
        list(transfer.download("s3://bucket/a", len(DATA)))
    with pytest.raises(FileNotFoundError):
        list(transfer.download("s3://bucket/none", 10))
