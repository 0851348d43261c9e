"""Files of samples, in MDS and litdata: their number (u4), their begins and the end of the last (u4), then the samples.

A sample has columns. They are read as arrays, by name, and turned into documents like the rows of a table.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import xxhash

from packtool.errors import DataError
from packtool.exchange.formats.raw import shortened
from packtool.exchange.model import ReadDocuments, ReadOptions, damaged, groups
from packtool.exchange.whole_documents import ForeignRow, beside, id_column
from packtool.exchange.whole_documents import documents as of_rows
from packtool.planning.plan import I64
from packtool.text.corpus.decompress import open_stream, read_whole
from packtool.text.corpus.records import in_words
from packtool.text.faults import Fault

READ_BYTES = 1 << 23
"""Bytes of samples that are held at a time."""
LARGEST = 1 << 32
"""Bytes of a file: places in it have 32 bits."""
_STREAMED = {"gz": "gzip", "bz2": "bz2", "zstd": "zstd"}
SampleIds = npt.NDArray[Any]
DecodeIds = Callable[[bytes], SampleIds]
"""Function from the bytes of a sample's column to its numbers; it raises a ValueError for other bytes."""


class Leaf(NamedTuple):
    """A column of every sample."""

    name: str
    kind: str  # its type, as the format has it, for messages
    decode: DecodeIds | None  # None for types that hold no lists of numbers


def unpacked(path: Path, compression: str | None, size: int | None, start: int = 0) -> BinaryIO:
    """Open a file that is compressed as a whole; its decompressed contents are held in memory.

    Args:
        compression: gz, bz2, br, snappy or zstd, perhaps with a level (`zstd:7`); None for a plain file.
        size: decompressed size in bytes; None if it is unknown.
        start: where the stream begins, of gz, bz2 and zstd.

    Raises:
        DataError: damaged, of another size, or compressed otherwise.
    """
    if not compression:
        return path.open("rb")
    kind = compression.partition(":")[0]
    if size is not None and size >= LARGEST:
        raise damaged(path, f"is said to unpack to {size} bytes, which no such file holds")
    most = LARGEST if size is None else size
    try:
        if kind in _STREAMED:
            with path.open("rb") as raw:
                raw.seek(start)
                data = read_whole(open_stream(raw, _STREAMED[kind]), most)
        elif kind == "br":
            with pa.CompressedInputStream(pa.OSFile(str(path)), "brotli") as stream:
                data = read_whole(stream, most)
        elif kind == "snappy" and size is not None:
            data = pa.decompress(path.read_bytes(), size, codec=kind, asbytes=True)
        else:
            what, remedy = f"compressed as {compression}, which can't be read here", "write it without compression"
            raise DataError("damaged-input", what, remedy=remedy, where=str(path))
    except Fault as fault:
        raise damaged(path, fault.what) from None
    except (pa.ArrowException, OSError, ValueError, MemoryError) as error:
        raise damaged(path, f"damaged {kind} stream: {in_words(error)}") from None
    if data is None or size not in (None, len(data)):
        raise damaged(path, "unpacks to another size than its index says")
    return io.BytesIO(data)


def require_hashes(path: Path, hashes: Mapping[str, str]) -> None:
    """Require that a file has the hashes in its index, given by the name of the algorithm.

    Raises:
        DataError: it has not, or the algorithm is not known.
    """
    for name, expected in hashes.items():
        made: Any = getattr(xxhash, name, None) if name in xxhash.algorithms_available else None
        if made is None and name in hashlib.algorithms_available:
            made = partial(hashlib.new, name)
        if made is None:
            raise damaged(path, f"its index has a hash {name}, which is not known here")
        hashed = made()
        with path.open("rb") as file:
            while data := file.read(READ_BYTES):
                hashed.update(data)
        if hashed.hexdigest() != expected:
            raise damaged(path, f"its {name} is not the one that its index says")


def offsets_in(file: BinaryIO, path: Path) -> I64:
    """Read where each sample begins, and the last ends, in bytes.

    Raises:
        DataError: they do not divide the rest of the file.
    """
    size = file.seek(0, io.SEEK_END)
    file.seek(0)
    count = int.from_bytes(file.read(4), "little")
    first = 4 * (count + 2)
    if size < first:
        raise damaged(path, f"shorter than {count} samples need, which it says it has")
    offsets = np.frombuffer(file.read(4 * (count + 1)), "<u4").astype(np.int64)
    if len(offsets) != count + 1:
        raise shortened(path)
    if offsets[0] < first or (offsets[1:] < offsets[:-1]).any() or offsets[-1] != size:
        raise damaged(path, f"the places of its {count} samples do not divide its {size} bytes")
    return offsets


def samples_in(file: BinaryIO, offsets: I64, path: Path) -> Iterator[bytes]:
    """Yield the bytes of each sample."""
    file.seek(int(offsets[0]))
    for start, end in groups(offsets, READ_BYTES):
        near = (offsets[start : end + 1] - offsets[start]).tolist()
        data = file.read(near[-1])
        if len(data) != near[-1]:
            raise shortened(path)
        for first, last in pairwise(near):
            yield data[first:last]


def columns_to_read(leaves: Iterable[Leaf], options: ReadOptions, path: Path) -> list[Leaf]:
    """List the columns to read: the column of ids, then the columns that may describe them.

    Raises:
        DataError: there are no ids, or something in their place.
    """
    leaves = list(leaves)
    ids = id_column([leaf.name for leaf in leaves], options, str(path))
    wanted = [leaf for leaf in leaves if leaf.name == ids]
    if not options.ids_only:
        others = [leaf for leaf in leaves if leaf.name != ids]
        wanted += [leaf for leaf in others if beside(leaf.name, is_list=leaf.decode is not None)]
    for leaf in wanted:
        if leaf.decode is None or len({each.name for each in wanted}) < len(wanted):
            what = f"column {leaf.name} is of type {leaf.kind}, not a list of numbers"
            raise DataError("bad-ids", what, remedy="check --field, or give --ids-only=True", where=str(path))
    return wanted


def documents(
    samples: Iterable[Mapping[str, bytes]], leaves: list[Leaf], options: ReadOptions, path: Path
) -> Iterator[ReadDocuments]:
    """Yield the documents of samples.

    Args:
        samples: the bytes of each column.
        leaves: all columns.
    """
    ids, *others = columns_to_read(leaves, options, path)

    def row(number: int, sample: Mapping[str, bytes]) -> ForeignRow:
        columns = {}
        for leaf in others:
            columns[leaf.name] = _decoded(leaf, sample[leaf.name], number, path)
        found = _decoded(ids, sample[ids.name], number, path)
        if found.dtype.kind not in "iu":
            what = f"column {ids.name} is of type {ids.kind}, not a list of whole numbers"
            raise DataError("bad-ids", what, remedy="check --field", where=str(path))
        return ForeignRow(f"{path}, sample {number}", found, columns)

    return of_rows((row(number, sample) for number, sample in enumerate(samples)), options)


def _decoded(leaf: Leaf, data: bytes, number: int, path: Path) -> SampleIds:
    assert leaf.decode is not None
    try:
        return leaf.decode(data)
    except ValueError as error:
        raise damaged(path, f"sample {number}: column {leaf.name}, {leaf.kind}: {error}") from None


def numbers(data: bytes, dtype: np.dtype[Any]) -> SampleIds:
    """Read numbers, one after the other; raise a ValueError where the bytes are no whole number of them."""
    if len(data) % dtype.itemsize:
        raise ValueError(f"{len(data)} bytes are no whole number of {dtype.name}")
    return np.frombuffer(data, dtype)
