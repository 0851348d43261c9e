"""Packed datasets as they are opened."""

from __future__ import annotations

from pathlib import Path

import pytest

import packtool
from packtool.cli import run
from packtool.errors import DataError


def test_a_bucket_that_is_a_link_out(made: Path) -> None:
    bucket = next((made / "several").glob("bucket-*"))
    bucket.rename(made / "elsewhere")
    bucket.symlink_to("../elsewhere")
    with pytest.raises(DataError, match="a symbolic link that leads out of the dataset"):
        packtool.open(made / "several")
    assert run(["verify", str(made / "several"), "-q"]) == 1
