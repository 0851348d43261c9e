"""llm.c's `.bin`: a header of 256 numbers (i4), then the ids.

The header: a magic number and a version that tell the size of an id (20240520, 1: 16 bits, as for GPT-2; 20240801, 7:
32 bits, as for Llama 3), then how many there are.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from packtool.errors import DataError, UsageError
from packtool.exchange.files import FileWriter
from packtool.exchange.formats.raw import ids_in, write_ids
from packtool.exchange.model import Contents, Format, Part, ReadDocuments, ReadOptions, damaged
from packtool.formats.schema import ExportedFile

_HEADER = 256
_KINDS = {"<u2": (20240520, 1), "<u4": (20240801, 7)}
_MOST = (1 << 31) - 1


def part(directory: Path, contents: Contents, part: Part) -> list[ExportedFile]:
    dtype = FORMAT.dtype(contents)
    if part.tokens > _MOST:
        what = f"shard {part.number} has {part.tokens} tokens, and llmc holds {_MOST} in a file"
        raise UsageError("format-too-small", what, remedy="pack with a smaller --shard-tokens", where="--format")
    header = np.zeros(_HEADER, "<i4")
    header[:3] = (*_KINDS[dtype.str], part.tokens)
    with FileWriter(directory / f"train-{part.number:05d}.bin") as out:
        out.write(header)
        return [out.finish(*write_ids(out, contents.blocks(part), dtype))]


def read(path: Path, _: ReadOptions) -> Iterator[ReadDocuments]:
    with path.open("rb") as file:
        header = np.frombuffer(file.read(4 * _HEADER).ljust(4 * _HEADER, b"\0"), "<i4")
    names = [name for name, kind in _KINDS.items() if kind == tuple(header[:2].tolist())]
    if not names:
        raise DataError("damaged-input", "not an llm.c file", remedy="check the file and --format", where=str(path))
    dtype = np.dtype(names[0])
    size = path.stat().st_size - 4 * _HEADER
    if size != int(header[2]) * dtype.itemsize:
        raise damaged(path, f"has {size} bytes of ids, but its header says {header[2]} of {dtype.itemsize} bytes")
    return ids_in(path, dtype, 4 * _HEADER)


FORMAT = Format(
    name="llmc",
    readers="llm.c, NeMo AutoModel",
    summary="`.bin` with a header of 1,024 bytes",
    files="*.bin",
    blocks=True,
    part=part,
    read=read,
)
