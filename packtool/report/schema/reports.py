"""The reports as wholes: of a packed dataset, of token stores, of text files."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from packtool import __version__
from packtool.metrics import BatchMix, Ledger, Metrics, Mixed, Sliding
from packtool.metrics.training import TrainingCost
from packtool.report.figures import percent
from packtool.report.schema.comparison import Comparison
from packtool.report.schema.rows import (
    BucketFigures,
    ContextPoint,
    DocumentsBin,
    Lengths,
    Options,
    PicturedRow,
)
from packtool.report.schema.sources import PackedSourceFigures, StoredSourceFigures
from packtool.sizes import plural
from packtool.storage.manifest import Shuffle, TokenizerInfo

FORMAT: Literal["packtool report"] = "packtool report"
SCHEMA_VERSION: Literal[1] = 1


class PackedReport(msgspec.Struct, frozen=True, kw_only=True):
    """`report.json`: what `pack` and `shuffle` write beside the manifest of a packed dataset.

    Attributes:
        format: always the same.
        schema_version: changes when a name goes or changes its meaning; new names may come without a change.
        packtool_version: the version that wrote the report.
        kind: what was measured.
        strategy: as in the manifest (docs/format.md).
        options: as in the manifest.
        shuffle: as in the manifest; with `stats --order`, the shuffle of the order.
        batch_size: rows in a batch, as given to `stats`, else null. With several buckets, rows of the longest; batches
            of the others hold as many tokens.
        ledger: where every token went.
        lengths: the documents; null where boundaries are not known (`--no-segments`).
        metrics: in total; null where boundaries are not known.
        buckets: for each row length.
        documents_per_row: how many rows hold how many documents.
        context: how much of its own document a token has before it.
        sliding: of `seamless`, what its maximum repetition ratio did; else null.
        sources: the token stores that were packed, in order; named by `stats` alone.
        source_mix: how evenly batches hold them, for each row length; empty where there is one store, or where
            boundaries are not known.
    """

    format: Literal["packtool report"] = FORMAT
    schema_version: Literal[1] = SCHEMA_VERSION
    packtool_version: str = __version__
    kind: Literal["packed"] = "packed"
    strategy: str
    options: Options
    shuffle: Shuffle | None
    batch_size: int | None
    ledger: Ledger
    lengths: Lengths | None
    metrics: Metrics | None
    buckets: list[BucketFigures]
    documents_per_row: list[DocumentsBin]
    context: list[ContextPoint]
    sliding: Sliding | None
    sources: list[PackedSourceFigures] = []
    source_mix: list[BatchMix] = []

    def __repr__(self) -> str:
        lengths = " / ".join(f"{bucket.sequence_length:,}" for bucket in self.buckets)
        padding = "" if self.metrics is None else f", padding {percent(self.metrics.padding_ratio)}"
        rows = plural(self.ledger.rows, "row")
        return f"<{type(self).__name__}: {self.strategy}, {rows} of {lengths} tokens{padding}>"


class MeasuredReport(PackedReport, frozen=True, kw_only=True):
    """What `stats` reports of a packed dataset: its report, counted anew, and more.

    Attributes:
        path: what was measured, as given.
        mixing: how well mixed the rows are, for each row length; empty where boundaries are not known.
        training: what an epoch costs; null without `--parameters`.
        pictured: a few rows, evenly spread, of the row length with the most tokens; empty where boundaries are not
            known.
    """

    path: str
    mixing: list[Mixed]
    training: TrainingCost | None
    pictured: list[PicturedRow]


class StoreReport(msgspec.Struct, frozen=True, kw_only=True):
    """What `stats` reports of one or more token stores.

    Attributes:
        path: what was measured, as given; of several stores, set apart by spaces.
        format: always the same.
        schema_version: as in every report.
        packtool_version: the version that wrote the report.
        kind: what was measured.
        tokenizer: as in the manifest of the store.
        dtype: of the stored tokens.
        counts: documents, tokens, and what was left out, by reason, as in the manifest; of several stores, their sums.
        sources: the stores, in order.
        batch_size: rows in a batch, as given, else null.
        lengths: the documents, in tokens.
        comparison: with `--compare`, else null.
    """

    path: str
    format: Literal["packtool report"] = FORMAT
    schema_version: Literal[1] = SCHEMA_VERSION
    packtool_version: str = __version__
    kind: Literal["store"] = "store"
    tokenizer: TokenizerInfo
    dtype: str
    counts: dict[str, int]
    sources: list[StoredSourceFigures]
    batch_size: int | None
    lengths: Lengths
    comparison: Comparison | None

    def __repr__(self) -> str:
        return _documents(self)


class CorpusReport(msgspec.Struct, frozen=True, kw_only=True):
    """What `stats` reports of text files.

    Attributes:
        path: what was measured, as given.
        format: always the same.
        schema_version: as in every report.
        packtool_version: the version that wrote the report.
        kind: what was measured.
        tokenizer: the one that counted tokens, else null.
        counts: files, their bytes, documents, and what was left out, by reason.
        batch_size: rows in a batch, as given, else null.
        lengths: the documents in tokens where these were counted, else in words.
        words: the documents in words.
        characters: the documents in characters.
        comparison: with `--compare`, else null.
    """

    path: str
    format: Literal["packtool report"] = FORMAT
    schema_version: Literal[1] = SCHEMA_VERSION
    packtool_version: str = __version__
    kind: Literal["corpus"] = "corpus"
    tokenizer: TokenizerInfo | None
    counts: dict[str, int]
    batch_size: int | None
    lengths: Lengths
    words: Lengths
    characters: Lengths
    comparison: Comparison | None

    def __repr__(self) -> str:
        return _documents(self)


def _documents(report: StoreReport | CorpusReport) -> str:
    held = f"{plural(report.lengths.documents, 'document')}, {plural(report.lengths.total, report.lengths.unit[:-1])}"
    tried = "" if report.comparison is None else f", {plural(len(report.comparison.entries), 'plan')} compared"
    return f"<{type(report).__name__}: {report.path}, {held}{tried}>"


DocumentsReport: TypeAlias = StoreReport | CorpusReport
"""Of documents that are not packed."""
Report: TypeAlias = MeasuredReport | StoreReport | CorpusReport
"""Whatever `packtool.stats` reports."""
