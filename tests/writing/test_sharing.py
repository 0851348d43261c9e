"""Arrays and functions in files: arrays are found again, and functions loaded only as they were written."""

from __future__ import annotations

import errno
import os
import pickle
import subprocess
import sys
from functools import partial
from operator import mul
from pathlib import Path

import numpy as np
import pytest

from packtool.errors import DataError
from packtool.places.npy import release
from packtool.writing import sharing
from packtool.writing.sharing import ArrayFile, FileArrays, load, save, temporary_arrays


@pytest.fixture
def every_array_in_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sharing, "LARGE", 1)


@pytest.mark.usefixtures("every_array_in_a_file")
def test_what_is_written_is_in_the_file(tmp_path: Path) -> None:
    arrays = FileArrays(tmp_path / "arrays")
    first, second = arrays.empty(5, np.uint16), arrays.empty(3, np.int64)
    first[:], second[:] = range(5), 7
    file = ArrayFile.of(first)
    assert file is not None
    assert type(first) is np.ndarray
    assert np.fromfile(file.path, np.uint16).tolist() == [0, 1, 2, 3, 4]
    assert ArrayFile(file.path, np.dtype("<u2"), (2, 2)).open().tolist() == [[0, 1], [2, 3]]
    for later, offset, items in (
        (first[2:], 4, [2, 3, 4]),
        (first[1:][1:].view(np.uint8).view(np.uint16)[:2], 4, [2, 3]),
        (first[1:5].reshape(2, 2)[1], 6, [3, 4]),
    ):
        part = ArrayFile.of(later)
        assert part is not None
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
    assert file is not None
    os.truncate(file.path, 8 * 1999)
    with pytest.raises(DataError, match=r"planned-00000: has 15992 bytes where 16000 were written") as caught:
        file.open()
    assert caught.value.code == "damaged-scratch"


def test_small_arrays_have_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sharing, "LARGE", 80)
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


def test_another_process_calls_it(tmp_path: Path) -> None:
    large, small = np.arange(5000), np.arange(3, dtype="<u2")
    saved = save(partial(mul, large), tmp_path)
    assert [path.stat().st_size for path in tmp_path.glob("array-*")] == [large.nbytes]
    (tmp_path / "saved").write_bytes(pickle.dumps(saved))
    script = (
        "import pickle, sys; from packtool.writing.sharing import load; "
        "print(load(pickle.load(open(sys.argv[1], 'rb')))(3).sum())"
    )
    found = subprocess.run([sys.executable, "-c", script, tmp_path / "saved"], capture_output=True, check=True)
    assert int(found.stdout) == 3 * large.sum()
    load.cache_clear()
    assert load(saved)(2).flags.c_contiguous
    (tmp_path / "small").mkdir()
    assert load(save(partial(mul, small), tmp_path / "small"))(2).tolist() == [0, 2, 4]
    assert len(list((tmp_path / "small").iterdir())) == 1


def test_arrays_in_files_are_not_written_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sharing, "LARGE", 1)
    (tmp_path / "function").mkdir()
    array = FileArrays(tmp_path / "arrays").empty(10_000, np.int64)
    array[:] = np.arange(10_000)
    saved = save(partial(mul, array[:9000]), tmp_path / "function")
    assert [path.name for path in (tmp_path / "function").iterdir()] == ["function.pickle"]
    assert load(saved)(2).tolist() == list(range(0, 18_000, 2))
    again = save(load(saved), tmp_path / "arrays")  # of a mapped one
    assert len(list((tmp_path / "arrays").iterdir())) == 2
    assert load(again)(1)[-1] == 8999
    (tmp_path / "part").mkdir()
    part = save(partial(mul, array[1:]), tmp_path / "part")
    assert len(list((tmp_path / "part").iterdir())) == 1
    load.cache_clear()
    assert load(part)(1)[0] == 1


def test_what_changed_is_not_believed(tmp_path: Path) -> None:
    saved = save(partial(mul, 2), tmp_path)
    assert load(saved)(3) == 6
    load.cache_clear()
    saved.file.write_bytes(pickle.dumps("other"))
    with pytest.raises(DataError, match=r"function\.pickle: changed since it was written"):
        load(saved)(3)
