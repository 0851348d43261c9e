"""Outputs on their way to an object store: whole, or no dataset."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from packtool.errors import DataError, UsageError
from packtool.places import staging
from packtool.storage import manifest as manifests
from packtool.storage import remote
from packtool.storage.output import Output, lies_at, prepare
from tests.places.bucket import Bucket
from tests.storage.outputs import finish, names

URL = "s3://bucket/set"


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Bucket:
    return Bucket(monkeypatch)


@pytest.fixture
def staged(bucket: Bucket, tmp_path: Path) -> Path:
    return staging.stage_output(URL, tmp_path / "staging", quiet=True)


def begin(staged: Path, key: str = "k", **options: bool) -> Output:
    return prepare(staged, "pack", key=key, **options)


def made(staged: Path, key: str = "k", documents: int = 2, **options: bool) -> None:
    output = begin(staged, key, **options)
    finish(output, documents)
    staging.remove(staged)


FILES = ["manifest.json", "offsets-00000.npy", "offsets-00001.npy", "run.json", "tokens-00000.npy", "tokens-00001.npy"]


def test_a_finished_output_is_uploaded_manifest_last(bucket: Bucket, staged: Path) -> None:
    output = begin(staged)
    assert bucket.names("set") == ["unfinished.json"]
    assert lies_at(staged, "pack", "k") == "unfinished"
    finish(output, 2)
    assert bucket.names("set") == FILES
    for name in FILES:
        assert bucket.get(f"set/{name}") == (staged / name).read_bytes()
    sent = [path.removeprefix("bucket/set/") for method, path in bucket.requests if method == "put"]
    assert (sent[0], sent[-1]) == ("unfinished.json", "manifest.json")
    assert lies_at(staged, "pack", "k") == "finished"
    assert lies_at(staged, "pack", "other") == "other"


def test_an_upload_that_stops_is_no_dataset_and_goes_on(
    bucket: Bucket, staged: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote, "UPLOADS", 1)  # else it depends on the threads which files are there before one fails
    output = begin(staged)
    bucket.put("elsewhere", b"")
    original, count = bucket.open_output_stream, 0

    def failing(path: str, compression: None = None) -> object:
        nonlocal count
        count += path.endswith(".npy")
        if count > 2 and path.endswith(".npy"):
            raise OSError("AWS Error ACCESS_DENIED")
        return original(path, compression)

    bucket.open_output_stream = failing  # type: ignore[method-assign]
    with pytest.raises(DataError) as error:
        finish(output, 2)
    assert error.value.code == "store-denied"
    assert error.value.remedy.endswith("then run the command again with --resume")
    assert "manifest.json" not in bucket.names("set")
    output.release()
    before = staging.uploaded(staged).keys()
    assert len(before) == 2
    bucket.requests.clear()
    bucket.open_output_stream = original  # type: ignore[method-assign]
    with pytest.raises(UsageError, match="unfinished work of an interrupted packtool pack"):
        begin(staged)
    with pytest.raises(UsageError, match="begun with other options"):
        begin(staged, "other", resume=True)
    again = begin(staged, resume=True)
    assert again.finished
    assert bucket.names("set") == FILES
    sent = [path.removeprefix("bucket/set/") for method, path in bucket.requests if method == "put"]
    assert not before & set(sent)


def test_what_lies_there_is_kept_or_replaced(bucket: Bucket, staged: Path) -> None:
    made(staged)
    with pytest.raises(UsageError) as error:
        begin(staged)
    assert (error.value.code, error.value.where) == ("output-not-empty", URL)
    with pytest.raises(UsageError, match="begun with other options"):
        begin(staged, "other", resume=True)
    kept = begin(staged, resume=True)
    assert kept.finished
    assert manifests.read(kept.path).counts["documents"] == 2  # type: ignore[union-attr]
    assert manifests.read_run(kept.path)["key"] == "k"
    staging.remove(staged)
    made(staged, "other", 1, overwrite=True)
    assert bucket.names("set") == ["manifest.json", "offsets-00000.npy", "run.json", "tokens-00000.npy"]


def test_while_a_dataset_is_replaced_there_is_none(bucket: Bucket, staged: Path) -> None:
    made(staged)
    output = begin(staged, "other", overwrite=True)
    assert "manifest.json" in bucket.names("set")
    original = bucket.open_output_stream
    seen = []

    def looking(path: str, compression: None = None) -> object:
        seen.append("manifest.json" in bucket.names("set"))
        return original(path, compression)

    bucket.open_output_stream = looking  # type: ignore[method-assign]
    finish(output, 2)
    assert seen
    assert not any(seen)


def test_what_packtool_did_not_write_stays(bucket: Bucket, staged: Path) -> None:
    bucket.put("set/notes.txt", b"mine")
    for options, code in (({}, "output-not-empty"), ({"resume": True}, "nothing-to-resume")):
        with pytest.raises(UsageError) as error:
            begin(staged, **options)
        assert error.value.code == code
    with pytest.raises(UsageError, match=r"holds notes\.txt, which packtool did not write"):
        begin(staged, overwrite=True)
    assert bucket.names("set") == ["notes.txt"]
    assert names(staged) == []


def test_a_run_without_the_staging_directory_of_the_one_before_starts_again(bucket: Bucket, staged: Path) -> None:
    begin(staged).release()
    bucket.put("set/tokens-00000.npy", b"another")
    shutil.rmtree(staged.parent)
    made(staged, resume=True)
    assert bucket.names("set") == FILES
    assert bucket.get("set/tokens-00000.npy") != b"another"


def test_a_mirror_tells_what_a_directory_would(bucket: Bucket, staged: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such object or directory"):
        remote.mirror(URL, tmp_path)
    begin(staged).release()
    found = remote.mirror(URL, tmp_path)
    with pytest.raises(DataError, match="the output of a packtool command that was interrupted"):
        manifests.read(found.path)
    staging.remove(staged)
    made(staged, resume=True)
    found = remote.mirror(URL, tmp_path)
    assert manifests.read(found.path).counts["documents"] == 2  # type: ignore[union-attr]
    bucket.put("other/a.txt", b"")
    with pytest.raises(DataError, match="not a finished token store or packed dataset"):
        remote.mirror("s3://bucket/other", tmp_path)
