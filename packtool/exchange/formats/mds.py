"""MosaicML Streaming's MDS: `index.json` and shards of samples with a column `tokens`; rows also have `seq_lengths`.

A shard: the number of samples (u4), the starts of the samples and the end of the last (u4), the columns as JSON, then
the samples. A sample: the sizes of its columns of variable size (u4), then the columns, sorted by name. An array of
variable shape: the number of dimensions and their width (a byte), then the dimensions, then the elements.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from packtool.exchange.files import FileWriter, named_file, read_json, write_json
from packtool.exchange.formats import samples
from packtool.exchange.model import (
    FILE_BYTES,
    Contents,
    Format,
    Part,
    ReadDocuments,
    ReadOptions,
    SequenceBlock,
    cut,
    damaged,
    pieces,
)
from packtool.exchange.whole_documents import IDS
from packtool.formats.schema import ExportedFile
from packtool.planning.plan import offsets_of
from packtool.support.decoding import from_json

_INDEX = "index.json"
_COLUMNS = ("column_names", "column_encodings", "column_sizes")
_TYPES = {
    8: "uint8",
    9: "int8",
    16: "uint16",
    17: "int16",
    18: "float16",
    32: "uint32",
    33: "int32",
    34: "float32",
    64: "uint64",
    65: "int64",
    66: "float64",
}
"""The types of arrays, by their numbers in samples."""


def _columns(contents: Contents) -> dict[str, Any]:
    """Describe the columns as a shard and the index do."""
    name = contents.dtype.name
    columns: dict[str, tuple[str, int | None]] = {}
    if contents.kind == "rows" and contents.bounded:
        columns["seq_lengths"] = ("ndarray:uint32", None)
    if len(contents.row_lengths) == 1:
        (length,) = contents.row_lengths
        columns["tokens"] = (f"ndarray:{name}:{length}", length * contents.dtype.itemsize)
    else:
        columns["tokens"] = (f"ndarray:{name}", None)
    return {
        "column_encodings": [encoding for encoding, _ in columns.values()],
        "column_names": list(columns),
        "column_sizes": [size for _, size in columns.values()],
        "compression": None,
        "format": "mds",
        "hashes": [],
        "size_limit": FILE_BYTES,
        "version": 2,
    }


def part(directory: Path, contents: Contents, part: Part) -> list[ExportedFile]:
    columns = _columns(contents)
    config = msgspec.json.encode(columns)
    fixed = columns["column_sizes"][-1] is not None
    written = []
    for number, block in enumerate(cut(contents.blocks(part), contents.dtype.itemsize)):
        encoded = [_sample(*sequence, fixed) for sequence in _sequences(block, contents)]
        sizes = np.array(list(map(len, encoded)), np.int64)
        start = 4 + 4 * (len(encoded) + 1) + len(config)
        with FileWriter(directory / f"shard-{part.number:05d}-{number:05d}.mds") as out:
            out.write(np.array([len(encoded)], "<u4"))
            out.write((start + offsets_of(sizes)).astype("<u4"))
            out.write(config)
            out.write(b"".join(encoded))
            written.append(out.finish(len(encoded), len(block.tokens)))
    return written


def _sequences(block: SequenceBlock, contents: Contents) -> list[tuple[npt.NDArray[Any], npt.NDArray[Any] | None]]:
    """Return the tokens of each sequence, and the lengths of its pieces."""
    tokens = block.tokens.astype(contents.dtype, copy=False)
    rows = np.split(tokens, np.cumsum(block.lengths)[:-1])
    if block.segments is None:
        return [(row, None) for row in rows]
    lengths, counts = pieces(block.segments)
    return list(zip(rows, np.split(lengths.astype("<u4"), np.cumsum(counts)[:-1]), strict=True))


def _sample(tokens: npt.NDArray[Any], lengths: npt.NDArray[Any] | None, fixed: bool) -> bytes:
    columns = [] if lengths is None else [_array(lengths)]
    sizes = list(map(len, columns))
    columns.append(tokens.tobytes() if fixed else _array(tokens))
    if not fixed:
        sizes.append(len(columns[-1]))
    return np.array(sizes, "<u4").tobytes() + b"".join(columns)


def _array(values: npt.NDArray[Any]) -> bytes:
    """Return an array as it lies in a sample; its type of numbers is not there, but in the encoding of its column."""
    length = len(values)
    width = 4
    if length < 1 << 8:
        width = 1
    elif length < 1 << 16:
        width = 2
    # The byte before the length: in its upper bits the number of dimensions, in two bits which power of 2 the width is.
    dimensions, power = 1, width.bit_length() - 1
    return bytes([dimensions << 2 | power]) + length.to_bytes(width, "little") + values.tobytes()


def finish(directory: Path, contents: Contents, written: list[ExportedFile]) -> list[ExportedFile]:
    shards = [
        {
            **_columns(contents),
            "raw_data": {"basename": file.name, "bytes": file.bytes, "hashes": {}},
            "samples": file.sequences,
            "zip_data": None,
        }
        for file in written
    ]
    return [write_json(directory / "index.json", {"version": 2, "shards": shards})]


class _File(msgspec.Struct):
    """The entry of a file in an index."""

    basename: str
    bytes: int
    hashes: dict[str, str] = {}


class _Columns(msgspec.Struct):
    """The columns of a shard."""

    column_encodings: list[str]
    column_names: list[str]
    column_sizes: list[int | None]


class _Shard(_Columns, kw_only=True):
    """The entry of a shard in an index."""

    format: str
    version: int
    samples: int
    raw_data: _File
    zip_data: _File | None = None
    compression: str | None = None

    def is_packed(self, path: Path) -> bool:
        """Return whether a file of it is the compressed one."""
        return self.zip_data is not None and path.name == Path(self.zip_data.basename).name

    @property
    def names(self) -> list[str]:
        """The names of its files, from the directory of the index on."""
        return [file.basename for file in (self.raw_data, self.zip_data) if file is not None]


class _Index(msgspec.Struct):
    shards: list[_Shard]


def inside(directory: Path) -> list[Path] | None:
    """List the shards that the index names: as they are read, or compressed."""
    if not (directory / _INDEX).is_file():
        return None
    files = []
    for shard in read_json(directory / _INDEX, _Index).shards:
        packed = shard.zip_data
        if packed is None or (directory / shard.raw_data.basename).is_file():
            files.append(named_file(directory, shard.raw_data.basename))
        else:
            files.append(named_file(directory, packed.basename))
    return files


def read(path: Path, options: ReadOptions) -> Iterator[ReadDocuments]:
    shard = _entry_of(path)
    compression, size = None, None
    if shard is not None:
        _require_as_said(path, shard)
        if shard.is_packed(path):
            compression, size = shard.compression, shard.raw_data.bytes
    with samples.unpacked(path, compression, size) as file:
        offsets = samples.offsets_in(file, path)
        columns = _own_columns(file.read(int(offsets[0]) - file.tell()), path)
        if shard is not None:
            _require_contents(path, shard, len(offsets) - 1, columns)
        leaves = []
        for name, encoding in zip(columns.column_names, columns.column_encodings, strict=True):
            leaves.append(_leaf(name, encoding, options))
        found = (_divided(sample, columns, path) for sample in samples.samples_in(file, offsets, path))
        yield from samples.documents(found, leaves, options, path)


def _require_as_said(path: Path, shard: _Shard) -> None:
    """Require that a file has the version, size and hashes in its index."""
    if (shard.format, shard.version) != ("mds", 2):
        raise damaged(path, f"version {shard.version} of {shard.format} can't be read")
    file = shard.raw_data
    if shard.zip_data is not None and shard.is_packed(path):
        file = shard.zip_data
    if path.stat().st_size != file.bytes:
        raise damaged(path, f"has {path.stat().st_size} bytes, but its index says {file.bytes}")
    samples.require_hashes(path, file.hashes)


def _require_contents(path: Path, shard: _Shard, count: int, columns: _Columns) -> None:
    """Require that a shard has the samples and columns in its index."""
    if shard.samples != count:
        raise damaged(path, f"has {count} samples, but its index says {shard.samples}")
    for name in _COLUMNS:
        if getattr(shard, name) != getattr(columns, name):
            raise damaged(path, "has other columns than its index says")


def _entry_of(path: Path) -> _Shard | None:
    """Return the entry of a shard in its index; None if there is no index, which a shard can be read without."""
    for directory in (path.parent, path.parent.parent):  # a merged index lies above the shards
        if (directory / _INDEX).is_file():
            name = path.relative_to(directory).as_posix()
            for shard in read_json(directory / _INDEX, _Index).shards:
                if name in shard.names:
                    return shard
    return None


def _own_columns(header: bytes, path: Path) -> _Columns:
    try:
        columns = from_json(header, _Columns)
    except ValueError as error:
        raise damaged(path, f"not a shard of MDS: {error}") from None
    if len({len(getattr(columns, name)) for name in _COLUMNS}) > 1:
        raise damaged(path, "has more names than types of columns, or fewer")
    return columns


def _divided(sample: bytes, columns: _Columns, path: Path) -> dict[str, bytes]:
    """Divide a sample into its columns."""
    at = 4 * len(columns.column_sizes)
    at -= 4 * sum(map(bool, columns.column_sizes))  # columns of a fixed size do not say it
    if len(sample) < at:
        raise damaged(path, "a sample is shorter than the sizes of its columns")
    sizes = iter(np.frombuffer(sample[:at], "<u4").tolist())
    found = {}
    for name, size in zip(columns.column_names, columns.column_sizes, strict=True):
        length = size or next(sizes)
        if not 0 <= length <= len(sample) - at:
            raise damaged(path, f"column {name} of a sample reaches beyond it")
        found[name] = sample[at : at + length]
        at += length
    if at != len(sample):
        raise damaged(path, "a sample is longer than its columns")
    return found


def _leaf(name: str, encoding: str, options: ReadOptions) -> samples.Leaf:
    """Return how to read a column of this encoding.

    A column of bytes does not have the type of its numbers; llm-foundry writes ids of 64 bits.
    """
    kind, *given = encoding.split(":")
    if kind == "bytes" and name in (options.field, *IDS):
        dtype = options.dtype if options.asked else np.dtype("<i8")
        return samples.Leaf(name, encoding, partial(samples.numbers, dtype=dtype))
    if kind != "ndarray" or len(given) > 2 or not set(given[:1]) <= set(_TYPES.values()):
        return samples.Leaf(name, encoding, None)
    decode = partial(_from_array, dtype=None, shape=None)
    if given:
        decode = partial(decode, dtype=np.dtype(given[0]))
    if len(given) == 2:
        decode = partial(decode, shape=given[1])
    return samples.Leaf(name, encoding, decode)


def _from_array(data: bytes, dtype: np.dtype[Any] | None, shape: str | None) -> npt.NDArray[Any]:
    """Read an array; the parts of it that the encoding does not fix come before its values."""
    if dtype is None:
        if not data or data[0] not in _TYPES:
            raise ValueError("it has no type of numbers")
        dtype, data = np.dtype(_TYPES[data[0]]), data[1:]
    if shape is not None:
        values = samples.numbers(data, dtype)
        if str(len(values)) != shape:
            raise ValueError(f"it has {len(values)} values, not {shape}")
        return values
    if not data:
        raise ValueError("it has no dimensions")
    dimensions, width = data[0] >> 2, 1 << (data[0] & 3)
    if dimensions != 1:
        raise ValueError(f"it has {dimensions} dimensions, not one")
    values = samples.numbers(data[1 + width :], dtype)
    length = int.from_bytes(data[1 : 1 + width], "little")
    if length != len(values):
        raise ValueError(f"it has {len(values)} values, not {length}")
    return values


FORMAT = Format(
    name="mds",
    readers="llm-foundry, Composer",
    summary="MDS: `tokens`; of rows also `seq_lengths`",
    files="*.mds",
    documents=True,
    boundaries=True,
    several_lengths=True,
    columns=True,
    bare=True,
    companions=lambda path: [path.with_name(_INDEX)],
    part=part,
    finish=finish,
    read=read,
    inside=inside,
)
