"""litdata's chunks for its `TokensLoader`: `index.json`, and files of tokens that are read in blocks of one length.

A chunk: the number of items (u4), the starts of the items and the end of the last (u4), then the items. A sequence is
an item; the loader counts tokens, so its `block_size` is the row length. Items of its other loader are trees of arrays:
the size of each leaf (u4), then the leaves. Chunks of these may be compressed by batch: `_unframed` reads them.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import msgspec
import numpy as np

from packtool.errors import DataError
from packtool.exchange.files import FileWriter, named_file, read_json, write_json
from packtool.exchange.formats import samples
from packtool.exchange.model import FILE_BYTES, Contents, Format, Part, ReadDocuments, ReadOptions, cut, damaged
from packtool.exchange.whole_documents import IDS
from packtool.formats.schema import ExportedFile
from packtool.planning.plan import offsets_of
from packtool.support.decoding import from_json

_INDEX = "index.json"
_TYPES = {"<u2": 5, "<u4": 6}  # litdata's numbers of NumPy's types
_NUMPY = ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8")
_TORCH = {11: "u1", 12: "i1", 13: "i2", 14: "i2", 15: "i4", 16: "i4", 17: "i8", 18: "i8", 20: "u2"}
_READ = {
    "no_header_numpy": {str(number): name for number, name in enumerate(_NUMPY)},
    "no_header_tensor": {str(number): name for number, name in _TORCH.items()} | {"0": "f4", "1": "f4"},
}
"""Types of arrays without a header, by litdata's numbers: of NumPy's types, and of PyTorch's."""
_FRAMED = b"LDFZ01\0\0\1\0\0\0"
"""Begin of a chunk that is compressed by batch: its name, version and flags."""
_FRAME = np.dtype([("first", "<u4"), ("items", "<u4"), ("place", "<u8"), ("compressed", "<u4"), ("size", "<u4")])


def part(directory: Path, contents: Contents, part: Part) -> list[ExportedFile]:
    written = []
    itemsize = contents.dtype.itemsize
    for number, block in enumerate(cut(contents.blocks(part), itemsize)):
        start = 4 * (len(block.lengths) + 2)
        with FileWriter(directory / f"chunk-{part.number:05d}-{number:05d}.bin") as out:
            out.write(np.array([len(block.lengths)], "<u4"))
            out.write((start + offsets_of(block.lengths) * itemsize).astype("<u4"))
            out.write(block.tokens.astype(contents.dtype, copy=False))
            written.append(out.finish(len(block.lengths), len(block.tokens)))
    return written


def finish(directory: Path, contents: Contents, written: list[ExportedFile]) -> list[ExportedFile]:
    chunks = [
        {"chunk_bytes": file.bytes, "chunk_size": file.sequences, "dim": file.tokens, "filename": file.name}
        for file in written
    ]
    config = {
        "chunk_bytes": FILE_BYTES,
        "chunk_size": None,
        "compression": None,
        "data_format": [f"no_header_numpy:{_TYPES[contents.dtype.str]}"],
        "data_spec": '[1, {"type": null, "context": null, "children_spec": []}]',
        "encryption": None,
        "item_loader": "TokensLoader",
    }
    return [write_json(directory / "index.json", {"chunks": chunks, "config": config})]


class _Chunk(msgspec.Struct):
    """The entry of a chunk in the index."""

    filename: str
    chunk_bytes: int
    chunk_size: int
    dim: int | None = None


class _Config(msgspec.Struct):
    """How all chunks were written."""

    data_format: list[str]
    item_loader: str
    data_spec: str | None = None
    compression: str | None = None
    compression_level: str | None = None
    encryption: Any = None


class _Index(msgspec.Struct):
    chunks: list[_Chunk]
    config: _Config


class _Spec(msgspec.Struct):
    """A level of the tree of an item; a leaf has no type."""

    type: str | None
    context: Any = None
    children_spec: list[_Spec] = []


def inside(directory: Path) -> list[Path] | None:
    """List the chunks that the index names."""
    if not (directory / _INDEX).is_file():
        return None
    return [named_file(directory, chunk.filename) for chunk in read_json(directory / _INDEX, _Index).chunks]


def read(path: Path, options: ReadOptions) -> Iterator[ReadDocuments]:
    index = read_json(path.with_name(_INDEX), _Index)
    chunk = next((chunk for chunk in index.chunks if chunk.filename == path.name), None)
    if chunk is None:
        raise damaged(path, f"{_INDEX} beside it does not name it")
    by_batch = index.config.compression_level == "batch"
    if index.config.encryption or index.config.compression_level not in (None, "chunk", "batch"):
        what = "its items are encrypted or compressed one by one"
        raise DataError("damaged-input", what, remedy="write it without, or compressed by batch", where=str(path))
    if by_batch:
        opened = _unframed(path, index.config.compression)
    else:
        opened = samples.unpacked(path, index.config.compression, chunk.chunk_bytes)
    with opened as file:
        offsets = samples.offsets_in(file, path)
        known = (len(offsets) - 1, int(offsets[-1]))
        if by_batch:
            known = (len(offsets) - 1, path.stat().st_size)
        if known != (chunk.chunk_size, chunk.chunk_bytes):
            what = f"has {known[0]} items in {known[1]} bytes, but its index says {chunk.chunk_size}"
            raise damaged(path, f"{what} in {chunk.chunk_bytes}")
        leaves = _leaves(index.config, options, path)
        is_tokens = index.config.item_loader == "TokensLoader"
        if not leaves or (is_tokens and len(leaves) > 1):
            raise damaged(path, f"items of {len(leaves)} parts, for the loader {index.config.item_loader}")
        if is_tokens and chunk.dim is not None:
            _require_tokens(chunk, leaves, int(offsets[-1] - offsets[0]), path)
        items = (_divided(item, leaves, is_tokens, path) for item in samples.samples_in(file, offsets, path))
        yield from samples.documents(items, leaves, options, path)


