"""Divide a corpus into fixed blocks. The division depends on the files and on constants only, never on workers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec

from packtool.text.corpus.formats import FORMATS
from packtool.text.corpus.records import Block, CorpusFile, Span

SMALLEST, LARGEST = 1 << 24, 1 << 26
"""Bounds of a block's size, in bytes."""
_BLOCKS = 256
"""Blocks of a corpus between the bounds: enough for many workers."""


_OF_PART = 4
"""Blocks of a part at least, where files can be divided: parts then have nearly as many bytes as each other."""


def block_bytes(files: Sequence[CorpusFile], parts: int = 1) -> int:
    """Size of a block of this corpus: files above it are divided, smaller ones read together up to it.

    Args:
        parts: into which the blocks are divided; 1 where they are not.
    """
    size = sum(file.bytes for file in files)
    block = min(max(size // _BLOCKS, SMALLEST), LARGEST)
    if parts == 1:
        return block
    return min(block, max(size // (_OF_PART * parts), 1))


def plan(files: Sequence[CorpusFile], size: int | None = None) -> list[Block]:
    """Divide the files into blocks, in the order of the files.

    Uncompressed files are divided as their format has it: lines into equal byte ranges, Parquet at row groups. Any
    other file is one span. Neighbouring small files share a block.

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


def sizes_of(blocks: Sequence[Block], files: Sequence[CorpusFile]) -> list[int]:
    """List the bytes of each block; the blocks of a divided file count for equal parts of it.

    >>> file = CorpusFile("a", "a", 150, "jsonl")
    >>> sizes_of(plan([file, file], 100), [file, file])
    [75, 75, 75, 75]
    """
    blocks_of = Counter(block[0].file for block in blocks)
    sizes: list[int] = []
    for block in blocks:
        if block[0].whole:
            sizes.append(sum(files[span.file].bytes for span in block))
        else:
            number = block[0].file
            sizes.append(files[number].bytes // blocks_of[number])
    return sizes


def part_of(files: Sequence[CorpusFile], part: int, parts: int) -> tuple[list[CorpusFile], list[Block], list[int]]:
    """Return one of several parts of the corpus, which follow each other and have nearly equally many bytes.

    Args:
        part: its number, from 1 to `parts`.

    Returns:
        The files that it reads, its blocks, whose files are numbered among these, and the bytes of each block.

    >>> small = CorpusFile("a", "a", 10, "jsonl", "gzip")
    >>> big = CorpusFile("b", "b", 80, "jsonl")
    >>> for part in (1, 2):
    ...     read, blocks, sizes = part_of([small, big], part, 2)
    ...     print([file.name for file in read], blocks[-1], sum(sizes))
    ['a', 'b'] (Span(file=1, start=20, stop=30),) 40
    ['b'] (Span(file=0, start=70, stop=-1),) 50
    """
    blocks = plan(files, block_bytes(files, parts))
    sizes = sizes_of(blocks, files)
    size, before = max(sum(sizes), 1), 0
    taken: list[Block] = []
    bytes_of: list[int] = []
    for block, of_block in zip(blocks, sizes, strict=True):
        # The part in which the middle of the block lies; a block of no bytes at the end lies in the last.
        lies_in = min((2 * before + of_block) * parts // (2 * size), parts - 1)
        before += of_block
        if lies_in == part - 1:
            taken.append(block)
            bytes_of.append(of_block)
    if not taken:
        return [], [], []
    first, last = taken[0][0].file, taken[-1][-1].file
    moved: list[Block] = []
    for block in taken:
        moved.append(tuple(msgspec.structs.replace(span, file=span.file - first) for span in block))
    return list(files[first : last + 1]), moved, bytes_of


def _divide(number: int, file: CorpusFile, size: int) -> list[Span]:
    division = FORMATS[file.format].division
    if division is None or file.fault is not None or file.compression:
        return [Span(number)]
    starts = division.starts(file, size)
    return [Span(number, start, stop) for start, stop in zip(starts, [*starts[1:], -1], strict=True)]
