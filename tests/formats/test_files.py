"""Array files: readable by NumPy, whole or absent, checkable."""

from __future__ import annotations

import errno
from pathlib import Path

import numpy as np
import pytest
import xxhash

from packtool.formats import files
from packtool.formats.files import NpyWriter, write_array, write_bytes
from packtool.places.npy import HEADER_BYTES


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


def test_what_the_background_flush_met_is_raised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(handle: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(files, "FLUSH_BYTES", 1000)
    monkeypatch.setattr(files.os, "fdatasync", fail)
    with pytest.raises(OSError, match="Input/output error"), NpyWriter(tmp_path / "a.npy", "<u4", (1000,)) as out:
        out.write(np.zeros(1000, "<u4"))
        out.close()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("linked", ["a.npy", "a.npy.partial"])
def test_nothing_is_written_through_a_planted_link(tmp_path: Path, linked: str) -> None:
    (tmp_path / "diary").write_text("dear")
    (tmp_path / linked).symlink_to(tmp_path / "diary")
    write_array(tmp_path / "a.npy", np.zeros(3, "<u2"))
    (tmp_path / linked).unlink(missing_ok=True)
    (tmp_path / linked).symlink_to(tmp_path / "diary")
    write_bytes(tmp_path / "a.npy", b"new")
    assert (tmp_path / "diary").read_text() == "dear"
    assert (tmp_path / "a.npy").read_bytes() == b"new"
