"""Slices read from files are those of the arrays, and are read together where they are not in memory."""

import ctypes
import mmap
import os
import resource
import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from packtool.errors import DataError
from packtool.formats.files import write_array
from packtool.places.local import LocalPlace
from packtool.places.npy import HEADER_BYTES, FileEntry
from packtool.places.slices import SliceReader
from packtool.support.mapped import mapped
from tests.making import Make
from tests.shell import python
from tests.stores import contents

BLOCK = 1 << 13


def written(directory: Path, *arrays: np.ndarray) -> list[tuple[LocalPlace, FileEntry]]:
    return [
        (LocalPlace(directory), write_array(directory / f"tokens-{number:05d}.npy", array))
        for number, array in enumerate(arrays)
    ]


@given(sizes=st.lists(st.integers(0, 9), min_size=1, max_size=5), data=st.data())
def test_slices_are_those_of_the_arrays(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[int], data: st.DataObject
) -> None:
    arrays = [np.arange(size, dtype="<u2") + 100 * number for number, size in enumerate(sizes)]
    read = SliceReader(written(tmp_path_factory.mktemp("slices"), *arrays), np.dtype("<u2"))
    number = data.draw(st.lists(st.integers(0, len(sizes) - 1), max_size=300))
    first = [data.draw(st.integers(0, sizes[each])) for each in number[:20]] + [0] * len(number[20:])
    count = [data.draw(st.integers(0, sizes[n] - at)) for n, at in list(zip(number, first, strict=True))[:20]]
    count += [sizes[each] for each in number[20:]]
    for _ in range(2):
        found = read(*(np.array(each, np.int64) for each in (number, first, count)))
        wanted = [arrays[n][at : at + size].tobytes() for n, at, size in zip(number, first, count, strict=True)]
        assert found == wanted


def test_no_more_files_stay_open_than_a_share_of_those_allowed(tmp_path: Path) -> None:
    files = written(tmp_path, *(np.array([number], "<u2") for number in range(600)))
    every, one = np.arange(600), np.ones(600, np.int64)
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    held = len(list(Path("/proc/self/fd").iterdir()))
    resource.setrlimit(resource.RLIMIT_NOFILE, (held + 300, limits[1]))
    try:
        read = SliceReader(files, np.dtype("<u2"))
        for _ in range(2):
            assert b"".join(read(every, 0 * every, one)) == every.astype("<u2").tobytes()
        assert len(list(Path("/proc/self/fd").iterdir())) - held <= (held + 300) // 8
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    del read
    assert len(list(Path("/proc/self/fd").iterdir())) == held


def test_what_is_not_in_memory_is_read_at_the_same_time_and_no_more(disk: Path) -> None:
    size = 64 * BLOCK
    read = SliceReader(written(disk, np.zeros(0, "u1"), np.zeros(size - HEADER_BYTES, "u1")), np.dtype("u1"))
    nothing = np.zeros(1, np.int64)
    read(nothing + 1, nothing, nothing)  # opens the file, and looks at its header
    path = disk / "tokens-00001.npy"
    with path.open("rb") as file:
        os.fdatasync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        array = mapped(file.fileno(), size)
    address, libc = array.__array_interface__["data"][0], ctypes.CDLL(None)

    def cached() -> list[int]:
        """Return the numbers of blocks of which a page is in memory."""
        pages = (ctypes.c_ubyte * (size // mmap.PAGESIZE))()
        assert libc.mincore(ctypes.c_void_p(address), ctypes.c_size_t(size), pages) == 0
        return sorted({number * mmap.PAGESIZE // BLOCK for number, page in enumerate(pages) if page & 1})

    def ask(*blocks: int, size: int = 5) -> None:
        first = np.array(blocks) * BLOCK + 7 - HEADER_BYTES
        read(np.ones(len(blocks), np.int64), first, np.full(len(blocks), size))

    if cached():
        pytest.skip("this file system keeps its files in memory")
    ask(3, 30)
    assert cached() == [3, 30]
    ask(50, size=BLOCK)
    assert cached() == [3, 30, 50, 51]


def test_a_file_that_is_gone_or_another_or_cut_is_named(tmp_path: Path) -> None:
    one, path = np.ones(1, np.int64), tmp_path / "tokens-00000.npy"
    files = written(tmp_path, np.arange(9, dtype="<u2"))
    read = SliceReader(files, np.dtype("<u2"))
    assert read(0 * one, one, 3 * one) == [np.arange(1, 4, dtype="<u2").tobytes()]
    os.truncate(path, HEADER_BYTES + 5)
    with pytest.raises(DataError, match=r"tokens-00000.npy: is shorter than its manifest says"):
        read(0 * one, one, 3 * one)
    again = SliceReader(files, np.dtype("<u2"))
    with pytest.raises(DataError, match=r"tokens-00000.npy: has 4101 bytes, but an array of shape \(9,\) has 4114"):
        again(0 * one, one, one)
    path.unlink()
    with pytest.raises(DataError, match=r"tokens-00000.npy: named in the manifest, but not there"):
        again(0 * one, one, one)


def test_threads_that_open_the_same_files_leave_none_open(tmp_path: Path) -> None:
    files = written(tmp_path, *(np.array([number], "<u2") for number in range(50)))
    every, one = np.arange(50), np.ones(50, np.int64)
    held = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(20):
        read, found = SliceReader(files, np.dtype("<u2")), list[bytes]()
        threads = [
            threading.Thread(target=lambda read=read, found=found: found.append(b"".join(read(every, 0 * every, one))))
            for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert found == [every.astype("<u2").tobytes()] * 4
        del read, threads, thread
        assert len(list(Path("/proc/self/fd").iterdir())) == held


SHARDS = 200
PROGRAM = """
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))
import packtool

packtool.pack("store", "packed", strategy="concat", sequence_length=16, shard_tokens=32, seed=3, quiet=True)
narrow = {"memory": 20_000, "quiet": True}
packtool.pack("store", "twice", strategy="concat", sequence_length=16, shard_tokens=32, seed=3, **narrow)
packtool.shuffle("packed", "again", seed=4, quiet=True)
packtool.shuffle("again", "back", seed=3, **narrow)
assert packtool.verify("store").problems == packtool.verify("back").problems == []
assert sum(len(row) for row in packtool.open("back")) == packtool.stats("packed").ledger.output
"""


def test_two_hundred_shards_with_a_hundred_open_files(make: Make, tmp_path: Path) -> None:
    options = {"strategy": "concat", "sequence_length": 16, "shard_tokens": 32, "seed": 3}
    make([30] * SHARDS, {"per_shard": 1}, expected=options, at=tmp_path)
    python(PROGRAM, cwd=tmp_path)
    assert len(list((tmp_path / "packed").glob("tokens-*.npy"))) > SHARDS / 2
    for name in ("packed", "twice", "back"):
        assert contents(tmp_path / name) == contents(tmp_path / "expected"), name
