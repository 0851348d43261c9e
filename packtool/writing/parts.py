"""Scratch files of a shuffle beyond memory: atoms with their keys, pieces and tokens, appended chunk by chunk.

A file is one task's share of one part. A chunk is a header (atoms, units and pieces in it, `<i8`) and the columns of
`Chunk`, one after the other.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import xxhash

from packtool.errors import DataError
from packtool.storage.packed import SEGMENT

_HEADER = np.dtype("<i8")
_COUNTED = (0, 0, 1, 2, 1)
"""Which of the counts in the header each column has: atoms, units or pieces."""


@dataclass(frozen=True)
class Chunk:
    """Some atoms, in stored order.

    Attributes:
        keys: (atoms,) what sorts them.
        atom_units: (atoms,) units in each atom.
        unit_pieces: (units,) pieces in each unit.
        pieces: (pieces,) of `SEGMENT`.
        tokens: (units, unit).
    """

    keys: npt.NDArray[np.uint64]
    atom_units: npt.NDArray[np.uint32]
    unit_pieces: npt.NDArray[np.uint32]
    pieces: npt.NDArray[Any]
    tokens: npt.NDArray[Any]

    @property
    def counts(self) -> tuple[int, int, int]:
        """Atoms, units and pieces."""
        return len(self.keys), len(self.tokens), len(self.pieces)

    def head(self, atoms: int, units: int, pieces: int) -> Chunk:
        """Its first atoms, units and pieces."""
        counts = atoms, atoms, units, pieces, units
        return Chunk(*(column[:count] for column, count in zip(self.columns, counts, strict=True)))

    @property
    def columns(self) -> tuple[npt.NDArray[Any], ...]:
        return self.keys, self.atom_units, self.unit_pieces, self.pieces, self.tokens


def empty_chunk(atoms: int, units: int, pieces: int, *, unit: int, dtype: np.dtype[Any]) -> Chunk:
    """A chunk of this size, to be filled."""
    return Chunk(
        np.empty(atoms, np.uint64),
        np.empty(atoms, np.uint32),
        np.empty(units, np.uint32),
        np.empty(pieces, SEGMENT),
        np.empty((units, unit), dtype),
    )


def append(path: Path, chunk: Chunk, hashed: xxhash.xxh3_128) -> None:
    """Add a chunk at the end of a file, and to the hash of the file."""
    with path.open("ab") as file:
        for data in (np.array(chunk.counts, _HEADER), *chunk.columns):
            view = np.ascontiguousarray(data).reshape(-1).view(np.uint8).data
            hashed.update(view)
            file.write(view)


def read(files: Iterable[tuple[Path, str]], whole: Chunk) -> None:
    """Read all chunks of these files as one.

    Args:
        files: paths, and the xxh3-128 of each one's bytes.
        whole: as large as all of them, to be filled.

    Raises:
        DataError: a file is not what was written.
    """
    first = np.zeros(3, np.int64)
    for path, digest in files:
        hashed = xxhash.xxh3_128()
        with path.open("rb") as file:
            while header := file.read(_HEADER.itemsize * len(first)):
                hashed.update(header)
                last = first + np.frombuffer(header, _HEADER)
                for column, which in zip(whole.columns, _COUNTED, strict=True):
                    target = column[first[which] : last[which]].reshape(-1).view(np.uint8).data
                    file.readinto(target)
                    hashed.update(target)
                first = last
        if hashed.hexdigest() != digest:
            raise DataError(
                "damaged-scratch",
                "an unfinished file has changed since it was written, as after a power failure",
                remedy="start again with --overwrite",
                where=str(path),
            )
