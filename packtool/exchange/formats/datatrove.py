"""datatrove's token files: `.ds` holds bare ids, `.ds.index` where each document ends (u8, in tokens of its file), and
`.ds.loss` the loss of the tokens (a byte, 1 for tokens that train), if it is known.

Of rows, each segment of a document is one; padding is one, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from packtool.errors import DataError
from packtool.exchange.files import FileWriter
from packtool.exchange.formats.raw import bare_ids, read_ids, write_ids
from packtool.exchange.model import (
    READ_TOKENS,
    Contents,
    Format,
    Part,
    ReadDocuments,
    ReadOptions,
    damaged,
    groups,
    pieces,
)
from packtool.exchange.whole_documents import bad_mask
from packtool.formats.names import LOSS
from packtool.formats.schema import ExportedFile


def part(directory: Path, contents: Contents, part: Part) -> list[ExportedFile]:
    name = f"tokens-{part.number:05d}.ds"
    with ExitStack() as files:
        ids, index = (files.enter_context(FileWriter(directory / file)) for file in (name, f"{name}.index"))
        loss = None if contents.masked is None else files.enter_context(FileWriter(directory / f"{name}.loss"))
        sequences = tokens = 0
        for block in contents.blocks(part):
            lengths = block.lengths if block.segments is None else pieces(block.segments)[0]
            index.write((tokens + np.cumsum(lengths)).astype("<u8"))
            if loss is not None and block.loss is not None:
                loss.write(block.loss)
            more = write_ids(ids, [block], FORMAT.dtype(contents))
            sequences, tokens = sequences + more[0], tokens + more[1]
        # The others go first: with them there, the file is whole.
        companions = [file.finish() for file in (index, loss) if file is not None]
        return [ids.finish(sequences, tokens), *companions]


def read(path: Path, options: ReadOptions) -> Iterator[ReadDocuments]:
    index, mask = _companion(path, "index"), None
    if not options.ids_only and _companion(path, "loss").exists():
        mask = _companion(path, "loss")
    if not index.exists():
        if mask is not None:
            raise bad_mask(f"{mask.name} says which tokens train, but {index.name} is not there", str(path))
        yield from bare_ids(path, options)
        return
    if index.stat().st_size % 8:
        raise damaged(index, "its size is not a multiple of 8 bytes, the size of one place")
    offsets = np.append(0, np.fromfile(index, "<u8").astype(np.int64))
    size, last = path.stat().st_size, int(offsets[-1])
    itemsize = size // last if last > 0 else options.dtype.itemsize
    if itemsize not in (2, 4) or size != last * itemsize or (offsets[1:] < offsets[:-1]).any():
        raise damaged(path, f"{size} bytes of ids do not fit the {last} tokens of its index")
    if mask is not None and mask.stat().st_size != last:
        raise bad_mask(f"{mask.name} has {mask.stat().st_size} values, but there are {last} tokens", str(path))
    dtype = np.dtype(f"<u{itemsize}")
    with ExitStack() as files:
        file = files.enter_context(path.open("rb"))
        masks = None if mask is None else files.enter_context(mask.open("rb"))
        for start, stop in groups(offsets, READ_TOKENS):
            near = offsets[start : stop + 1]
            tokens = read_ids(file, dtype, int(near[-1] - near[0]), path)
            loss = None
            if masks is not None and mask is not None:
                loss = read_ids(masks, LOSS, len(tokens), mask)
                _require_loss(loss, int(near[0]), mask)
            yield ReadDocuments(tokens, np.diff(near), loss)


def _require_loss(loss: np.ndarray[Any, Any], before: int, path: Path) -> None:
    wrong = np.flatnonzero(loss > 1)
    if len(wrong):
        what = f"byte {before + int(wrong[0])} is {loss[wrong[0]]}, neither 0 nor 1"
        raise DataError("bad-mask", what, remedy="check the file, or give --ids-only=True", where=str(path))


def _companion(path: Path, kind: str) -> Path:
    return path.with_name(f"{path.name}.{kind}")


FORMAT = Format(
    name="datatrove",
    readers="nanotron, datatrove",
    summary="`.ds` and `.ds.index`; `.ds.loss`, where known",
    files="*.ds",
    blocks=True,
    bare=True,
    documents=True,
    boundaries=True,
    loss=True,
    companions=lambda path: [_companion(path, "index"), _companion(path, "loss")],
    part=part,
    read=read,
)
