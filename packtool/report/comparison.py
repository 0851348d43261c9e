"""The comparison of strategies as plain JSON types."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, fields
from fractions import Fraction
from typing import Any

import msgspec

from packtool.comparison import Candidate, Outcome
from packtool.metrics import LengthCounts, measure
from packtool.metrics.sliding import sliding
from packtool.metrics.summary import ratio
from packtool.packing import STRATEGIES
from packtool.report.advice import advise
from packtool.report.definitions import Figure
from packtool.report.document import metrics_section, rows_section, sliding_section

Json = dict[str, Any]

REPETITIONS = [Fraction(i, 20) for i in range(1, 11)]
"""Maximum repetition ratios for which sliding is foreseen: those of the paper's Figure 3."""


def comparison_section(outcomes: Sequence[Outcome], counts: LengthCounts, batch_size: int | None) -> Json:
    """What each candidate would make of a corpus.

    Args:
        outcomes: of `packtool.comparison.compare`.
        counts: lengths of the documents compared on.
        batch_size: rows in a batch, for steps per epoch (with several buckets: of the longest rows).
    """
    base = baseline_length(outcomes)
    pairs = -(-counts.tokens // base) * (base * (base + 1) // 2)
    entries = [_entry(outcome, batch_size, pairs) for outcome in outcomes]
    sizes = {outcome.candidate.options.sequence_length for outcome in outcomes}
    return {
        "attention_baseline": base,
        "entries": entries,
        "sliding": [_sliding(counts, size) for size in sorted(size for size in sizes if size is not None)],
        "advice": [asdict(advice) for advice in advise(counts, entries)],
        "timings": [
            {"planning_seconds": round(outcome.planning_seconds, 3), "seconds": round(outcome.seconds, 3)}
            for outcome in outcomes
        ],
    }


def baseline_length(outcomes: Sequence[Outcome]) -> int:
    """The row length that attention is given relative to: the shortest that was asked for, else the longest bucket."""
    asked = [outcome.candidate.options.sequence_length for outcome in outcomes]
    return min(
        (size for size in asked if size is not None),
        default=max(tally.sequence_length for outcome in outcomes for tally in outcome.tallies),
    )


def best(entries: Sequence[Json], entry: Json, figure: Figure) -> bool:
    """Whether an entry has the best value among those of its sequence length, and others have a worse one."""
    rivals = [figure.of(e["metrics"]) for e in entries if e["sequence_length"] == entry["sequence_length"]]
    known = [value for value in rivals if value is not None]
    if not figure.better or not known or min(known) == max(known):
        return False
    return figure.of(entry["metrics"]) == (min(known) if figure.better < 0 else max(known))


def _entry(outcome: Outcome, batch_size: int | None, baseline_pairs: int) -> Json:
    metrics = measure(outcome.tallies, batch_size)
    section = rows_section(outcome.tallies, batch_size)
    return {
        "strategy": outcome.candidate.strategy,
        "sequence_length": outcome.candidate.options.sequence_length,
        "options": _options(outcome.candidate),
        "ledger": msgspec.to_builtins(outcome.ledger),
        "metrics": metrics_section(metrics),
        "attention": ratio(metrics.attention_full, baseline_pairs),
        "attention_masked": ratio(metrics.attention_masked, baseline_pairs),
        "buckets": section["buckets"],
        "documents_per_row": section["documents_per_row"],
        "context": section["context"],
    }


def _options(candidate: Candidate) -> Json:
    """The options that the strategy takes, as it was tried, defaults included."""
    strategy, given = STRATEGIES[candidate.strategy], candidate.options
    settled: Json = {
        "atom_size": lambda: given.atom,
        "buckets": lambda: list(given.bucket_sizes),
        "extra_capacity": lambda: given.extra,
        "min_bucket": lambda: given.smallest_bucket,
    }
    names = [field.name for field in fields(given) if field.name in strategy.accepts]
    names += ["window_tokens"] if strategy.windowed else []
    values = {name: settled[name]() if name in settled else getattr(given, name) for name in names}
    return {name: float(value) if isinstance(value, Fraction) else value for name, value in values.items()}


def _sliding(counts: LengthCounts, sequence_length: int) -> Json:
    return {
        "sequence_length": sequence_length,
        "longer_texts": counts.documents - counts.at_most(sequence_length),
        "longer_tokens": counts.tokens_over(sequence_length),
        "steps": [sliding_section(sliding(counts, sequence_length, share)) for share in REPETITIONS],
    }
