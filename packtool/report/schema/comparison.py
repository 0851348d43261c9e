"""What reports say of strategies tried on the same documents."""

from __future__ import annotations

import msgspec

from packtool.metrics import Ledger, Metrics, Sliding
from packtool.metrics.training import TrainingCost
from packtool.metrics.unpacked import Unpacked
from packtool.report.schema.rows import BucketFigures, ContextPoint, DocumentsBin, Options, PicturedRow


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """What one strategy, with its options, would make of the documents: the figures of the dataset `pack` would write.

    Attributes:
        strategy: its name.
        label: its name and, where it was tried in several ways, the options in which these differ.
        command: writes this dataset.
        sequence_length: tokens in a row; null for strategies of several row lengths.
        options: all that the strategy takes, as it was tried, defaults included.
        ledger: where every token would go.
        metrics: in total.
        attention: `attention_full` / query-key pairs of the whole corpus as one stream in rows of the baseline.
        attention_masked: the same for `attention_masked`.
        buckets: for each row length.
        documents_per_row: how many rows hold how many documents.
        context: how much of its own document a token has before it.
        sampled_documents: where rows are mixed and the corpus is large, `homogeneity` and `documents_per_row` are those
            of the first so many documents, packed alone; null where they are those of all. Nothing else depends on
            mixing.
        training: what an epoch costs; null without `--parameters`.
        pictured: a few rows, evenly spread, of what the strategy makes of the first 20,000 documents alone, of the row
            length with the most tokens; unshuffled.
    """

    strategy: str
    label: str
    command: str
    sequence_length: int | None
    options: Options
    ledger: Ledger
    metrics: Metrics
    attention: float
    attention_masked: float
    buckets: list[BucketFigures]
    documents_per_row: list[DocumentsBin]
    context: list[ContextPoint]
    sampled_documents: int | None
    training: TrainingCost | None
    pictured: list[PicturedRow]


class SlidingForecast(msgspec.Struct, frozen=True, kw_only=True):
    """What `seamless` can do with documents longer than a row.

    Attributes:
        sequence_length: tokens in a row.
        longer_texts: documents longer than a row.
        longer_tokens: their tokens.
        steps: for each maximum repetition ratio of the paper's Figure 3.
    """

    sequence_length: int
    longer_texts: int
    longer_tokens: int
    steps: list[Sliding]


class ChosenStrategy(msgspec.Struct, frozen=True, kw_only=True):
    """A strategy that is chosen.

    Attributes:
        strategy: the label of its trial.
        reason: why, in figures; of a runner-up, when to prefer it.
        command: writes the dataset.
    """

    strategy: str
    reason: str
    command: str


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """The strategy for these documents and one row length, by the rule of docs/choosing.md.

    Attributes:
        sequence_length: tokens in a row; null where only strategies of several row lengths were compared.
        choice: the strategy to take.
        runner_up: what another aim or another trainer would take; null where nothing else was compared.
        limits: what the evidence behind the rule does not cover.
    """

    sequence_length: int | None
    choice: ChosenStrategy
    runner_up: ChosenStrategy | None
    limits: str


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
        verdicts: for each row length; none without documents.
        attention_baseline: the row length that attention is given relative to.
        entries: one for each strategy and row length.
        sliding: for each row length, what `seamless` can do.
        advice: what the papers advise for such documents.
        left_out: strategies that `all` stands for but that were not tried: they place one document after the other,
            and there are more than two million. Named, they are tried.
        unpacked: what documents would cost that are not packed, in batches of the size given, else of 64; null without
            documents.
        timings: of each entry, in the same order.
    """

    verdicts: list[Verdict]
    attention_baseline: int
    entries: list[Trial]
    sliding: list[SlidingForecast]
    advice: list[Advice]
    left_out: list[str]
    unpacked: Unpacked | None
    timings: list[Timing]
