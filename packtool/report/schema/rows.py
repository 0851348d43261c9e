"""What reports say of documents and of the rows that hold them."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import msgspec

from packtool.metrics import Metrics
from packtool.metrics.homogeneity import Homogeneity

Options: TypeAlias = dict[str, Any]
"""Options by name; which ones there are depends on the strategy."""


class LengthBin(msgspec.Struct, frozen=True, kw_only=True):
    """Documents of similar length.

    Attributes:
        first: the shortest length of the bin.
        last: the longest.
        documents: documents whose length lies between the two.
        total: the sum of their lengths.
    """

    first: int = msgspec.field(name="from")
    last: int = msgspec.field(name="to")
    documents: int
    total: int


class Lengths(msgspec.Struct, frozen=True, kw_only=True):
    """The distribution of document lengths. pNN is the smallest length that NN % of the documents do not exceed.

    Attributes:
        unit: tokens (EOS included), words (what whitespace separates) or characters (code points).
        documents: number of documents.
        total: the sum of their lengths.
        mean: the mean length.
        min: the shortest length; 0 without documents.
        p01: 1 % have at most this length.
        p10: 10 % have at most this length.
        p25: 25 % have at most this length.
        p50: the median.
        p75: 75 % have at most this length.
        p90: 90 % have at most this length.
        p99: 99 % have at most this length.
        max: the longest length; 0 without documents.
        histogram: bins of equal width on a logarithmic scale.
    """

    unit: str
    documents: int
    total: int
    mean: float
    min: int
    p01: int
    p10: int
    p25: int
    p50: int
    p75: int
    p90: int
    p99: int
    max: int
    histogram: list[LengthBin]


class BucketFigures(msgspec.Struct, frozen=True, kw_only=True):
    """Rows of one length.

    Attributes:
        sequence_length: tokens in a row.
        rows: how many there are.
        row_share: their share of all rows.
        tokens: tokens that are not padding.
        token_share: their share of all such tokens.
        padding: padding tokens.
        padding_ratio: padding / tokens of the bucket, padding included.
        intact_documents: documents whose text lies in one segment of one of these rows.
        mean_documents_per_row: distinct documents in a row, mean.
        mean_context: as in the metrics, for these rows.
        homogeneity: how alike the segments of a row are, for these rows.
    """

    sequence_length: int
    rows: int
    row_share: float
    tokens: int
    token_share: float
    padding: int
    padding_ratio: float
    intact_documents: int
    mean_documents_per_row: float
    mean_context: float
    homogeneity: Homogeneity


class DocumentsBin(msgspec.Struct, frozen=True, kw_only=True):
    """Rows that hold similarly many documents.

    Attributes:
        first: the fewest documents in a row of the bin.
        last: the most.
        rows: rows with so many documents.
    """

    first: int = msgspec.field(name="from")
    last: int = msgspec.field(name="to")
    rows: int


class ContextPoint(msgspec.Struct, frozen=True, kw_only=True):
    """A point of the curve of available context.

    Attributes:
        tokens: tokens of its own segment before a token, in its row.
        share: share of document tokens with at least so many.
    """

    tokens: int
    share: float


class RowFigures(msgspec.Struct, frozen=True, kw_only=True):
    """What rows do to documents. Of rows without a segment table nothing is known.

    Attributes:
        metrics: in total; null where boundaries are not known (`--no-segments`).
        buckets: for each row length.
        documents_per_row: how many rows hold how many documents.
        context: how much of its own document a token has before it.
    """

    metrics: Metrics | None
    buckets: list[BucketFigures]
    documents_per_row: list[DocumentsBin]
    context: list[ContextPoint]


class PicturedSegment(msgspec.Struct, frozen=True, kw_only=True):
    """A segment of a row that is drawn.

    Attributes:
        kind: a segment of a document, padding, or an EOS that the strategy inserted.
        length: tokens of the segment.
        document_length: tokens of its document, EOS included; 0 for padding and inserted EOS.
        cut_before: its document begins elsewhere.
        cut_after: its document's text goes on elsewhere, or is dropped.
    """

    kind: Literal["document", "padding", "eos"]
    length: int
    document_length: int
    cut_before: bool
    cut_after: bool


class PicturedRow(msgspec.Struct, frozen=True, kw_only=True):
    """A row that is drawn.

    Attributes:
        segments: its segments, in order.
    """

    segments: list[PicturedSegment]