def _unframed(path: Path, compression: str | None) -> BinaryIO:
    """Open a chunk that is compressed by batch as one that is not.

    Its begin; the number of items, of items to a frame, and of frames (u4); the starts of the items and the end of the
    last, from 0 (u4); what each frame holds, and where; then the frames, which one after the other are one zstd stream.
    """
    with path.open("rb") as file:
        size = file.seek(0, io.SEEK_END)
        file.seek(0)
        head = file.read(24)
        if len(head) < 24 or not head.startswith(_FRAMED):
            raise damaged(path, "not a chunk of version 1 that is compressed by batch, as its index says")
        items, at_most, frames = np.frombuffer(head[12:], "<u4").tolist()
        start = 24 + 4 * (items + 1) + _FRAME.itemsize * frames
        if size < start:
            raise damaged(path, f"shorter than {items} items in {frames} frames need, which it says it has")
        offsets = np.frombuffer(file.read(4 * (items + 1)), "<u4")
        table = np.frombuffer(file.read(_FRAME.itemsize * frames), _FRAME)
    firsts = np.minimum(np.arange(frames + 1, dtype=np.int64) * at_most, items)
    places = start + offsets_of(table["compressed"])
    expected = np.empty(frames, _FRAME)
    expected["first"], expected["items"], expected["size"] = firsts[:-1], np.diff(firsts), np.diff(offsets[firsts])
    expected["place"], expected["compressed"] = places[:-1], table["compressed"]
    if offsets[0] or firsts[-1] != items or places[-1] != size or (expected != table).any():
        raise damaged(path, f"its {frames} frames do not divide its {items} items and {size} bytes")
    with samples.unpacked(path, compression, int(offsets[-1]), start) as unpacked:
        starts = (offsets + np.uint32(4 * (items + 2))).astype("<u4")
        return io.BytesIO(np.uint32(items).tobytes() + starts.tobytes() + unpacked.read())


def _leaves(config: _Config, options: ReadOptions, path: Path) -> list[samples.Leaf]:
    """List the columns of an item. An array by itself is the ids; others have their names, or numbers from 0."""
    names = _names(config.data_spec, options, path)
    if len(names) != len(config.data_format):
        names = list(map(str, range(len(config.data_format))))
    if len(names) == 1 and names[0] not in IDS:
        names = ["input_ids"]
    leaves = []
    for name, kind in zip(names, config.data_format, strict=True):
        serializer, _, number = kind.partition(":")
        dtype = _READ.get(serializer, {}).get(number)
        numbers = None if dtype is None else partial(samples.numbers, dtype=np.dtype(dtype))
        leaves.append(samples.Leaf(name, kind, numbers))
    return leaves


def _names(spec: str | None, options: ReadOptions, path: Path) -> list[str]:
    """List the names of the leaves of an item: the keys of its dictionary; [] if it is not a dictionary."""
    if spec is None:
        return []
    try:
        _, tree = from_json(spec, tuple[int, _Spec])
        keys = from_json(tree.context or "null", list[str] | None) or []
    except ValueError as error:
        raise damaged(path.with_name(_INDEX), f"its data_spec is not one of litdata: {error}") from None
    for key, child in zip(keys, tree.children_spec, strict=False):
        if child.type is not None and key in (options.field, *IDS):
            what = f"column {key} is of type {child.type}, of which litdata writes each number by itself"
            remedy = "write it with its ids as an array of NumPy or a tensor of PyTorch"
            raise DataError("bad-ids", what, remedy=remedy, where=str(path))
    return keys if all(child.type is None for child in tree.children_spec) else []


def _require_tokens(chunk: _Chunk, leaves: list[samples.Leaf], size: int, path: Path) -> None:
    """Require that the index counts the tokens of a chunk, in `size` bytes."""
    numbers = leaves[0].decode
    itemsize = numbers(b"").itemsize if numbers is not None else 0
    if itemsize and chunk.dim != size / itemsize:
        what = f"has {size} bytes of ids of {leaves[0].kind}, but its index says {chunk.dim} ids"
        raise damaged(path, what)


def _divided(item: bytes, leaves: list[samples.Leaf], is_tokens: bool, path: Path) -> dict[str, bytes]:
    """Divide an item into its leaves, whose sizes come first (u4); that of a `TokensLoader` is one leaf."""
    if is_tokens:
        return {leaves[0].name: item}
    at = 4 * len(leaves)
    sizes = np.frombuffer(item[:at], "<u4").tolist() if len(item) >= at else []
    if len(sizes) != len(leaves) or at + sum(sizes) != len(item):
        raise damaged(path, "an item is not as long as its parts")
    found = {}
    for leaf, size in zip(leaves, sizes, strict=True):
        found[leaf.name] = item[at : at + size]
        at += size
    return found


FORMAT = Format(
    name="litdata",
    readers="LitGPT",
    summary="litdata's chunks, for `TokensLoader(block_size=row length)`",
    files="*.bin",
    blocks=True,
    columns=True,
    companions=lambda path: [path.with_name(_INDEX)],
    part=part,
    finish=finish,
    read=read,
    inside=inside,
)
