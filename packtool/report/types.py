"""The types of a report, from which the JSON, its schema, docs/report-schema.md, tables and pages follow.

Reports are deterministic: no timings (but in `Comparison.timings`) and no paths (but in `path`), so equal datasets have
equal reports. Metrics are those of `packtool.planning.metrics`, under the names that they have there.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, Literal, TypeAlias

import msgspec

from packtool.formats.schema import LeftOut, Shuffle, TokenizerInfo
from packtool.planning.metrics.homogeneity import Homogeneity
from packtool.planning.metrics.ledger import Ledger
from packtool.planning.metrics.mixing import BatchShares, PairDistances
from packtool.planning.metrics.neighbours import Neighbours
from packtool.planning.metrics.sliding import Sliding
from packtool.planning.metrics.summary import Metrics
from packtool.report.figures import percent
from packtool.support.sizes import plural
from packtool.support.version import __version__

StrategyOptions: TypeAlias = dict[str, Any]
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
    """The distribution of document lengths in tokens, EOS included.

    Attributes:
        documents: number of documents.
        total: the sum of their lengths.
        mean: the mean length.
        min: the shortest length; 0 without documents.
        p01, p10, p25, p50, p75, p90, p99: pNN is the smallest length that NN % of the documents do not exceed.
        max: the longest length; 0 without documents.
        histogram: bins of equal width on a logarithmic scale.
    """

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
    mean_documents_per_row: float
    mean_context: float
    homogeneity: Homogeneity


class DocumentsBin(msgspec.Struct, frozen=True, kw_only=True):
    """Rows that hold similarly many documents.

    Attributes:
        first: the fewest documents in a row of the bin.
        last: the most.
        rows: how many rows there are.
    """

    first: int = msgspec.field(name="from")
    last: int = msgspec.field(name="to")
    rows: int


class SampleSegment(msgspec.Struct, frozen=True, kw_only=True):
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


class SampleRow(msgspec.Struct, frozen=True, kw_only=True):
    """A row that is drawn.

    Attributes:
        segments: its segments, in order.
    """

    segments: list[SampleSegment]


class SourceFigures(msgspec.Struct, frozen=True, kw_only=True):
    """One of the inputs.

    Attributes:
        name: of its directory; null in `report.json`, which does not depend on names.
        digest: xxh3-128 of its manifest, which holds those of its files.
        documents: its documents here.
        document_share: their share of all documents.
        tokens: its tokens here, EOS included.
        token_share: their share of all tokens: of a mixture, the share achieved.
        trained_tokens: number of its tokens that train; null if all tokens of all inputs do.
    """

    name: str | None
    digest: str
    documents: int
    document_share: float
    tokens: int
    token_share: float
    trained_tokens: int | None = None


class PackedSourceFigures(SourceFigures, frozen=True, kw_only=True):
    """A token store that was packed: its planned and its actual share. The account of each store balances:
    stored = left out + packed - repeated.

    Attributes:
        asked_share: share of all tokens that it was to have.
        asked_epochs: how often it was to be packed.
        epochs: tokens packed / tokens that were left to draw from.
        stored_documents: documents of the store.
        stored_tokens: its tokens, EOS included.
        left_out: what was not packed, by reason, each document under the first that holds: excluded, not_where,
            too_short, too_long, duplicates, other_side (of a hold-out), other_shard, not_sampled, and not_drawn by a
            weight below 1.
        repeated_documents: number of packed documents that an earlier pass has, too.
        repeated_tokens: their tokens.
    """

    asked_share: float
    asked_epochs: float
    epochs: float
    stored_documents: int
    stored_tokens: int
    left_out: dict[str, LeftOut]
    repeated_documents: int
    repeated_tokens: int


class ListedDocument(msgspec.Struct, frozen=True, kw_only=True):
    """A document of a token store that a list names.

    Attributes:
        store: the name of its store.
        document: its number there, from 0.
        origin: its file and line, as FILE:LINE; null without provenance.
        id: null where ids were not kept.
        tokens: its length, EOS included.
    """

    store: str
    document: int
    origin: str | None
    id: str | None
    tokens: int


class RepeatedText(ListedDocument, frozen=True, kw_only=True):
    """A text that several documents have, and the first of them.

    Attributes:
        documents: how many have it.
    """

    documents: int


class StoredSourceFigures(SourceFigures, frozen=True, kw_only=True):
    """A token store that is measured.

    Attributes:
        lengths: of its documents, in tokens.
        duplicates: documents whose text an earlier document of the same inputs has; null without
            provenance, or where some stores know hashes of texts and others of ids.
    """

    lengths: Lengths
    duplicates: int | None


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """One strategy, with its options, tried on the documents: the figures of the dataset `pack` would write.

    Attributes:
        strategy: its name.
        command: writes this dataset.
        sequence_length: tokens in a row; null for strategies of several row lengths.
        options: all that the strategy takes, as it was tried, defaults included.
        dropped_conversations: conversations longer than a row, which `--too-long drop` leaves out: the ledger's
            `left_out` has their text, and no other figure.
        ledger: where every token would go, as `pack` writes it. Which tokens of the rows train is not counted, so that
            `trained_stored` and what follows it are null.
        beyond: as of a packed dataset's report.
        metrics: in total.
        attention: `attention_full` / query-key pairs of the whole corpus as one stream in rows of the baseline.
        attention_masked: the same for `attention_masked`.
        buckets: for each row length.
        documents_per_row: how many rows hold how many documents.
        stages: as of a packed dataset's report.
        sample_rows: a few rows, evenly spread, of what the strategy makes of the first 20,000 documents alone, of the
            row length with the most tokens; unshuffled.
    """

    strategy: str
    command: str
    sequence_length: int | None
    options: StrategyOptions
    dropped_conversations: int
    ledger: Ledger
    beyond: int | msgspec.UnsetType = msgspec.UNSET
    metrics: Metrics
    attention: float
    attention_masked: float
    buckets: list[BucketFigures]
    documents_per_row: list[DocumentsBin]
    stages: dict[str, int] | None = None
    sample_rows: list[SampleRow] = msgspec.field(name="pictured")


class ChosenStrategy(msgspec.Struct, frozen=True, kw_only=True):
    """A strategy that is chosen.

    Attributes:
        strategy: its name.
        reason: why, in figures; of a runner-up, when to prefer it.
        command: writes the dataset.
        source: the paper that found it, what it tested and what not; null where none did.
    """

    strategy: str
    reason: str
    command: str
    source: str | None = None


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """The strategy for these documents and one row length, by the rule of docs/choosing.md.

    Attributes:
        sequence_length: tokens in a row; null where only strategies of several row lengths were compared.
        choice: the strategy to take.
        runner_up: what another aim or another trainer would take; null where nothing else was compared.
        limits: what the evidence behind the rule does not cover.
        alternatives: all that another aim or another trainer would take; the runner-up is the first.
    """

    sequence_length: int | None
    choice: ChosenStrategy
    runner_up: ChosenStrategy | None
    limits: str
    alternatives: list[ChosenStrategy] = []


class Advice(msgspec.Struct, frozen=True):
    """One piece of advice.

    Attributes:
        advice: what to do.
        reason: why, with figures of this corpus.
        source: the paper and section behind it.
        untested: what that paper did not test.
    """

    advice: str
    reason: str
    source: str
    untested: str


class Timing(msgspec.Struct, frozen=True, kw_only=True):
    """CPU seconds that a trial took: the only figures that differ from run to run.

    Attributes:
        planning_seconds: from lengths to plans.
        seconds: from lengths to figures.
    """

    planning_seconds: float
    seconds: float


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """Strategies tried on the same documents.

    Attributes:
        verdicts: for each row length; no verdicts without documents.
        attention_baseline: the row length that attention is given relative to.
        entries: one for each strategy and row length.
        advice: what the papers advise for such documents.
        sampled_documents: how many documents were planned, where there are more than ten million and `--exact` was not
            given: a sample spread evenly over all. What `entries` count is of the sample. Null where all were planned.
        timings: of each entry, in the same order.
    """

    verdicts: list[Verdict]
    attention_baseline: int
    entries: list[Trial]
    advice: list[Advice]
    sampled_documents: int | None
    timings: list[Timing]


FORMAT: Literal["packtool report"] = "packtool report"
SCHEMA_VERSION: Literal[2] = 2


class PackedReport(msgspec.Struct, frozen=True, kw_only=True):
    """`report.json`, which `pack` and `shuffle` write next to the manifest of a packed dataset.

    Attributes:
        format: always the same.
        schema_version: changes when a name goes or changes its meaning; new names may come without a change. A report
            with 1 has no name that means something else, and is read.
        packtool_version: the version that wrote the report.
        kind: what was measured.
        strategy: as in the manifest (docs/format.md).
        options: as in the manifest.
        shuffle: as in the manifest.
        batch_size: rows in a batch, as given to `stats`, else null. With several buckets, rows of the longest; batches
            of the others hold the same number of tokens.
        ledger: where every token went.
        beyond: text tokens of long documents after the first ones, which `--too-long first` leaves out; `dropped` of
            the ledger has them, too. Absent without it.
        lengths: the documents; null where boundaries are not known (`--no-segments`).
        metrics: in total; null where boundaries are not known.
        buckets: for each row length.
        documents_per_row: how many rows hold how many documents.
        sliding: of `seamless`, what its maximum repetition ratio did; else null.
        stages: of `seamless` and `bfd-extra`, rows by the step that made them: overlapping and whole rows of long
            documents, bins as they were filled, and rows of bins that were joined and cut; where rows hold at most so
            many documents (`--max-documents-per-row`), those filled without regard to it, and those added for what they
            held too much; null for others.
        sources: the token stores that were packed, in order; named by `stats` alone.
        source_mix: how evenly batches hold them, for each row length; empty where there is one store, or where
            boundaries are not known.
        neighbours: of documents in the order of fields (`--order-by`), what share of a row has the same value of the
            first field; null for others, where boundaries are not known, and where a shuffle cut rows.
        choice: how the documents were chosen, as in the manifest; null where each was taken once.
        rows_without_target: rows in which no token is a target; absent where a shuffle cut rows whose tokens are
            elsewhere, or whose boundaries are not known.
    """

    format: Literal["packtool report"] = FORMAT
    schema_version: Literal[1, 2] = SCHEMA_VERSION
    packtool_version: str = __version__
    kind: Literal["packed"] = "packed"
    strategy: str
    options: StrategyOptions
    shuffle: Shuffle | None
    batch_size: int | None
    ledger: Ledger
    beyond: int | msgspec.UnsetType = msgspec.UNSET
    lengths: Lengths | None
    metrics: Metrics | None
    buckets: list[BucketFigures]
    documents_per_row: list[DocumentsBin]
    sliding: Sliding | None
    stages: dict[str, int] | None = None
    sources: list[PackedSourceFigures] = []
    source_mix: list[BatchShares] = []
    neighbours: Neighbours | None = None
    choice: StrategyOptions | None = None
    rows_without_target: int | msgspec.UnsetType = msgspec.UNSET

    def __repr__(self) -> str:
        lengths = " / ".join(f"{bucket.sequence_length:,}" for bucket in self.buckets)
        padding = "" if self.metrics is None else f", padding {percent(self.metrics.padding_ratio)}"
        rows = plural(self.ledger.rows, "row")
        return f"<{type(self).__name__}: {self.strategy}, {rows} of {lengths} tokens{padding}>"


class WithPage:
    """A report that a notebook shows as its page."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        page: Any = import_module("packtool.report.page")  # which is made of these types
        return str(page.framed(self))


