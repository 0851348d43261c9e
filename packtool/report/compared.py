"""Compare what strategies would make of a corpus, from the trials of `packtool.comparing`."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import fields
from fractions import Fraction
from typing import Any

from packtool.comparing import Candidate, Outcome
from packtool.metrics.lengths import LengthCounts, unpacked
from packtool.metrics.ratios import ratio
from packtool.metrics.sliding import sliding
from packtool.metrics.summary import training_cost
from packtool.packing import STRATEGIES
from packtool.packing.strategy import mixes
from packtool.report.advice import advise
from packtool.report.packed import row_figures, sample_rows
from packtool.report.schema import Comparison, Options, SlidingForecast, Timing, Trial
from packtool.report.verdict import verdicts

MIXING_BATCH = 64
"""Rows in a batch where figures of batches are wanted without a batch size."""
REPETITIONS = [Fraction(i, 20) for i in range(1, 11)]
"""Maximum repetition ratios for which sliding is foreseen: those of the paper's Figure 3."""


def comparison_of(
    outcomes: Sequence[Outcome],
    counts: LengthCounts,
    batch_size: int | None,
    command: str = "packtool pack store -o packed",
    parameters: int | None = None,
    left_out: Sequence[str] = (),
) -> Comparison:
    """Compare what each candidate would make of a corpus.

    Args:
        outcomes: of `packtool.comparing.compare`.
        counts: lengths of the documents compared on.
        batch_size: rows in a batch, for steps per epoch (with several buckets: of the longest rows).
        command: packs these documents, but for the strategy and its options.
        parameters: of the model whose training cost is worked out.
        left_out: strategies that were meant but not tried.
    """
    base = baseline_length(outcomes)
    pairs = -(-counts.tokens // base) * (base * (base + 1) // 2)
    entries = [_trial(outcome, batch_size, pairs, command, parameters) for outcome in outcomes]
    sizes = {outcome.candidate.options.sequence_length for outcome in outcomes}
    return Comparison(
        verdicts=verdicts(entries, counts),
        attention_baseline=base,
        entries=entries,
        sliding=[_sliding(counts, size) for size in sorted(size for size in sizes if size is not None)],
        advice=advise(counts, entries),
        left_out=list(left_out),
        unpacked=unpacked(counts, batch_size or MIXING_BATCH),
        timings=[
            Timing(planning_seconds=round(outcome.planning_seconds, 3), seconds=round(outcome.seconds, 3))
            for outcome in outcomes
        ],
    )


def baseline_length(outcomes: Sequence[Outcome]) -> int:
    """Return the row length that attention is given relative to: the shortest asked for, else the longest bucket."""
    asked = [outcome.candidate.options.sequence_length for outcome in outcomes]
    return min(
        (size for size in asked if size is not None),
        default=max(tally.sequence_length for outcome in outcomes for tally in outcome.tallies),
    )


def _trial(
    outcome: Outcome, batch_size: int | None, baseline_pairs: int, command: str, parameters: int | None
) -> Trial:
    figures = row_figures(outcome.tallies, batch_size)
    metrics = figures.metrics
    assert metrics is not None, "a trial counts its rows"
    return Trial(
        strategy=outcome.candidate.strategy,
        label=outcome.candidate.label,
        command=f"{command} {shlex.join(outcome.candidate.arguments())}",
        sequence_length=outcome.candidate.options.sequence_length,
        options=_options(outcome.candidate),
        ledger=outcome.ledger,
        metrics=metrics,
        attention=ratio(metrics.attention_full, baseline_pairs),
        attention_masked=ratio(metrics.attention_masked, baseline_pairs),
        buckets=figures.buckets,
        documents_per_row=figures.documents_per_row,
        context=figures.context,
        sampled_documents=outcome.sampled,
        training=None if parameters is None else training_cost(metrics, outcome.ledger.output, parameters),
        waiting=list(outcome.waiting),
        sample_rows=sample_rows(outcome.sample, outcome.tallies[0].lengths),
    )


def _options(candidate: Candidate) -> Options:
    """Return the strategy's options as tried, defaults included."""
    strategy, given = STRATEGIES[candidate.strategy], candidate.options
    settled: dict[str, Callable[[], Any]] = {
        "atom_size": lambda: given.atom,
        "buckets": lambda: list(given.buckets),
        "extra_capacity": lambda: given.extra,
        "mix_rows": lambda: mixes(strategy, given),
    }
    names = [field.name for field in fields(given) if field.name in strategy.accepts]
    names += ["window_tokens"] if strategy.windowed else []
    values = {name: settled[name]() if name in settled else getattr(given, name) for name in names}
    return {name: float(value) if isinstance(value, Fraction) else value for name, value in values.items()}


def _sliding(counts: LengthCounts, sequence_length: int) -> SlidingForecast:
    return SlidingForecast(
        sequence_length=sequence_length,
        longer_texts=counts.documents - counts.at_most(sequence_length),
        longer_tokens=counts.tokens_over(sequence_length),
        steps=[sliding(counts, sequence_length, share) for share in REPETITIONS],
    )
