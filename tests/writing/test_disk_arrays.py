"""Arrays in files: made, found again, and no surprise where the disk is full."""

from __future__ import annotations

import errno
import gc
import os
from pathlib import Path

import numpy as np
import pytest

from packtool.writing import disk_arrays
from packtool.writing.disk_arrays import ArraysOnDisk, DiskArray, place_of


def test_what_is_written_is_in_the_file(tmp_path: Path) -> None:
    room = ArraysOnDisk(tmp_path / "arrays")
    first, second = room.empty(5, np.uint16), room.empty(3, np.int64)
    first[:], second[:] = range(5), 7
    place = place_of(first)
    assert place is not None
    path = place.path
    assert np.fromfile(path, np.uint16).tolist() == [0, 1, 2, 3, 4]
    assert DiskArray(path, np.dtype("<u2"), (2, 2)).open().tolist() == [[0, 1], [2, 3]]
    later = place_of(first[2:])
    assert later is not None
    assert later.offset == 4
    assert later.open().tolist() == [2, 3, 4]
    assert place_of(first[::2]) is None
    assert place_of(np.arange(4)) is None
    path.unlink()
    assert place_of(first) is None


def test_files_are_forgotten_with_their_arrays(tmp_path: Path) -> None:
    before = len(disk_arrays._files)
    array = ArraysOnDisk(tmp_path).empty(5, np.uint16)
    assert len(disk_arrays._files) == before + 1
    del array
    gc.collect()
    assert len(disk_arrays._files) == before


def test_a_full_disk_is_found_before_the_room_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(OSError, match="No space left"):
        ArraysOnDisk(tmp_path).empty(5, np.uint16)
