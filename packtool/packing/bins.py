"""From tails to bins to a plan: what the bin-packing strategies share."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from packtool.packing.assign import assign, stable_order
from packtool.packing.chunks import Chunks
from packtool.packing.histogram import Runs
from packtool.packing.rows import Bins, LongRows, RowsPlan
from packtool.packing.stream import StreamPlan
from packtool.plan import I64, Ints, offsets_of

Fit = Callable[[I64], Runs]
"""From the number of tails of each length to bins."""


def pack_tails(
    lengths: Ints, sequence_length: int, chunks: Chunks, fit: Fit, *, remainder: str | None = None
) -> RowsPlan:
    """Long rows as they are, tails in bins.

    Args:
        lengths: tokens of each document with its EOS.
        sequence_length: tokens in a row, L.
        chunks: the documents, cut.
        fit: packs the tails; bins may exceed L, what is beyond it is dropped.
        remainder: None leaves bins below L as they are, to be padded. Else they are joined to one stream and cut at
            L; the last row is padded (``pad``) or dropped (``drop``).
    """
    counts = chunks.counts.copy()
    counts[0] = 0
    runs = fit(counts)
    order = stable_order(chunks.keys, chunks.key_counts)
    dropped, omitted = beyond(runs, sequence_length)
    omitted += chunks.eos_alone
    short = runs.tokens() < sequence_length
    if remainder is None:
        short[:] = False
    document, offsets = assign(order, counts, runs.where(~short))
    listed = start = length = np.empty(0, np.int64)
    if short.any():
        left, _ = assign(order, counts, runs.where(short))
        tokens = lengths[left].astype(np.int64)
        tail = tokens % sequence_length
        stream = StreamPlan(sequence_length, sequence_length, offsets_of(tail), remainder=remainder or "pad")
        pieces = stream.segments(np.arange(stream.units))
        dropped, omitted = dropped + stream.dropped, omitted + stream.eos_omitted
        listed = np.arange(len(document), len(document) + len(pieces))
        start, length = (tokens - tail)[pieces.document] + pieces.start, pieces.length
        document = np.concatenate([document, left[pieces.document]])
        offsets = np.concatenate([offsets, offsets[-1] + pieces.offsets[1:]])
    return RowsPlan(
        sequence_length,
        lengths,
        long=LongRows(chunks.long, offsets_of(chunks.rows)),
        bins=Bins(document, offsets, listed, start, length),
        dropped=dropped,
        eos_omitted=omitted,
    )


def beyond(runs: Runs, sequence_length: int) -> tuple[int, int]:
    """Text tokens and EOS that lie in bins beyond the first L tokens.

    Each item runs to its document's end, so one that is cut loses its EOS.

    >>> bin = Runs.of([(2, [(4, 2, 0), (3, 1, 0)])])
    >>> beyond(bin, 7)
    (4, 4)
    """
    run = runs.run_of()
    ends = offsets_of(runs.length * runs.count)
    begin = ends[:-1] - ends[runs.offsets[run]]
    kept = np.clip((sequence_length - begin) // np.maximum(runs.length, 1), 0, runs.count)
    cut = int((runs.count - kept) @ runs.bins[run])
    tokens = int(np.maximum(runs.tokens() - sequence_length, 0) @ runs.bins)
    return tokens - cut, cut
