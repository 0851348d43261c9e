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
from packtool.metrics.summary import measure, training_cost
from packtool.packing import STRATEGIES
from packtool.packing.strategy import mixes
from packtool.report.packed import available_context, bucket_figures, documents_per_row, sample_rows
from packtool.report.schema import Comparison, Options, SlidingForecast, Timing, Trial
from packtool.report.verdict import advise, verdicts

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
    lengths = {outcome.candidate.options.sequence_length for outcome in outcomes}
    sizes = sorted(length for length in lengths if length is not None)
    # Attention is given relative to the shortest row length asked for, else to the longest bucket.
    base = sizes[0] if sizes else max(tally.sequence_length for outcome in outcomes for tally in outcome.tallies)
    pairs = -(-counts.tokens // base) * (base * (base + 1) // 2)
    entries = [_trial(outcome, batch_size, pairs, command, parameters) for outcome in outcomes]
    return Comparison(
        verdicts=verdicts(entries, counts),
        attention_baseline=base,
        entries=entries,
        sliding=[
            SlidingForecast(
                sequence_length=size,
                longer_texts=counts.documents - counts.at_most(size),
                longer_tokens=counts.tokens_over(size),
                steps=[sliding(counts, size, share) for share in REPETITIONS],
            )
            for size in sizes
        ],
        advice=advise(counts, entries),
        left_out=list(left_out),
        unpacked=unpacked(counts, batch_size or MIXING_BATCH),
        timings=[
            Timing(planning_seconds=round(outcome.planning_seconds, 3), seconds=round(outcome.seconds, 3))
            for outcome in outcomes
        ],
    )


def _trial(
    outcome: Outcome, batch_size: int | None, baseline_pairs: int, command: str, parameters: int | None
) -> Trial:
    metrics = measure(outcome.tallies, batch_size)
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
        buckets=bucket_figures(outcome.tallies),
        documents_per_row=documents_per_row(outcome.tallies),
        context=available_context(outcome.tallies),
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
