"""What formats of bare token ids share: a file of ids, one after the other, that the parts fill."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from packtool.errors import DataError
from packtool.exchange.files import Place, Written, as_stored
from packtool.exchange.model import Contents, Found, Part

READ_TOKENS = 1 << 22
"""Ids that a reader hands out at a time."""


def fill(place: Place, name: str, contents: Contents, part: Part, dtype: np.dtype[Any]) -> list[Written]:
    """Write the ids of one part to their place in the file of all parts."""
    tokens = sequences = 0
    with place.region(name, part.first_token * dtype.itemsize) as file:
        for block in contents.blocks(part):
            file.write(as_stored(block.tokens, dtype))
            tokens += len(block.tokens)
            sequences += len(block.lengths)
        return [file.written(sequences, tokens)]


def ids_in(path: Path, dtype: np.dtype[Any], first: int = 0) -> Iterator[Found]:
    """Ids from byte `first` of a file without boundaries.

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
    if size:
        tokens = np.memmap(path, dtype, "r", offset=first)
        for begin in range(0, len(tokens), READ_TOKENS):
            yield Found(tokens[begin : begin + READ_TOKENS], None)
