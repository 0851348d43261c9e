"""Scratch files of a shuffle beyond memory: atoms with keys, segments and tokens, appended block by block.

A file has one task's share of one partition. A block is a header (numbers of atoms, units and segments, `<i8`) and the
columns of `Atoms`, one after the other.
"""

from __future__ import annotations

import io
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import xxhash

from packtool.errors import DataError
from packtool.formats.names import SEGMENT
from packtool.places.local import LocalPlace
from packtool.places.place import Place

_AHEAD = 4  # objects of a partition that are fetched while another one is read
_HEADER = np.dtype("<i8")
_COUNTED = (0, 0, 1, 2, 1)  # the count in the header that is the length of each column: of atoms, units or segments


class ScratchFile(NamedTuple):
    """A file of atoms: its place, its name there, and the xxh3-128 of its bytes."""

    place: Place
    name: str
    xxh3_128: str


class Atoms(NamedTuple):
    """Some atoms, in stored order."""

    keys: npt.NDArray[np.uint64]  # (atoms,) the keys by which they are sorted
    units: npt.NDArray[np.uint32]  # (atoms,) numbers of units in the atoms
    unit_segments: npt.NDArray[np.uint32]  # (units,) numbers of segments in the units
    segments: npt.NDArray[Any]  # (segments,) records of `SEGMENT`
    tokens: npt.NDArray[Any]  # (units, unit) the tokens of each unit

    @property
    def counts(self) -> tuple[int, int, int]:
        """Atoms, units and segments."""
        return len(self.keys), len(self.tokens), len(self.segments)

    def head(self, atoms: int, units: int, segments: int) -> Atoms:
        """Return the first of them, as views."""
        counts = atoms, units, segments
        columns: tuple[npt.NDArray[Any], ...] = self
        return Atoms(*(column[: counts[which]] for column, which in zip(columns, _COUNTED, strict=True)))


def empty_atoms(atoms: int, units: int, segments: int, *, unit: int, dtype: np.dtype[Any]) -> Atoms:
    """Allocate uninitialised atoms."""
    return Atoms(
        np.empty(atoms, np.uint64),
        np.empty(atoms, np.uint32),
        np.empty(units, np.uint32),
        np.empty(segments, SEGMENT),
        np.empty((units, unit), dtype),
    )


def append(path: Path, atoms: Atoms, hashed: xxhash.xxh3_128) -> None:
    """Add a block at the end of a file, and to the hash of the file."""
    # Blocks are small and many: joining their columns takes less time than writing and hashing them one by one.
    block = b"".join(np.ascontiguousarray(column).data for column in (np.array(atoms.counts, _HEADER), *atoms))
    hashed.update(block)
    with path.open("ab") as file:
        file.write(block)


def read(files: Sequence[ScratchFile], whole: Atoms) -> None:
    """Read all blocks of these files, in order, into one that is as large as all of them.

    Raises:
        DataError: a file is not what was written.
    """
    first = np.zeros(3, np.int64)
    columns: tuple[npt.NDArray[Any], ...] = whole
    for opened, scratch in zip(_opened(files), files, strict=True):
        hashed = xxhash.xxh3_128()
        with opened as file:
            while len(header := file.read(_HEADER.itemsize * len(first))) == _HEADER.itemsize * len(first):
                hashed.update(header)
                last = first + np.frombuffer(header, _HEADER)
                for column, which in zip(columns, _COUNTED, strict=True):
                    target = column[first[which] : last[which]].reshape(-1).view(np.uint8).data
                    file.readinto(target)
                    hashed.update(target)
                first = last
        if hashed.hexdigest() != scratch.xxh3_128:
            what = "an unfinished file is gone, or has changed since it was written, as after a power failure"
            remedy = "start again with --overwrite=True"
            raise DataError("damaged-scratch", what, remedy=remedy, where=scratch.place.where(scratch.name))


def _opened(files: Sequence[ScratchFile]) -> Iterator[io.BufferedReader | io.BytesIO]:
    """Yield these files, opened; a missing file is empty. Files in object stores are fetched ahead, a few at a time."""
    if all(isinstance(file.place, LocalPlace) for file in files):
        yield from map(_open, files)
        return
    with ThreadPoolExecutor(_AHEAD) as pool:
        coming = deque(pool.submit(_open, file) for file in files[:_AHEAD])
        for file in files[_AHEAD:]:
            coming.append(pool.submit(_open, file))
            yield coming.popleft().result()
        for opened in coming:
            yield opened.result()


def _open(file: ScratchFile) -> io.BufferedReader | io.BytesIO:
    try:
        if isinstance(file.place, LocalPlace):
            return (file.place.path / file.name).open("rb")
        return io.BytesIO(file.place.read(file.name))
    except FileNotFoundError:
        return io.BytesIO()
