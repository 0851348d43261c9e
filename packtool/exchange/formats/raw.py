"""Files of bare token ids, one after the other, which all parts of an export fill."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from packtool.errors import DataError
from packtool.exchange.files import FileWriter
from packtool.exchange.model import READ_TOKENS, Contents, Part, ReadDocuments, ReadOptions, SequenceBlock, damaged
from packtool.formats.schema import ExportedFile
from packtool.text.corpus.records import in_words

_NUMPY = b"\x93NUMPY"
_ENOUGH = 16  # ids from which a pattern in them is hardly chance


def fill(directory: Path, name: str, contents: Contents, part: Part, dtype: np.dtype[Any]) -> list[ExportedFile]:
    """Write the ids of one part to their place in the file of all parts."""
    with FileWriter(directory / name, part.first_token * dtype.itemsize) as out:
        return [out.finish(*write_ids(out, contents.blocks(part), dtype))]


def write_ids(out: FileWriter, blocks: Iterable[SequenceBlock], dtype: np.dtype[Any]) -> tuple[int, int]:
    """Append the ids of some blocks; returns the sequences and tokens that were written."""
    sequences = tokens = 0
    for block in blocks:
        ids = block.tokens.astype(dtype, copy=False)  # they fit: formats check the vocabulary
        out.write(ids)
        sequences += len(block.lengths)
        tokens += len(ids)
    return sequences, tokens


def bare_ids(path: Path, options: ReadOptions) -> Iterator[ReadDocuments]:
    """Read the ids of a file without boundaries that does not say of which type they are; a NumPy file does.

    Raises:
        DataError: it does not hold a whole number of ids, or they are of another type.
    """
    with path.open("rb") as file:
        is_numpy = file.read(len(_NUMPY)) == _NUMPY
    if not is_numpy:
        yield from ids_in(path, options.dtype, check_size=not options.asked)
        return
    dtype, first = _numpy_header(path)
    if options.asked and dtype.newbyteorder("<") != options.dtype:
        what = f"a NumPy file of {dtype.name}, but --dtype={options.dtype.name} is given"
        raise DataError("damaged-input", what, remedy="leave --dtype out: the file says it", where=str(path))
    yield from ids_in(path, dtype, first)


def _numpy_header(path: Path) -> tuple[np.dtype[Any], int]:
    """Return the type of the ids of a NumPy file, and the byte at which they begin."""
    with path.open("rb") as file:
        try:
            version = np.lib.format.read_magic(file)
            header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            shape, _, dtype = header(file)
        except Exception as error:  # NumPy lets through what Python's own parser raises at the header
            raise damaged(path, f"a NumPy file with a damaged header ({in_words(error)})") from None
        first = file.tell()
    if dtype.kind not in "iu" or len(shape) != 1:
        what = f"a NumPy file of {dtype.name} in {len(shape)} dimensions, not ids one after the other"
        remedy = "save the ids of whole documents as one array of whole numbers"
        raise DataError("damaged-input", what, remedy=remedy, where=str(path))
    size = path.stat().st_size
    if size != first + shape[0] * dtype.itemsize:
        raise damaged(path, f"a NumPy file of {size} bytes, whose header says {shape[0]} values of {dtype.name}")
    return dtype, first


def ids_in(path: Path, dtype: np.dtype[Any], first: int = 0, *, check_size: bool = False) -> Iterator[ReadDocuments]:
    """Read ids from byte `first` of a file without boundaries.

    Args:
        check_size: refuse ids that look as if they were of a larger type.

    Raises:
        DataError: it does not hold a whole number of ids, or they are of another type.
    """
    size = path.stat().st_size - first
    if size % dtype.itemsize:
        what = f"{size} bytes of ids are not a multiple of {dtype.itemsize}, the size of one"
        remedy = "check the file and its format; ids may be of another size: give --dtype"
        raise DataError("damaged-input", what, remedy=remedy, where=str(path))
    total = size // dtype.itemsize
    last = None
    with path.open("rb") as file:
        if total:
            file.seek(first + size - dtype.itemsize)
            last = int(read_ids(file, dtype, 1, path)[0])
        file.seek(first)
        for start in range(0, total, READ_TOKENS):
            stop = min(start + READ_TOKENS, total)
            ids = read_ids(file, dtype, stop - start, path)
            if check_size and start == 0:
                _require_size(ids, path)
            yield ReadDocuments(ids, None, last=last)


def _require_size(ids: np.ndarray[Any, np.dtype[Any]], path: Path) -> None:
    """Refuse ids of which every second one is 0: small numbers of a larger type look like that."""
    if len(ids) >= _ENOUGH and len(ids) % 2 == 0 and not ids[1::2].any() and ids[::2].any():
        what = f"every second id of {8 * ids.dtype.itemsize} bits is 0, as if ids were larger"
        remedy = (
            f"give --dtype=uint{16 * ids.dtype.itemsize}, or --dtype={ids.dtype.name} if they are as they should be"
        )
        raise DataError("damaged-input", what, remedy=remedy.replace("uint64", "int64"), where=str(path))


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
