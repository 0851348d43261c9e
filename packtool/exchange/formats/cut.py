"""Blocks cut to files of bounded size, for formats that read a file as a whole."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from packtool.exchange.model import Block
from packtool.plan import offsets_of

FILE_BYTES = 1 << 26


def cut(blocks: Iterator[Block], itemsize: int) -> Iterator[Block]:
    """Cut into runs of consecutive sequences with at most `FILE_BYTES` of ids; a longer sequence stays alone.

    A block is never joined with the next, so the cuts depend on the blocks alone.
    """
    for block in blocks:
        ends = offsets_of(block.lengths)
        first = 0
        while first < len(block.lengths):
            last = int(np.searchsorted(ends, ends[first] + FILE_BYTES // itemsize, side="right")) - 1
            last = max(last, first + 1)
            segments = None if block.segments is None else block.segments[first:last]
            loss = None if block.loss is None else block.loss[ends[first] : ends[last]]
            yield Block(block.tokens[ends[first] : ends[last]], block.lengths[first:last], segments, loss)
            first = last
