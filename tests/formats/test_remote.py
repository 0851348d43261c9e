"""What lies at a URL, and whether a run may write there."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from packtool.errors import DataError, UsageError
from packtool.formats import manifest as manifests
from tests.formats.outputs import STORE, URL, begin, finish, names
from tests.places.s3_server import Bucket


def made(staging: Path, key: str = "k", documents: int = 2, **options: bool) -> None:
    output = begin(staging, key, **options)
    finish(output, documents)
    shutil.rmtree(staging, ignore_errors=True)


def test_what_lies_there_is_kept_or_replaced(bucket: Bucket, staging: Path) -> None:
    made(staging)
    with pytest.raises(UsageError) as error:
        begin(staging)
    assert (error.value.code, error.value.where) == ("output-not-empty", URL)
    with pytest.raises(UsageError, match="begun with other options"):
        begin(staging, "other", resume=True)
    kept = begin(staging, resume=True)
    assert kept.finished
    assert manifests.read(kept.place).counts["documents"] == 2  # type: ignore[union-attr]
    assert manifests.read_run(kept.place)["key"] == "k"
    shutil.rmtree(staging, ignore_errors=True)
    made(staging, "other", 1, overwrite=True)
    assert bucket.names("set") == STORE


def test_what_packtool_did_not_write_stays(bucket: Bucket, staging: Path) -> None:
    bucket.put("set/notes.txt", b"mine")
    for options, code in (({}, "output-not-empty"), ({"resume": True}, "nothing-to-resume")):
        with pytest.raises(UsageError) as error:
            begin(staging, **options)
        assert error.value.code == code
    with pytest.raises(UsageError, match=r"holds notes\.txt, which packtool did not write"):
        begin(staging, overwrite=True)
    assert bucket.names("set") == ["notes.txt"]
    assert names(staging) == []


def test_a_place_tells_what_a_directory_would(bucket: Bucket, staging: Path) -> None:
    with pytest.raises(DataError, match="no such object or directory"):
        manifests.read(URL)
    begin(staging).release()
    with pytest.raises(DataError, match="the output of a packtool command that was interrupted"):
        manifests.read(URL)
    shutil.rmtree(staging, ignore_errors=True)
    made(staging, resume=True)
    assert manifests.read(URL).counts["documents"] == 2  # type: ignore[union-attr]
    bucket.put("other/a.txt", b"")
    with pytest.raises(DataError, match="not a finished token store or packed dataset"):
        manifests.read("s3://bucket/other")
