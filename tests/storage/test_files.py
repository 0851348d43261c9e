"""Array files: readable by NumPy, whole or absent, checkable."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import xxhash

from packtool.errors import DataError
from packtool.storage import files
from packtool.storage.files import HEADER_BYTES, NpyWriter, digest, open_array, write_array


@pytest.mark.parametrize("dtype", ["<u2", "<u4", "<i8", [("document", "<i8"), ("start", "<u4")]])
@pytest.mark.parametrize("shape", [(0,), (3,), (2, 5)])
def test_numpy_maps_what_was_written(tmp_path: Path, dtype: object, shape: tuple[int, ...]) -> None:
    array = np.zeros(shape, np.dtype(dtype))
    entry = write_array(tmp_path / "a.npy", array)
    mapped = np.load(tmp_path / "a.npy", mmap_mode="r")
    np.testing.assert_array_equal(mapped, array)
    assert mapped.offset == HEADER_BYTES
    raw = (tmp_path / "a.npy").read_bytes()
    assert entry == files.FileEntry("a.npy", shape, len(raw), xxhash.xxh3_128_hexdigest(raw))
    assert digest(tmp_path / "a.npy") == entry.xxh3_128


def test_big_endian_input_is_written_little_endian(tmp_path: Path) -> None:
    write_array(tmp_path / "a.npy", np.array([1, 2], ">u4"))
    assert np.load(tmp_path / "a.npy").dtype == np.dtype("<u4")


def test_a_file_that_fails_half_way_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError), NpyWriter(tmp_path / "a.npy", "<u2", (4,)) as out:
        out.write(np.zeros(2, "<u2"))
        raise RuntimeError
    assert list(tmp_path.iterdir()) == []


def test_a_short_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="wrote 4098 of 4104 bytes"), NpyWriter(tmp_path / "a.npy", "<u2", (4,)) as out:
        out.write(np.zeros(1, "<u2"))
        out.close()
    assert list(tmp_path.iterdir()) == []


def test_flushing_in_the_background_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "FLUSH_BYTES", 1000)
    array = np.arange(20_000, dtype="<u4")
    with NpyWriter(tmp_path / "a.npy", "<u4", array.shape) as out:
        for part in np.split(array, 50):
            out.write(part)
        out.close()
    np.testing.assert_array_equal(np.load(tmp_path / "a.npy"), array)


def test_opening_says_what_is_wrong(tmp_path: Path) -> None:
    entry = write_array(tmp_path / "a.npy", np.zeros(3, "<u2"))
    with pytest.raises(DataError, match=r"b\.npy: named in the manifest, but not there"):
        open_array(tmp_path, files.FileEntry("b.npy", (3,), 0, ""))
    with pytest.raises(DataError, match=r"has shape \(3,\), but the manifest says \(4,\)"):
        open_array(tmp_path, files.FileEntry("a.npy", (4,), entry.bytes, entry.xxh3_128))
    (tmp_path / "a.npy").write_bytes(b"not an array")
    with pytest.raises(DataError, match="not a readable array"):
        open_array(tmp_path, entry)
