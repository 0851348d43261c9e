"""Compute the metrics of a packing from the tally of each of its sequence lengths."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from packtool.planning.arrays import blocks
from packtool.planning.metrics.homogeneity import Homogeneity, HomogeneityCounts
from packtool.planning.metrics.ratios import histogram_sum, quantile, ratio
from packtool.planning.metrics.tally import Tally
from packtool.planning.plan import I64


@dataclass(frozen=True, slots=True)
class DocumentsPerRow:
    """Distinct documents with a token in a row, over rows.

    Attributes:
        mean: over all rows.
        p50: half of the rows have no more.
        p99: 99 % of the rows have no more.
        max: the most.
    """

    mean: float
    p50: int
    p99: int
    max: int


@dataclass(frozen=True, slots=True)
class Metrics:
    """The effect of a packing on its documents. A document's length includes its EOS; its text does not.

    L is the sequence length; with several buckets, a document fits if its text fits the longest.

    Attributes:
        documents: in the dataset, M.
        rows: training samples, C.
        padding_ratio: padding / output tokens (bucket pretraining, equation 1).
        cut_documents: documents whose text does not lie contiguous in one row; a dropped one counts.
        cut_of_all_ratio: cut documents / documents (the truncation ratio of bucket pretraining, equation 2).
        fitting_documents: documents whose text fits a row: of length at most L + 1.
        cut_fitting_documents: fitting documents that are cut.
        cut_fitting_ratio: cut fitting documents / fitting documents: what decides between strategies.
        concatenation_ratio: documents / rows (bucket pretraining, equation 3).
        documents_per_row: distinct documents in a row.
        mean_context: tokens of the same segment before a token in its row, averaged over all tokens but padding.
        row_excess: rows / the fewest that hold the same tokens - 1; the fewest are, for each bucket,
            ceil((output - padding) / L).
        dropped_ratio: dropped / text tokens; what was left out since nothing in it trains is not dropped.
        repeated_tokens: text tokens that an earlier row already has.
        repeated_ratio: repeated / output tokens.
        overlapping_documents: documents with tokens in two rows.
        attention_full: query-key pairs under a causal mask over whole rows, padding included: rows × L (L + 1) / 2.
        attention_masked: query-key pairs where a token sees only its own segment: the sum of l (l + 1) / 2.
        steps_per_epoch: batches in an epoch, the last may be smaller; None without a batch size.
        homogeneity: how alike the segments of a row are, compared with random rows.
    """

    documents: int
    rows: int
    padding_ratio: float
    cut_documents: int
    cut_of_all_ratio: float
    fitting_documents: int
    cut_fitting_documents: int
    cut_fitting_ratio: float
    concatenation_ratio: float
    documents_per_row: DocumentsPerRow
    mean_context: float
    row_excess: float
    dropped_ratio: float
    repeated_tokens: int
    repeated_ratio: float
    overlapping_documents: int
    attention_full: int
    attention_masked: int
    steps_per_epoch: int | None
    homogeneity: Homogeneity


def measure(tallies: Sequence[Tally], batch_size: int | None = None, untrained: int = 0) -> Metrics:
    """Compute the metrics of a whole dataset from the tallies of its buckets (of one, where all rows are equally long).

    Args:
        tallies: one for each bucket, over the same documents.
        batch_size: rows of the longest bucket in a batch; batches of other buckets have the same number of tokens.
        untrained: text tokens that are left out since nothing in them trains.
    """
    lengths = tallies[0].lengths
    documents = len(lengths)
    longest = max(tally.sequence_length for tally in tallies)
    rows = output = padding = placed = repeated = 0
    for tally in tallies:
        rows += tally.rows
        output += tally.output
        padding += tally.padding
        placed += tally.placed
        repeated += tally.repeated
    # A document of EOS alone has no text to cut.
    intact = sum(tally.intact for tally in tallies) + int(np.count_nonzero(lengths <= 1))
    # Text alone decides, here as in what is cut: a document of L tokens and EOS is whole in a row without its EOS.
    fitting = int(np.count_nonzero(lengths <= longest + 1))
    fewest = sum(-(-(t.output - t.padding) // t.sequence_length) for t in tallies)
    text = int(lengths.sum(dtype=np.int64)) - documents
    homogeneity = HomogeneityCounts()
    unmasked = masked = context = 0
    for tally in tallies:
        homogeneity += tally.homogeneity
        unmasked += tally.rows * (tally.sequence_length * (tally.sequence_length + 1) // 2)
        masked += _half_squares(tally.piece_lengths, 1) + tally.eos_inserted
        context += _half_squares(tally.piece_lengths, -1)
    steps = None
    if batch_size is not None:
        steps = sum(-(-tally.output // (batch_size * longest)) for tally in tallies)
    return Metrics(
        documents=documents,
        rows=rows,
        padding_ratio=ratio(padding, output),
        cut_documents=documents - intact,
        cut_of_all_ratio=ratio(documents - intact, documents),
        fitting_documents=fitting,
        cut_fitting_documents=fitting - intact,
        cut_fitting_ratio=ratio(fitting - intact, fitting),
        concatenation_ratio=ratio(documents, rows),
        documents_per_row=_documents_per_row(histogram_sum([t.documents_in_row for t in tallies])),
        mean_context=ratio(context, output - padding),
        row_excess=ratio(rows - fewest, fewest),
        dropped_ratio=ratio(text - placed - untrained, text),
        repeated_tokens=repeated,
        repeated_ratio=ratio(repeated, output),
        overlapping_documents=_overlapping(tallies),
        attention_full=unmasked,
        attention_masked=masked,
        steps_per_epoch=steps,
        homogeneity=homogeneity.result(),
    )


class RowMeasures(NamedTuple):
    """The rows of a dataset, measured.

    Attributes:
        whole: of all rows.
        buckets: of the rows of each length.
        documents_in_row: rows, by the number of distinct documents in them.
    """

    whole: Metrics
    buckets: list[Metrics]
    documents_in_row: I64


def measure_rows(tallies: Sequence[Tally], batch_size: int | None = None, untrained: int = 0) -> RowMeasures:
    """Measure the rows of a dataset, in all and by length; arguments as of `measure`."""
    return RowMeasures(
        whole=measure(tallies, batch_size, untrained),
        buckets=[measure([tally]) for tally in tallies],
        documents_in_row=histogram_sum([tally.documents_in_row for tally in tallies]),
    )


def _documents_per_row(rows: I64) -> DocumentsPerRow:
    present = np.flatnonzero(rows)
    return DocumentsPerRow(
        mean=ratio(int(rows @ np.arange(len(rows))), int(rows.sum())),
        p50=quantile(rows, 0.5),
        p99=quantile(rows, 0.99),
        max=int(present[-1]) if len(present) else 0,
    )


def _half_squares(segments: I64, more: int) -> int:
    """Add up l (l + more) / 2 over segments of l tokens."""
    length = np.arange(len(segments))
    return int(segments @ (length * (length + more) // 2))


def _overlapping(tallies: Sequence[Tally]) -> int:
    """Count the documents that overlap in the rows of some length, block by block to bound memory."""
    marks = [tally.overlaps for tally in tallies if len(tally.overlaps)]
    if not marks:
        return 0
    overlapping = 0
    for a, b in blocks(len(marks[0])):
        overlapping += int(np.count_nonzero(np.logical_or.reduce([each[a:b] for each in marks])))
    return overlapping
