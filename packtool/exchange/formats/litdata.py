"""litdata's chunks for its `TokensLoader`: `index.json`, and files of tokens that are read in blocks of one length.

A chunk: the number of items (u4), where each begins and the last ends (u4), then the items. Each sequence is an item;
the loader counts tokens, so its `block_size` is the row length.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from packtool.exchange.files import FileWriter, write_json
from packtool.exchange.model import FILE_BYTES, Contents, Format, Part, cut
from packtool.formats.schema import ExportedFile
from packtool.planning.plan import offsets_of

_TYPES = {"<u2": 5, "<u4": 6}
"""litdata's numbers of NumPy's types."""


def part(directory: Path, contents: Contents, part: Part) -> list[ExportedFile]:
    written = []
    itemsize = contents.dtype.itemsize
    for number, block in enumerate(cut(contents.blocks(part), itemsize)):
        begin = 4 * (len(block.lengths) + 2)
        with FileWriter(directory / f"chunk-{part.number:05d}-{number:05d}.bin") as out:
            out.write(np.array([len(block.lengths)], "<u4"))
            out.write((begin + offsets_of(block.lengths) * itemsize).astype("<u4"))
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


FORMAT = Format(
    name="litdata",
    summary="litdata's chunks for its TokensLoader: tokens in blocks of one length",
    files="*.bin",
    part=part,
    finish=finish,
)
