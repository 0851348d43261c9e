"""Divide a corpus into fixed blocks. The division depends on the files and on constants only, never on workers."""

from __future__ import annotations

from collections.abc import Sequence

from packtool.text.corpus.file_bytes import open_raw
from packtool.text.corpus.records import Block, CorpusFile, Span
from packtool.text.corpus.tables import row_groups
from packtool.text.faults import Fault

SMALLEST, LARGEST = 1 << 24, 1 << 26
"""Bounds of a block's size, in bytes."""
_BLOCKS = 256
"""Blocks of a corpus between the bounds: enough for many workers."""


def block_bytes(files: Sequence[CorpusFile]) -> int:
    """Size of a block of this corpus: files above it are divided, smaller ones read together up to it."""
    return min(max(sum(file.bytes for file in files) // _BLOCKS, SMALLEST), LARGEST)


def plan(files: Sequence[CorpusFile], size: int | None = None) -> list[Block]:
    """Divide the files into blocks, in the order of the files.

    Uncompressed lines are divided into equal byte ranges, Parquet files at row groups; any other file is one span.
    Neighbouring small files share a block.

    Args:
        files: the corpus.
        size: bytes of a block, about; None for `block_bytes`.

    >>> small = CorpusFile("a", "a", 10, "jsonl")
    >>> big = CorpusFile("b", "b", 150, "jsonl")
    >>> for block in plan([small, small, big], 100):
    ...     print([(span.file, span.start, span.stop) for span in block])
    [(0, 0, -1), (1, 0, -1)]
    [(2, 0, 75)]
    [(2, 75, -1)]
    """
    size = size or block_bytes(files)
    blocks: list[Block] = []
    together: list[Span] = []
    room = size
    for number, file in enumerate(files):
        if together and file.bytes > room:
            blocks.append(tuple(together))
            together, room = [], size
        if file.bytes > size:
            blocks += [(span,) for span in _divide(number, file, size)]
        else:
            together.append(Span(number))
            room -= file.bytes
    if together:
        blocks.append(tuple(together))
    return blocks


def _divide(number: int, file: CorpusFile, size: int) -> list[Span]:
    if file.fault is not None or file.compression or file.format in ("text", "csv", "tsv", "arrow", "json"):
        return [Span(number)]
    if file.format == "parquet":
        bounds = _group_bounds(file, size)
    else:
        count = -(-file.bytes // size)
        bounds = [file.bytes * part // count for part in range(count)]
    return [Span(number, a, b) for a, b in zip(bounds, [*bounds[1:], -1], strict=True)]


def _group_bounds(file: CorpusFile, size: int) -> list[int]:
    """Return the first row group of each span; a span ends once it holds `size` uncompressed bytes."""
    raw = open_raw(file.location)
    try:
        groups = row_groups(raw)
    except Fault:
        return [0]  # reading it will tell, under the rules for bad records
    finally:
        raw.close()
    bounds = [0]
    held = 0
    for group, group_bytes in enumerate(groups):
        if held >= size:
            bounds.append(group)
            held = 0
        held += group_bytes
    return bounds
