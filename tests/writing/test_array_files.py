"""Arrays in files are found again, never larger than their file, and gone with their block."""

import errno
import os
from pathlib import Path

import numpy as np
import pytest

from packtool.errors import DataError
from packtool.support.mapped import ArrayFile, release
from packtool.writing import array_files
from packtool.writing.array_files import FileArrays, temporary_arrays


@pytest.fixture
def every_array_in_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(array_files, "LARGE", 1)


@pytest.mark.usefixtures("every_array_in_a_file")
def test_what_is_written_is_in_the_file(tmp_path: Path) -> None:
    arrays = FileArrays(tmp_path / "arrays")
    first, second = arrays.empty(5, np.uint16), arrays.empty(3, np.int64)
    first[:], second[:] = range(5), 7
    file = ArrayFile.of(first)
    assert type(first) is np.ndarray
    assert np.fromfile(file.path, np.uint16).tolist() == [0, 1, 2, 3, 4]
    assert ArrayFile(file.path, np.dtype("<u2"), (2, 2)).open().tolist() == [[0, 1], [2, 3]]
    for later, offset, items in (
        (first[2:], 4, [2, 3, 4]),
        (first[1:][1:].view(np.uint8).view(np.uint16)[:2], 4, [2, 3]),
        (first[1:5].reshape(2, 2)[1], 6, [3, 4]),
    ):
        part = ArrayFile.of(later)
        assert (part.path, part.offset, part.open().tolist()) == (file.path, offset, items)
    again = ArrayFile.of(file.open()[3:])
    assert again == ArrayFile(file.path, np.dtype("<u2"), (2,), 6)
    for other in (first[::2], np.arange(4), first + 1, first[np.array([0, 1])], first.copy()):
        assert ArrayFile.of(other) is None
    file.path.unlink()
    assert ArrayFile.of(first) is None


@pytest.mark.usefixtures("every_array_in_a_file")
def test_a_file_that_was_cut_is_an_error_and_no_signal(tmp_path: Path) -> None:
    array = FileArrays(tmp_path).empty(2000, np.int64)
    file = ArrayFile.of(array[500:])
    os.truncate(file.path, 8 * 1999)
    with pytest.raises(DataError, match=r"planned-00000: has 15992 bytes where 16000 were written") as caught:
        file.open()
    assert caught.value.code == "damaged-scratch"


def test_small_arrays_have_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(array_files, "LARGE", 80)
    arrays = FileArrays(tmp_path)
    assert [ArrayFile.of(arrays.empty(count, np.int64)) is None for count in (9, 10)] == [True, False]
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.usefixtures("every_array_in_a_file")
def test_files_go_with_the_block_and_arrays_stay_readable(tmp_path: Path) -> None:
    with temporary_arrays(tmp_path) as arrays:
        array = arrays.filled(5, np.int64, np.arange)
        release([array])
        assert len(list(tmp_path.iterdir())) == 1
    assert list(tmp_path.iterdir()) == []
    assert array.tolist() == [0, 1, 2, 3, 4]


@pytest.mark.usefixtures("every_array_in_a_file")
def test_a_full_disk_is_found_before_the_array_is_filled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(OSError, match="No space left"):
        FileArrays(tmp_path).empty(5, np.uint16)
