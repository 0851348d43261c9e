"""Megatron-Core's indexed dataset: `tokens.bin` holds the ids of all sequences, `tokens.idx` where they are.

The index: the magic, version 1 (u8), the code of the type (u1), the numbers of sequences and of document bounds (u8);
then the length of each sequence (i4), its first byte (i8), and the sequences at which documents begin (i8).
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from packtool.errors import DataError, UsageError
from packtool.exchange.files import FileWriter, missing, publish
from packtool.exchange.formats.raw import fill, shortened
from packtool.exchange.model import READ_TOKENS, Contents, Format, Part, ReadDocuments, ReadOptions, damaged, groups
from packtool.formats.schema import ExportedFile
from packtool.planning.plan import I64, offsets_of

_MAGIC = b"MMIDIDX\x00\x00"
_HEAD = struct.Struct("<9sQBQQ")
_CODES = {1: "<u1", 2: "<i1", 3: "<i2", 4: "<i4", 5: "<i8", 8: "<u2"}
_LONGEST = (1 << 31) - 1


def part(directory: Path, contents: Contents, part: Part) -> list[ExportedFile]:
    dtype = FORMAT.dtype(contents)
    return fill(directory, "tokens.bin", contents, part, dtype)


def finish(directory: Path, contents: Contents, written: list[ExportedFile]) -> list[ExportedFile]:
    """Write the index last: without it, Megatron finds no dataset."""
    dtype, count = FORMAT.dtype(contents), contents.sequences
    ids = publish(directory / "tokens.bin", written)
    code = next(code for code, name in _CODES.items() if name == dtype.str)
    with FileWriter(directory / "tokens.idx") as out:
        out.write(_HEAD.pack(_MAGIC, 1, code, count, count + 1))
        lengths = np.concatenate([np.empty(0, np.int64), *map(contents.lengths, contents.parts)])
        if len(lengths) and lengths.max() > _LONGEST:
            what = f"a document of {lengths.max()} tokens is longer than megatron can hold"
            raise UsageError("format-too-small", what, remedy="choose another format", where="--format")
        out.write(lengths.astype("<i4"))
        out.write((offsets_of(lengths)[:-1] * dtype.itemsize).astype("<i8"))
        out.write(np.arange(count + 1, dtype="<i8"))
        return [ids, out.finish()]


def read(path: Path, _: ReadOptions) -> Iterator[ReadDocuments]:
    """Read the documents of an index and its file of ids."""
    size = path.stat().st_size
    with path.open("rb") as file:
        head = file.read(_HEAD.size)
    if len(head) < _HEAD.size or not head.startswith(_MAGIC):
        raise damaged(path, "not an index of Megatron-Core")
    _, version, code, sequences, bounds = _HEAD.unpack(head)
    if version != 1 or code not in _CODES:
        raise damaged(path, f"version {version} with ids of type {code} can't be read")
    known = _HEAD.size + 12 * sequences + 8 * bounds
    if size < known:
        raise damaged(path, "shorter than its header says")
    if size == known + sequences and sequences:
        what = "says of each sequence whether it is text: a dataset of several modalities"
        raise DataError("damaged-input", what, remedy="import datasets of text alone", where=str(path))
    if size > known:
        raise damaged(path, f"{size - known} bytes longer than its header says")
    with path.open("rb") as file:
        file.seek(_HEAD.size)
        counts = (("<i4", sequences), ("<i8", sequences), ("<i8", bounds))
        lengths, pointers, first = (np.fromfile(file, kind, count).astype(np.int64) for kind, count in counts)
    if len(first) < bounds:
        raise shortened(path)
    dtype = np.dtype(_CODES[code])
    ids = path.with_suffix(".bin")
    if not ids.exists():
        raise missing(ids)
    in_order = not (lengths < 0).any() and not (first[1:] < first[:-1]).any()
    if not in_order or (first[:1].tolist(), first[-1:].tolist()) != ([0], [sequences]):
        raise damaged(path, "its documents are not contiguous")
    _require_tiled(ids, pointers, lengths * dtype.itemsize)
    ends = offsets_of(lengths)
    with ids.open("rb") as file:
        for start, stop in groups(ends[first], READ_TOKENS):
            inside = slice(int(first[start]), int(first[stop]))
            places = zip(pointers[inside].tolist(), lengths[inside].tolist(), strict=True)
            data = b"".join(os.pread(file.fileno(), length * dtype.itemsize, at) for at, length in places)
            sizes = np.diff(ends[first[start : stop + 1]])
            if len(data) != int(sizes.sum()) * dtype.itemsize:
                raise shortened(ids)
            yield ReadDocuments(np.frombuffer(data, dtype), sizes, None)


def _require_tiled(ids: Path, pointers: I64, sizes: I64) -> None:
    """Require that the sequences of an index cover its file of ids, every byte once, in any order.

    They do not if the index has another type of ids, or belongs to another file.

    Args:
        pointers: the first byte of each sequence.
        sizes: of the sequences, in bytes.
    """
    order = np.lexsort((sizes, pointers))
    ends = offsets_of(sizes[order])
    size = ids.stat().st_size
    if not np.array_equal(pointers[order], ends[:-1]) or ends[-1] != size:
        what = f"its {size} bytes are not those of the {len(sizes)} sequences of {int(ends[-1])} bytes of its index"
        raise damaged(ids, what)


FORMAT = Format(
    name="megatron",
    readers="Megatron-Core",
    summary="`.bin` and `.idx`; of rows each is a document",
    files="*.idx",
    shared=True,
    dtypes={2: "<u2", 4: "<i4"},
    documents=True,
    several_lengths=True,
    largest_vocab=1 << 31,
    companions=lambda path: [path.with_suffix(".bin")],
    part=part,
    finish=finish,
    read=read,
)
