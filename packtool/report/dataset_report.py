"""Build the report of a packed dataset from what was counted in its rows, and what was packed of each store."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise

import msgspec
import numpy as np

from packtool.formats import manifest as manifests
from packtool.formats.schema import Choice, ChosenSource, DatasetEntry, PackedManifest
from packtool.places.typed import Typed
from packtool.planning.metrics.lengths import LengthCounts
from packtool.planning.metrics.ratios import ratio
from packtool.planning.metrics.sliding import sliding
from packtool.planning.metrics.summary import Metrics, measure_rows
from packtool.planning.metrics.tally import Tally
from packtool.planning.packing import PackOptions
from packtool.planning.plan import I64, PADDING, Ints, Segments, offsets_of
from packtool.report.types import (
    SCHEMA_VERSION,
    BucketFigures,
    DocumentsBin,
    LengthBin,
    Lengths,
    PackedReport,
    PackedSourceFigures,
    SampleRow,
    SampleSegment,
)
from packtool.support.version import __version__

_QUANTILES = {"p01": 0.01, "p10": 0.1, "p25": 0.25, "p50": 0.5, "p75": 0.75, "p90": 0.9, "p99": 0.99}
_BARS = 32  # bars of a histogram, at most


def counted_report(report: PackedReport, tallies: Sequence[Tally]) -> PackedReport:
    """Return a report with the figures of its rows, as `report.json` holds it.

    Args:
        report: what is known of the dataset without its rows; figures of rows that it may have are left out.
        tallies: one for each bucket, in the order of the manifest; none where segments are not known, and then
            the report has the ledger only.
    """
    lengths = metrics = slid = None
    buckets: list[BucketFigures] = []
    in_rows: list[DocumentsBin] = []
    if tallies:
        counts = LengthCounts.of(tallies[0].lengths)
        lengths = lengths_of(counts)
        if report.strategy == "seamless" and report.beyond is msgspec.UNSET:  # else no document is longer than a row
            repeated = Fraction(str(report.options.get("max_repetition", PackOptions.max_repetition)))
            slid = sliding(counts, report.options["sequence_length"], repeated)
        measures = measure_rows(tallies, report.batch_size, report.ledger.untrained or 0)
        metrics = measures.whole
        buckets = bucket_figures(tallies, measures.buckets)
        in_rows = documents_per_row(measures.documents_in_row)
    return msgspec.structs.replace(
        report,
        schema_version=SCHEMA_VERSION,
        packtool_version=__version__,
        lengths=lengths,
        metrics=metrics,
        buckets=buckets,
        documents_per_row=in_rows,
        sliding=slid,
    )


def read_report(place: Typed, manifest: PackedManifest) -> PackedReport:
    """Read the contents of a packed dataset's `report.json`.

    Args:
        manifest: what it says, too, is taken from here: it may be that of the same rows in another order.

    Raises:
        DataError: it is missing, or not what was written.
    """
    report = manifests.read_report(place, manifest.report, PackedReport)
    choice = None
    if manifest.choice is not None:
        choice = manifest.choice.options
    return msgspec.structs.replace(
        report,
        packtool_version=manifest.packtool_version,
        strategy=manifest.strategy,
        options=msgspec.to_builtins(manifest.options),
        shuffle=manifest.shuffle,
        ledger=manifest.ledger,
        choice=choice,
    )


def lengths_of(counts: LengthCounts) -> Lengths:
    """Describe a length distribution."""
    bins = []
    for first, last, documents, total in counts.histogram():
        bins.append(LengthBin(first=first, last=last, documents=documents, total=total))
    return Lengths(
        documents=counts.documents,
        total=counts.tokens,
        mean=counts.mean,
        min=int(counts.values[0]) if len(counts.values) else 0,
        **{name: counts.quantile(share) for name, share in _QUANTILES.items()},
        max=counts.max,
        histogram=bins,
    )


def bucket_figures(tallies: Sequence[Tally], metrics: Sequence[Metrics]) -> list[BucketFigures]:
    """Describe the rows of each length, from the tally and the metrics of each."""
    rows = sum(tally.rows for tally in tallies)
    tokens = sum(tally.output - tally.padding for tally in tallies)
    buckets = []
    for tally, alone in zip(tallies, metrics, strict=True):
        content = tally.output - tally.padding
        buckets.append(
            BucketFigures(
                sequence_length=tally.sequence_length,
                rows=tally.rows,
                row_share=ratio(tally.rows, rows),
                tokens=content,
                token_share=ratio(content, tokens),
                padding=tally.padding,
                padding_ratio=alone.padding_ratio,
                mean_documents_per_row=alone.documents_per_row.mean,
                mean_context=alone.mean_context,
                homogeneity=alone.homogeneity,
            )
        )
    return buckets


def documents_per_row(rows: I64) -> list[DocumentsBin]:
    """Put rows, given by their number of documents, into bins of equal width."""
    present = np.flatnonzero(rows)
    if not len(present):
        return []
    first, last = int(present[0]), int(present[-1])
    width = -(-(last - first + 1) // _BARS)
    bins = []
    for start in range(first, last + 1, width):
        end = min(start + width, last + 1)
        bins.append(DocumentsBin(first=start, last=end - 1, rows=int(rows[start:end].sum())))
    return bins


def sample_rows(rows: Segments, lengths: Ints) -> list[SampleRow]:
    """Choose rows to draw.

    Args:
        rows: a few whole rows.
        lengths: of all documents.
    """
    samples = []
    for row in range(rows.groups):
        alone = rows[row : row + 1]
        columns = alone.document.tolist(), alone.start.tolist(), alone.length.tolist()
        samples.append(SampleRow(segments=[_sample(*segment, lengths) for segment in zip(*columns, strict=True)]))
    return samples


def _sample(document: int, start: int, length: int, lengths: Ints) -> SampleSegment:
    if document < 0:
        return SampleSegment(
            kind="padding" if document == PADDING else "eos",
            length=length,
            document_length=0,
            cut_before=False,
            cut_after=False,
        )
    document_length = int(lengths[document])
    return SampleSegment(
        kind="document",
        length=length,
        document_length=document_length,
        cut_before=start > 0,
        # A document whose EOS alone is elsewhere is whole.
        cut_after=start + length < document_length - 1,
    )


def packed_sources(
    inputs: Sequence[DatasetEntry],
    store_documents: Sequence[int],
    lengths: Ints,
    choice: Choice | None,
    names: Sequence[str] | None = None,
    trained: Sequence[int] | None = None,
) -> list[PackedSourceFigures]:
    """Describe the sources of a packed dataset.

    Args:
        inputs: the stores, as the manifest has them.
        store_documents: documents packed of each of them.
        lengths: of all documents packed, in tokens.
        choice: what was chosen of them; None for each document once.
        names: of the stores; None to leave them out.
        trained: tokens of each that train, as the ledger has them.
    """
    ends = offsets_of(np.array(store_documents, np.int64)).tolist()
    tokens = [int(lengths[first:last].sum(dtype=np.int64)) for first, last in pairwise(ends)]
    chosen = list(map(_whole, store_documents, tokens)) if choice is None else choice.sources
    amounts = [Fraction(source.epochs) * source.available_tokens for source in chosen]
    all_amounts = sum(amounts) or 1
    sources = []
    for number, (entry, source) in enumerate(zip(inputs, chosen, strict=True)):
        figures = PackedSourceFigures(
            name=None if names is None else names[number],
            digest=entry.xxh3_128,
            documents=store_documents[number],
            document_share=ratio(store_documents[number], ends[-1]),
            tokens=tokens[number],
            token_share=ratio(tokens[number], sum(tokens)),
            trained_tokens=None if trained is None else trained[number],
            asked_share=float(amounts[number] / all_amounts),
            asked_epochs=float(Fraction(source.epochs)),
            epochs=ratio(tokens[number], source.available_tokens),
            stored_documents=source.documents,
            stored_tokens=source.tokens,
            left_out=source.left_out,
            repeated_documents=source.repeated_documents,
            repeated_tokens=source.repeated_tokens,
        )
        sources.append(figures)
    return sources


def _whole(documents: int, tokens: int) -> ChosenSource:
    """Describe a source of which each document is chosen once."""
    return ChosenSource(
        documents=documents,
        tokens=tokens,
        left_out={},
        asked="1",
        epochs="1",
        chosen_documents=documents,
        chosen_tokens=tokens,
        repeated_documents=0,
        repeated_tokens=0,
    )
