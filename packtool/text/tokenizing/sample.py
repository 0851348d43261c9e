"""Choose places of a corpus to look at, in proportion to bytes, and read what lies there.

Lines can be read from anywhere in an uncompressed file, tables from any row group. Whatever else a place falls in is
read from the beginning of its file, all of it where it is small.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from packtool.text.corpus.file_bytes import open_raw
from packtool.text.corpus.records import CorpusFile, RecordBatch, Span
from packtool.text.corpus.tables import row_groups
from packtool.text.faults import Fault

PLACES = 512
"""Places to look at."""
CHUNK = 1 << 14
"""Bytes of text to read at a place."""
SMALL_BYTES = 1 << 20
"""A corpus of so many bytes is read in whole."""
IN_ORDER_BYTES = 1 << 27
"""Bytes, as they lie in files, that are read from beginnings, all places together."""


@dataclass(frozen=True)
class Look:
    """Something to read.

    Attributes:
        span: of a file.
        places: that fell in it, so its weight.
        size: of the span, in bytes as they lie in the file.
        in_order: it is read from its beginning, since nothing can be read from its middle.
        most: bytes to read of it then.
        certain: it is so large that some place falls in it in any case: so its figures stand for no other span.
    """

    span: Span
    places: int
    size: int
    in_order: bool = False
    most: int = 0
    certain: bool = False

    @property
    def cut(self) -> bool:
        """Whether only its beginning is read."""
        return self.in_order and self.size > self.most


def small(files: Sequence[CorpusFile]) -> bool:
    """Return whether a corpus is so small that all of it is read."""
    return sum(file.bytes for file in files) <= SMALL_BYTES


def looks(files: Sequence[CorpusFile], seed: int = 0) -> list[Look]:
    """Choose what to read of a corpus: all of a small one, else places spread evenly over its bytes, in random order.

    >>> len(looks([CorpusFile("a", "a", 10, "jsonl"), CorpusFile("b", "b", 5, "jsonl")]))
    2
    >>> sum(look.places for look in looks([CorpusFile("a", "a", 10**9, "jsonl")])) == PLACES
    True
    """
    draw = np.random.default_rng(seed)
    if small(files):
        order = draw.permutation(len(files)).tolist()
        return [Look(Span(number), 1, files[number].bytes) for number in order if files[number].bytes]
    ends = np.cumsum([file.bytes for file in files])
    size = int(ends[-1])
    width = size / PLACES
    found: Counter[tuple[Span, int]] = Counter()
    for stratum in range(PLACES):
        at = int((stratum + draw.random()) * width)
        number = int(np.searchsorted(ends, at, side="right"))
        offset = at - int(ends[number]) + files[number].bytes
        found[_span(files[number], number, offset, min(CHUNK, int(width)))] += 1
    chosen = []
    for (span, bytes_of_span), places in found.items():
        in_order = not seekable(files[span.file]) and files[span.file].bytes > 2 * CHUNK
        look = Look(span, places, bytes_of_span, in_order, IN_ORDER_BYTES * places // PLACES)
        certain = in_order and bytes_of_span >= 2 * width and not look.cut
        chosen.append(replace(look, certain=certain))
    return [chosen[number] for number in draw.permutation(len(chosen)).tolist()]


def _span(file: CorpusFile, number: int, offset: int, size: int) -> tuple[Span, int]:
    """Return the part of a file to read for a place at this offset, and its bytes in the file."""
    if seekable(file) and file.bytes > 2 * size:
        begin = max(0, min(offset, file.bytes - size))
        return Span(number, begin, begin + size), size
    if file.format == "parquet" and file.bytes > 2 * size:
        return _group(file, number, offset)
    return Span(number), file.bytes


def seekable(file: CorpusFile) -> bool:
    """Return whether records can be read from anywhere in a file."""
    return file.format in ("jsonl", "lines") and not file.compression and not file.separator


def _group(file: CorpusFile, number: int, offset: int) -> tuple[Span, int]:
    """Return the row group at an offset of a Parquet file, in proportion to the groups' bytes, and its bytes there."""
    raw = open_raw(file.location)
    try:
        sizes = row_groups(raw)
    except Fault:
        return Span(number), file.bytes  # reading it will tell
    finally:
        raw.close()
    ends = np.cumsum(sizes)
    group = int(np.searchsorted(ends, offset / file.bytes * ends[-1], side="right"))
    group = min(group, len(sizes) - 1)
    return Span(number, group, group + 1), int(file.bytes * (sizes[group] / ends[-1]))


@dataclass(frozen=True)
class KeptShare:
    """The share of a batch that is looked at.

    Attributes:
        documents: of its documents.
        text: of its text, or of its documents where these are no texts.
    """

    documents: float = 1.0
    text: float = 1.0


def thin(batch: RecordBatch, most: float, draw: np.random.Generator) -> KeptShare:
    """Leave about so many characters of a batch: documents drawn at random, or a part of one that is long."""
    count = len(batch.documents)
    texts = count > 0 and isinstance(batch.documents[0], str)
    sizes = np.ones(count) * CHUNK / 8
    if texts:
        sizes = np.array(list(map(len, batch.documents)), np.float64)
    total = float(sizes.sum())
    if count == 0 or total <= 2 * most:
        return KeptShare()
    order = draw.permutation(count)
    needed = 1 + int(np.searchsorted(np.cumsum(sizes[order]), most))
    kept = np.sort(order[:needed])
    batch.keep(kept.tolist())
    share = float(sizes[kept].sum()) / total
    if texts and len(kept) == 1 and sizes[kept[0]] > 4 * CHUNK:  # one long text: a part of it stands for it
        text = batch.documents[0]
        size = min(len(text), max(CHUNK, int(most)))
        begin = int(draw.integers(len(text) - size + 1))
        batch.documents[0] = text[begin : begin + size]
        share = size / total
    return KeptShare(len(kept) / count, share)


def within(batches: Iterator[RecordBatch], most: int) -> Iterator[RecordBatch]:
    """Yield batches until so many bytes of the file are read; 0 for all of them."""
    read = 0
    for batch in batches:
        yield batch
        read += batch.progress
        if most and read >= most:
            return
