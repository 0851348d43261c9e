"""Arrays that are read by ranges give what arrays in memory give."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from packtool.errors import DataError
from packtool.places.mirror import Mirror, fetched
from packtool.storage.files import write_array
from packtool.storage.ranged import RangedArray
from packtool.storage.reading import open_array, problem_with
from tests.places.bucket import Bucket

ROWS = np.arange(600, dtype="<u2").reshape(50, 12)


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Bucket:
    made = Bucket(monkeypatch)
    (tmp_path / "set").mkdir()
    write_array(tmp_path / "set" / "tokens-00000.npy", ROWS)
    made.put_all(tmp_path / "set", "set")
    return made


def test_slices_items_and_shapes_are_those_of_the_array(bucket: Bucket, tmp_path: Path) -> None:
    entry = write_array(tmp_path / "tokens-00000.npy", ROWS)
    mirror = Mirror("s3://bucket/set", tmp_path / "mirror", ranged=["tokens"])
    mirror.expect({})
    found = open_array(mirror.path, entry, "<u2")
    assert isinstance(found, RangedArray)
    assert (len(found), found.shape, found.nbytes, found.dtype) == (50, (50, 12), 1200, ROWS.dtype)
    assert (found[3:9] == ROWS[3:9]).all()
    assert (found[3:3] == ROWS[3:3]).all()
    assert (found[::7] == ROWS[::7]).all()
    assert (found[5] == ROWS[5]).all()
    rows = np.array([[7, 0], [49, 7]])
    assert (np.take(found, rows, axis=0) == ROWS[rows]).all()
    assert (found[np.array([], np.int64)] == ROWS[:0]).all()
    assert (found.reshape(-1)[10:30] == ROWS.reshape(-1)[10:30]).all()
    assert (found.reshape(-1, 4).take(np.array([9, 2])) == ROWS.reshape(-1, 4)[[9, 2]]).all()
    for wrong in (-1, 50):
        with pytest.raises(IndexError, match=f"item {wrong} of 50"):
            found[wrong]
    assert problem_with(mirror.path, entry.name, entry.bytes, entry.xxh3_128) is None
    assert not list(mirror.path.iterdir()), "nothing was fetched"
    assert fetched(mirror.path / entry.name)


def test_an_array_by_ranges_is_believed_no_more_than_another(bucket: Bucket, tmp_path: Path) -> None:
    entry = write_array(tmp_path / "tokens-00000.npy", ROWS)
    data = bucket.get("set/tokens-00000.npy")
    for wrong, code, says in (
        (data[:-1], "wrong-size", "damaged-shard"),
        (b"x" + data[1:], "wrong-checksum", "damaged-shard"),
        (data[:-1] + bytes([data[-1] ^ 1]), "wrong-checksum", ""),
    ):
        bucket.put("set/tokens-00000.npy", wrong)
        mirror = Mirror("s3://bucket/set", tmp_path / "mirror", ranged=["tokens"])
        mirror.expect({})
        problem = problem_with(mirror.path, entry.name, entry.bytes, entry.xxh3_128)
        assert problem is not None
        assert (problem.code, problem.where) == (code, "s3://bucket/set/tokens-00000.npy")
        if says:
            with pytest.raises(DataError) as error:
                open_array(mirror.path, entry, "<u2")
            assert error.value.code == says
