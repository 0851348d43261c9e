"""datatrove's token files: `.ds` holds bare ids, `.ds.index` where each document ends (u8, in tokens of its file).

Of rows, each segment of a document is one; padding is one, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from packtool.errors import DataError
from packtool.exchange.documents import mask_lost
from packtool.exchange.files import Place, Written
from packtool.exchange.formats.raw import READ_TOKENS, ids_in, read_ids, write_ids
from packtool.exchange.model import Block, Contents, Format, Found, Part, ReadOptions
from packtool.plan import I64, INSERTED_EOS


def part(place: Place, contents: Contents, part: Part) -> list[Written]:
    name = f"tokens-{part.number:05d}.ds"
    with place.create(name) as ids, place.create(f"{name}.index") as index:
        sequences = tokens = 0
        for block in contents.blocks(part):
            index.write((tokens + _ends(block)).astype("<u8"))
            more = write_ids(ids, [block], FORMAT.dtype(contents))
            sequences, tokens = sequences + more[0], tokens + more[1]
        # The index goes first: with it there, the file is whole.
        ends = index.finish()
        return [ids.finish(sequences, tokens), ends]


def _ends(block: Block) -> I64:
    """Where documents end, or segments of them with the EOS that the strategy inserted."""
    if block.segments is None:
        return np.cumsum(block.lengths)
    ends = np.cumsum(block.segments.length)
    joined = np.append(block.segments.document[1:] == INSERTED_EOS, False)
    kept: I64 = ends[~joined]
    return kept


def read(path: Path, options: ReadOptions) -> Iterator[Found]:
    if path.with_name(path.name + ".loss").exists() and not options.ids_only:
        raise mask_lost(f"{path.name}.loss", str(path))
    index = path.with_name(path.name + ".index")
    if not index.exists():
        yield from ids_in(path, options.dtype)
        return
    ends = np.fromfile(index, "<u8").astype(np.int64)
    size, last = path.stat().st_size, int(ends[-1]) if len(ends) else 0
    itemsize = size // last if last else options.dtype.itemsize
    if itemsize not in (2, 4) or size != last * itemsize or (np.diff(ends, prepend=0) < 0).any():
        what = f"{size} bytes of ids do not fit the {last} tokens of its index"
        raise DataError("damaged-input", what, remedy="make it again", where=str(path))
    begin, dtype = 0, np.dtype(f"<u{itemsize}")
    with path.open("rb") as file:
        while begin < len(ends):
            before = int(ends[begin - 1]) if begin else 0
            end = max(int(np.searchsorted(ends, before + READ_TOKENS, side="right")), begin + 1)
            near = ends[begin:end]
            tokens = read_ids(file, dtype, int(near[-1]) - before, path)
            yield Found(tokens, np.diff(near, prepend=before), int(near[-1]) / max(last, 1))
            begin = end


FORMAT = Format(
    name="datatrove",
    summary="datatrove's .ds with .ds.index: bare ids, and where documents end",
    files="*.ds",
    documents=True,
    boundaries=True,
    beside=lambda path: path.with_name(path.name + ".index"),
    part=part,
    read=read,
)
