"""From bins of tails to a plan: what the bin-packing strategies end with."""

from __future__ import annotations

import numpy as np

from packtool.packing.bins.assign import assign, stable_order
from packtool.packing.bins.cut import CutDocuments
from packtool.packing.bins.runs import Runs
from packtool.packing.plans.rows import Bins, LongRows, RowsPlan
from packtool.packing.plans.stream import StreamPlan
from packtool.plan import Ints, offsets_of


def pack_tails(
    lengths: Ints,
    sequence_length: int,
    documents: CutDocuments,
    runs: Runs,
    *,
    remainder: str | None = None,
    dropped: int = 0,
    eos_omitted: int = 0,
    least_rows: int | None = None,
) -> RowsPlan:
    """Long rows as they are, tails in bins.

    Args:
        lengths: tokens of each document with its EOS.
        sequence_length: tokens in a row, L.
        documents: the documents, cut.
        runs: the tails in bins; bins may exceed L, what is beyond it is dropped.
        remainder: None leaves bins below L as they are, to be padded. Else they are joined to one stream and cut at
            L; the last row is padded (``pad``) or dropped (``drop``).
        dropped: text tokens of tails that are in no bin.
        eos_omitted: EOS of those tails.
        least_rows: a proven lower bound, if there is one.
    """
    order = stable_order(documents.keys, documents.key_counts)
    lost, omitted = beyond(runs, sequence_length)
    dropped, eos_omitted = dropped + lost, eos_omitted + omitted + documents.eos_alone
    short = runs.tokens() < sequence_length
    if remainder is None:
        short[:] = False
    document, offsets = assign(order, documents.counts, runs.where(~short))
    listed = start = length = np.empty(0, np.int64)
    if short.any():
        left, _ = assign(order, documents.counts, runs.where(short))
        tokens = lengths[left].astype(np.int64)
        tail = tokens % sequence_length
        stream = StreamPlan(sequence_length, sequence_length, offsets_of(tail), remainder=remainder or "pad")
        segments = stream.segments(np.arange(stream.units))
        dropped, eos_omitted = dropped + stream.dropped, eos_omitted + stream.eos_omitted
        listed = np.arange(len(document), len(document) + len(segments))
        start, length = (tokens - tail)[segments.document] + segments.start, segments.length
        document = np.concatenate([document, left[segments.document]])
        offsets = np.concatenate([offsets, offsets[-1] + segments.offsets[1:]])
    return RowsPlan(
        sequence_length,
        lengths,
        long=LongRows(documents.long, offsets_of(documents.rows)),
        bins=Bins(document, offsets, listed, start, length),
        dropped=dropped,
        eos_omitted=eos_omitted,
        least_rows=least_rows,
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
