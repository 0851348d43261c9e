"""Build the report of a packed dataset from what was counted in its rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import msgspec
import numpy as np

from packtool.metrics.ledger import Ledger
from packtool.metrics.lengths import LengthCounts
from packtool.metrics.mixing import BatchMix
from packtool.metrics.ratios import histogram_sum, ratio
from packtool.metrics.sliding import Sliding, sliding
from packtool.metrics.summary import measure
from packtool.metrics.tally import Tally
from packtool.packing import PackOptions
from packtool.places.typed import Typed
from packtool.plan import I64, PADDING, Ints, Segments, distinct
from packtool.report.schema import (
    BucketFigures,
    ContextPoint,
    DocumentsBin,
    LengthBin,
    Lengths,
    PackedReport,
    PackedSourceFigures,
    RowFigures,
    SampleRow,
    SampleSegment,
)
from packtool.storage import manifest as manifests
from packtool.storage.schema import PackedManifest, Shuffle

_QUANTILES = {"p01": 0.01, "p10": 0.1, "p25": 0.25, "p50": 0.5, "p75": 0.75, "p90": 0.9, "p99": 0.99}
_BARS = 32  # bars of a histogram, at most
_CONTEXT_STEPS = 32


def report_of_rows(
    tallies: Sequence[Tally],
    ledger: Ledger,
    *,
    strategy: str,
    options: Mapping[str, Any],
    shuffle: Shuffle | None,
    sources: Sequence[PackedSourceFigures] = (),
    source_mix: Sequence[BatchMix] = (),
    batch_size: int | None = None,
) -> PackedReport:
    """Make the report of a packed dataset, as `report.json` holds it.

    Args:
        tallies: one for each bucket, in the order of the manifest; none where segments are not known, and then
            the report has the ledger only.
        ledger, strategy, options, shuffle: as in the dataset's manifest.
        sources: the stores that were packed.
        source_mix: how evenly batches hold them, where there are several.
        batch_size: rows of the longest bucket in a batch, for steps per epoch; not part of `report.json`.
    """
    counts = LengthCounts.of(tallies[0].lengths) if tallies else None
    return PackedReport(
        strategy=strategy,
        options=msgspec.to_builtins(dict(options)),
        shuffle=shuffle,
        batch_size=batch_size,
        ledger=ledger,
        lengths=None if counts is None else lengths_of(counts, "tokens"),
        **msgspec.structs.asdict(row_figures(tallies, batch_size)),
        sliding=_sliding(counts, options) if counts is not None and strategy == "seamless" else None,
        sources=list(sources),
        source_mix=list(source_mix),
    )


def read_report(place: Typed, manifest: PackedManifest) -> PackedReport:
    """Read the contents of a packed dataset's `report.json`.

    Raises:
        DataError: it is missing, or not what was written.
    """
    return manifests.read_report(place, manifest.report, PackedReport)


def lengths_of(counts: LengthCounts, unit: str) -> Lengths:
    """Describe a length distribution; `unit` is tokens, words or characters."""
    return Lengths(
        unit=unit,
        documents=counts.documents,
        total=counts.tokens,
        mean=counts.mean,
        min=int(counts.values[0]) if len(counts.values) else 0,
        **{name: counts.quantile(share) for name, share in _QUANTILES.items()},
        max=counts.max,
        histogram=[
            LengthBin(first=first, last=last, documents=documents, total=total)
            for first, last, documents, total in counts.histogram()
        ],
    )


def row_figures(tallies: Sequence[Tally], batch_size: int | None) -> RowFigures:
    """Compute metrics in total and for each bucket, and the data for charts of rows."""
    if not tallies:
        return RowFigures(metrics=None, buckets=[], documents_per_row=[], context=[])
    rows = sum(tally.rows for tally in tallies)
    tokens = sum(_tokens(tally) for tally in tallies)
    return RowFigures(
        metrics=measure(tallies, batch_size),
        buckets=[_bucket(tally, rows, tokens) for tally in tallies],
        documents_per_row=_documents_per_row(histogram_sum([t.documents_in_row for t in tallies])),
        context=_context(histogram_sum([t.piece_lengths for t in tallies])),
    )


def _bucket(tally: Tally, rows: int, tokens: int) -> BucketFigures:
    """Describe one bucket of a dataset: its rows, and tokens without padding."""
    alone = measure([tally])
    return BucketFigures(
        sequence_length=tally.sequence_length,
        rows=tally.rows,
        row_share=ratio(tally.rows, rows),
        tokens=_tokens(tally),
        token_share=ratio(_tokens(tally), tokens),
        padding=tally.padding,
        padding_ratio=ratio(tally.padding, tally.rows * tally.sequence_length),
        intact_documents=tally.intact,
        mean_documents_per_row=alone.documents_per_row.mean,
        mean_context=alone.mean_context,
        homogeneity=alone.homogeneity,
    )


def _sliding(counts: LengthCounts, options: Mapping[str, Any]) -> Sliding:
    share = Fraction(str(options.get("max_repetition", PackOptions.max_repetition)))
    return sliding(counts, int(options["sequence_length"]), share)


def _tokens(tally: Tally) -> int:
    return tally.rows * tally.sequence_length - tally.padding


def _documents_per_row(rows: I64) -> list[DocumentsBin]:
    """Count rows by their number of documents, in bins of equal width."""
    present = np.flatnonzero(rows)
    if not len(present):
        return []
    first, last = int(present[0]), int(present[-1])
    width = -(-(last - first + 1) // _BARS)
    return [
        DocumentsBin(first=a, last=min(a + width - 1, last), rows=int(rows[a : a + width].sum()))
        for a in range(first, last + 1, width)
    ]


def _context(pieces: I64) -> list[ContextPoint]:
    """Return the share of document tokens with at least this many tokens of their piece before them in the row."""
    longest = len(pieces) - 1
    # reaching[c]: pieces longer than c, that is, tokens with exactly c before them.
    reaching = np.cumsum(pieces[::-1])[::-1][1:]
    with_at_least = np.append(np.cumsum(reaching[::-1])[::-1], 0)
    total = int(with_at_least[0])
    if not total:
        return []
    even = np.arange(_CONTEXT_STEPS + 1) * longest // _CONTEXT_STEPS
    steps = distinct(np.append(even, 2 ** np.arange(longest.bit_length())))
    return [ContextPoint(tokens=int(c), share=int(with_at_least[c]) / total) for c in steps]


def sample_rows(rows: Segments, lengths: Ints) -> list[SampleRow]:
    """Choose rows to draw.

    Args:
        rows: a few whole rows.
        lengths: of all documents.
    """
    return [
        SampleRow(
            segments=[
                SampleSegment(
                    kind="document" if document >= 0 else "padding" if document == PADDING else "eos",
                    length=length,
                    document_length=int(lengths[document]) if document >= 0 else 0,
                    cut_before=document >= 0 and start > 0,
                    # A document whose EOS alone is elsewhere is whole.
                    cut_after=document >= 0 and start + length < int(lengths[document]) - 1,
                )
                for document, start, length in zip(
                    rows.document[first:last].tolist(),
                    rows.start[first:last].tolist(),
                    rows.length[first:last].tolist(),
                    strict=True,
                )
            ]
        )
        for first, last in zip(rows.offsets[:-1].tolist(), rows.offsets[1:].tolist(), strict=True)
    ]
