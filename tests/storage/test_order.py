"""Orders and batches, held against the dataset that they are of."""

from __future__ import annotations

from pathlib import Path

import pytest

import packtool
from packtool.cli import run
from packtool.errors import DataError
from tests.places.s3_server import Bucket
from tests.stores import load, rewrite


def test_an_order_that_is_not_one(made: Path) -> None:
    name = load(made / "order")["orders"][-1]["name"]
    rewrite(made / "order", name, lambda t: t.__setitem__(0, t[1]))
    with pytest.raises(DataError, match=r"atom \d+ is not in it"):
        packtool.open(made / "several", order=made / "order")
    assert run(["verify", str(made / "order"), "-q"]) == 1


def test_batches_of_rows_that_are_not_there(made: Path) -> None:
    packtool.shuffle(made / "several", made / "batched", method="bucket", batch_tokens=32)
    assert run(["verify", str(made / "batched"), "-q"]) == 0
    for field, value in (("bucket", 5), ("first_row", -1), ("rows", 99)):
        packtool.shuffle(made / "several", made / field, method="bucket", batch_tokens=32)
        rewrite(made / field, "batches.npy", lambda t, f=field, v=value: t[f].__setitem__(0, v))
        with pytest.raises(DataError, match="batch 0 names rows that are not there"):
            packtool.open(made / field)
        assert run(["verify", str(made / field), "-q"]) == 1


def test_an_order_in_an_object_store_is_read_whole(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bucket = Bucket(monkeypatch)
    for name in ("several", "order"):
        bucket.put_all(made / name, name)
    found = packtool.stats("s3://bucket/several", order="s3://bucket/order")
    assert found.metrics == packtool.stats(made / "several", order=made / "order").metrics
