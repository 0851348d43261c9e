"""Array files: readable by NumPy, whole or absent, checkable."""

import errno
from pathlib import Path

import numpy as np
import pytest
import xxhash

from packtool.formats import files
from packtool.formats.files import NpyWriter, write_array, write_bytes
from packtool.places.local import LocalPlace
from packtool.places.npy import HEADER_BYTES


@pytest.mark.parametrize("dtype", ["<u2", ">u4", "<i8", [("document", "<i8"), ("start", "<u4")]])
@pytest.mark.parametrize("shape", [(0,), (0, 5), (3,), (2, 5), (1000, 2)])
def test_numpy_maps_what_was_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dtype: object, shape: tuple[int, ...]
) -> None:
    """In little-endian bytes, of which some are flushed in the background; and so does packtool."""
    monkeypatch.setattr(files, "FLUSH_BYTES", 1000)
    little = np.dtype(dtype).newbyteorder("<")
    array = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
    with NpyWriter(tmp_path / "a.npy", little, shape) as out:
        for part in np.array_split(array, 50):
            out.write(part.astype(little))
        entry = out.close()
    mapped = np.load(tmp_path / "a.npy", mmap_mode="r")
    np.testing.assert_array_equal(mapped, array)
    assert (mapped.offset, mapped.dtype) == (HEADER_BYTES, little)
    found = LocalPlace(tmp_path).array(entry, little)
    np.testing.assert_array_equal(found, array)
    assert not found.flags.writeable or not found.size
    assert write_array(tmp_path / "b.npy", array).xxh3_128 == entry.xxh3_128
    raw = (tmp_path / "a.npy").read_bytes()
    assert entry == files.FileEntry("a.npy", shape, len(raw), xxhash.xxh3_128_hexdigest(raw))


def test_a_short_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="wrote 4098 of 4104 bytes"), NpyWriter(tmp_path / "a.npy", "<u2", (4,)) as out:
        out.write(np.zeros(1, "<u2"))
        out.close()
    assert list(tmp_path.iterdir()) == []


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