class MeasuredReport(PackedReport, WithPage, frozen=True, kw_only=True):
    """The report of `stats` on a packed dataset: its own report, recounted, and more.

    Attributes:
        path: what was measured, as given.
        command: makes the dataset again, with the paths that it was given, made absolute; null where `run.json` does
            not tell.
        excluded: lists and stores of `--exclude`, as they were given; empty where `run.json` does not tell.
        tokenizer: as in the manifest.
        tokenizer_name: as `tokenize` was given it; null where no `run.json` tells.
        mixing: how well mixed the rows are, for each row length; empty where boundaries are not known.
        sample_rows: a few rows, evenly spread, of the row length with the most tokens; empty where boundaries are not
            known.
    """

    path: str
    command: str | None = None
    excluded: list[str] = []
    tokenizer: TokenizerInfo
    tokenizer_name: str | None = None
    mixing: list[PairDistances]
    sample_rows: list[SampleRow] = msgspec.field(name="pictured")


class StoreReport(msgspec.Struct, WithPage, frozen=True, kw_only=True):
    """The report of `stats` on one or more token stores, or on text files, which it tokenizes to a temporary store.

    Attributes:
        path: what was measured, as given; of several stores, set apart by spaces.
        format: always the same.
        schema_version: as in every report.
        packtool_version: the version that wrote the report.
        kind: what was measured.
        tokenizer: as in the manifest of the store.
        tokenizer_name: as `tokenize` was given it; null where no `run.json` tells.
        dtype: of the stored tokens.
        counts: documents, tokens, and what was left out, by reason, as in the manifest; of several stores, their sums.
        sources: the stores, in order.
        batch_size: rows in a batch, as given, else null.
        lengths: the documents, in tokens.
        comparison: with `--compare`, else null.
        longest: the longest documents, longest first, each once; null without `--longest`.
        most_repeated: the texts that most documents have, most frequent first; null without `--most-repeated`.
        temporary_bytes: the room that the tokens of text files took in the temporary directory; null for stores.
    """

    path: str
    format: Literal["packtool report"] = FORMAT
    schema_version: Literal[2] = SCHEMA_VERSION
    packtool_version: str = __version__
    kind: Literal["store"] = "store"
    tokenizer: TokenizerInfo
    tokenizer_name: str | None = None
    dtype: str
    counts: dict[str, int]
    sources: list[StoredSourceFigures]
    batch_size: int | None
    lengths: Lengths
    comparison: Comparison | None
    longest: list[ListedDocument] | None = None
    most_repeated: list[RepeatedText] | None = None
    temporary_bytes: int | None = None

    def __repr__(self) -> str:
        size = f"{plural(self.lengths.documents, 'document')}, {plural(self.lengths.total, 'token')}"
        tried = "" if self.comparison is None else f", {plural(len(self.comparison.entries), 'plan')} compared"
        return f"<{type(self).__name__}: {self.path}, {size}{tried}>"
