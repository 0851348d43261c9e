"""Files of bare token ids, one after the other, which all parts of an export fill."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from packtool.errors import DataError
from packtool.exchange.files import FileWriter
from packtool.exchange.model import Block, Contents, Found, Part
from packtool.formats.schema import ExportedFile

READ_TOKENS = 1 << 22
"""Ids that a reader hands out at a time."""


def fill(directory: Path, name: str, contents: Contents, part: Part, dtype: np.dtype[Any]) -> list[ExportedFile]:
    """Write the ids of one part to their place in the file of all parts."""
    with FileWriter(directory / name, part.first_token * dtype.itemsize) as out:
        return [out.finish(*write_ids(out, contents.blocks(part), dtype))]


def write_ids(out: FileWriter, blocks: Iterable[Block], dtype: np.dtype[Any]) -> tuple[int, int]:
    """Append the ids of some blocks; returns the sequences and tokens that were written."""
    sequences = tokens = 0
    for block in blocks:
        ids = block.tokens.astype(dtype, copy=False)  # they fit: formats check the vocabulary
        out.write(ids)
        sequences += len(block.lengths)
        tokens += len(ids)
    return sequences, tokens


def ids_in(path: Path, dtype: np.dtype[Any], first: int = 0) -> Iterator[Found]:
    """Read ids from byte `first` of a file without boundaries.

    Raises:
        DataError: it does not hold a whole number of ids.
    """
    size = path.stat().st_size - first
    if size % dtype.itemsize:
        raise DataError(
            "damaged-input",
            f"{size} bytes of ids are not a multiple of {dtype.itemsize}, the size of one",
            remedy="check the file and its format; ids may be of another size: give --dtype",
            where=str(path),
        )
    total = size // dtype.itemsize
    with path.open("rb") as file:
        file.seek(first)
        for begin in range(0, total, READ_TOKENS):
            end = min(begin + READ_TOKENS, total)
            yield Found(read_ids(file, dtype, end - begin, path), None, None)


def read_ids(file: BinaryIO, dtype: np.dtype[Any], count: int, path: Path) -> np.ndarray[Any, np.dtype[Any]]:
    """Read the next ids of a file. It is not mapped: where a mapped file is cut meanwhile, the process is killed.

    Raises:
        DataError: the file has become shorter.
    """
    ids = np.fromfile(file, dtype, count)
    if len(ids) < count:
        raise shortened(path)
    return ids


def shortened(path: Path) -> DataError:
    """Return the error of a file that was cut while it was read."""
    what, remedy = "became shorter while it was read", "import it when nothing writes to it any more"
    return DataError("damaged-input", what, remedy=remedy, where=str(path))
