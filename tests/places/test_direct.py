"""Slices read around the page cache are those of the files: in any thread, after a fork, and after an interruption."""

from __future__ import annotations

import os
import platform
import signal
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from packtool.errors import DataError
from packtool.places.direct import DirectReader, NoWayAroundError, block_of, bypass_cache
from packtool.places.slices import SliceReader
from tests.places.test_slices import written

SIZES = (1, 511, 4096, 4097, 200_000)
TOGETHER = 32


class Files:
    """Open files of random bytes that are read around the page cache."""

    def __init__(self, directory: Path) -> None:
        self.contents = [np.random.default_rng(size).bytes(size) for size in SIZES]
        for number, content in enumerate(self.contents):
            (directory / str(number)).write_bytes(content)
        self.handles = [os.open(directory / str(number), os.O_RDONLY) for number in range(len(SIZES))]
        try:
            for handle in self.handles:
                bypass_cache(handle)
            self.block = block_of(self.handles[0])
        except NoWayAroundError:
            pytest.skip("this system has no way around its page cache")

    def require(self, read: DirectReader, number: list[int], first: list[int], size: list[int]) -> None:
        """Require that these slices are read as they are in the files."""
        handles = np.array([self.handles[each] for each in number])
        found = read(handles, np.array(first), np.array(size), self.block)
        assert found == [self.contents[n][at : at + many] for n, at, many in zip(number, first, size, strict=True)]

    def random(self, read: DirectReader, rng: np.random.Generator) -> None:
        """Read slices drawn at random."""
        number = rng.integers(0, len(SIZES), rng.integers(1, TOGETHER))
        sizes = np.array(SIZES)[number]
        first = (rng.random(len(number)) * sizes).astype(np.int64)
        size = 1 + (rng.random(len(number)) * (sizes - first - 1)).astype(np.int64)
        self.require(read, number.tolist(), first.tolist(), size.tolist())


@pytest.fixture(scope="module")
def files() -> Iterator[Files]:
    with tempfile.TemporaryDirectory(dir="/var/tmp") as directory:
        opened = Files(Path(directory))
        yield opened
        for handle in opened.handles:
            os.close(handle)


@given(data=st.data())
def test_slices_are_those_of_the_files(files: Files, data: st.DataObject) -> None:
    read = DirectReader(TOGETHER)
    for _ in range(2):
        number = data.draw(st.lists(st.integers(0, len(SIZES) - 1), min_size=1, max_size=TOGETHER))
        first = [data.draw(st.integers(0, SIZES[each] - 1)) for each in number]
        size = [data.draw(st.integers(1, SIZES[n] - at)) for n, at in zip(number, first, strict=True)]
        files.require(read, number, first, size)


def test_what_lies_beyond_the_end_of_a_file_is_an_error_and_the_next_slices_are_right(files: Files) -> None:
    read = DirectReader(TOGETHER)
    with pytest.raises(NoWayAroundError):
        files.require(read, [4, 1, 3], [0, 500, 4090], [9, 12, 7])
    files.require(read, [4, 1, 3], [0, 500, 4090], [9, 11, 7])
    with pytest.raises(NoWayAroundError):
        read(np.array([-1]), np.array([0]), np.array([1]), files.block)
    files.require(read, [2], [1], [4095])


def test_threads_do_not_read_each_others_slices(files: Files) -> None:
    read, wrong = DirectReader(TOGETHER), list[BaseException]()

    def some(seed: int) -> None:
        rng = np.random.default_rng(seed)
        try:
            for _ in range(200):
                files.random(read, rng)
        except BaseException as error:  # a thread's own would be lost
            wrong.append(error)

    threads = [threading.Thread(target=some, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_forked_process_reads_for_itself(files: Files) -> None:
    read = DirectReader(TOGETHER)
    files.random(read, np.random.default_rng(0))
    child = os.fork()
    for number in range(200):
        files.random(read, np.random.default_rng(number + (child == 0)))
    if child == 0:
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_an_interruption_leaves_nothing_to_the_next_slices(files: Files) -> None:
    read, rng, interrupted = DirectReader(TOGETHER), np.random.default_rng(0), 0

    def interrupt(*_: object) -> None:
        raise InterruptedError

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        for _ in range(300):
            try:
                signal.setitimer(signal.ITIMER_REAL, rng.random() * 1e-3)
                for _ in range(20):
                    files.random(read, rng)
                signal.setitimer(signal.ITIMER_REAL, 0)
            except InterruptedError:
                interrupted += 1
            files.random(read, rng)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert interrupted > 100


def test_a_signal_that_is_handled_changes_nothing(files: Files) -> None:
    read, rng, handled = DirectReader(TOGETHER), np.random.default_rng(0), list[int]()
    before = signal.signal(signal.SIGALRM, lambda number, _: handled.append(number))
    signal.setitimer(signal.ITIMER_REAL, 1e-4, 1e-4)
    try:
        for _ in range(1000):
            files.random(read, rng)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert len(handled) > 100


def beyond_memory(directory: Path, arrays: list[np.ndarray]) -> SliceReader:
    """Read slices of arrays as if they were more than memory holds, so that the page cache has been found no help."""
    read = SliceReader(written(directory, *arrays), np.dtype("<u2"), memory=1)
    while not read.trial.around:
        read.trial.note(1, read=1)
    read.pays(1000, 1000)
    return read


def test_a_reader_goes_around_the_cache_only_where_it_is_no_help(disk: Path) -> None:
    arrays = [np.arange(10_000, dtype="<u2") + number for number in range(3)]
    read = beyond_memory(disk, arrays)
    number, first, count = np.arange(20) % 3, np.arange(20) * 400, np.arange(20) * 100
    wanted = [arrays[n][at : at + many].tobytes() for n, at, many in zip(number, first, count, strict=True)]
    assert read(number, first, count) == wanted
    assert read(number[:0], first[:0], count[:0]) == []
    assert read.direct is not None, "this system can't read around its page cache"
    os.truncate(disk / "tokens-00001.npy", 8000)
    with pytest.raises(DataError, match=r"tokens-00001.npy: has 8000 bytes, but an array of shape"):
        read(number, first, count)


def test_a_system_without_a_way_around_reads_through_the_cache(disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "abacus")
    read = beyond_memory(disk, [np.arange(100, dtype="<u2")])
    number = np.zeros(20, np.int64)
    assert read(number, np.arange(20), number + 2) == [np.arange(at, at + 2, dtype="<u2").tobytes() for at in range(20)]
    assert read.direct is None
