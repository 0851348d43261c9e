"""Batches, held against the dataset that they are of."""

from __future__ import annotations

from pathlib import Path

import pytest

import packtool
from packtool.cli import run
from packtool.errors import DataError
from tests.stores import rewrite


def test_batches_of_rows_that_are_not_there(made: Path) -> None:
    packtool.shuffle(made / "several", made / "batched", method="bucket", batch_tokens=32)
    assert run(["verify", str(made / "batched"), "-q"]) == 0
    for field, value in (("bucket", 5), ("first_row", -1), ("rows", 99)):
        packtool.shuffle(made / "several", made / field, method="bucket", batch_tokens=32)
        rewrite(made / field, "batches.npy", lambda t, f=field, v=value: t[f].__setitem__(0, v))
        with pytest.raises(DataError, match="batch 0 names rows that are not there"):
            packtool.open(made / field)
        assert run(["verify", str(made / field), "-q"]) == 1
