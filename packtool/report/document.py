"""The report as a document of plain JSON types: deterministic, versioned, no timings. See docs/report-schema.md."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import msgspec
import numpy as np

from packtool import __version__
from packtool.metrics import LengthCounts, Metrics, Tally, measure
from packtool.metrics.ledger import Ledger
from packtool.metrics.mixing import Mixed
from packtool.metrics.sliding import Sliding, sliding
from packtool.metrics.summary import histogram_sum, ratio
from packtool.packing import PackOptions
from packtool.plan import I64
from packtool.storage.manifest import Shuffle

FORMAT = "packtool report"
SCHEMA_VERSION = 1

Json = dict[str, Any]

_QUANTILES = {"p01": 0.01, "p10": 0.1, "p25": 0.25, "p50": 0.5, "p75": 0.75, "p90": 0.9, "p99": 0.99}
_BARS = 32  # bars of a histogram, at most
_CONTEXT_STEPS = 32


def build(
    tallies: Sequence[Tally],
    ledger: Ledger,
    *,
    strategy: str,
    options: Mapping[str, Any],
    shuffle: Shuffle | None,
    batch_size: int | None = None,
) -> Json:
    """The report of a packed dataset, as `report.json` holds it.

    Args:
        tallies: one for each bucket, in the order of the manifest; none where segments are not known, and then
            the report has the ledger only.
        ledger, strategy, options, shuffle: as in the dataset's manifest.
        batch_size: rows of the longest bucket in a batch, for steps per epoch; not part of `report.json`.
    """
    counts = LengthCounts.of(tallies[0].lengths) if tallies else None
    return {
        **header("packed"),
        "strategy": strategy,
        "options": msgspec.to_builtins(dict(options)),
        "shuffle": msgspec.to_builtins(shuffle),
        "batch_size": batch_size,
        "ledger": msgspec.to_builtins(ledger),
        "lengths": None if counts is None else lengths_section(counts, "tokens"),
        **rows_section(tallies, batch_size),
        "sliding": _sliding(counts, options) if counts is not None and strategy == "seamless" else None,
    }


def header(kind: str) -> Json:
    """What every report begins with."""
    return {"format": FORMAT, "schema_version": SCHEMA_VERSION, "packtool_version": __version__, "kind": kind}


def lengths_section(counts: LengthCounts, unit: str) -> Json:
    """The length distribution; `unit` is tokens, words or characters."""
    return {
        "unit": unit,
        "documents": counts.documents,
        "total": counts.tokens,
        "mean": counts.mean,
        "min": int(counts.values[0]) if len(counts.values) else 0,
        **{name: counts.quantile(share) for name, share in _QUANTILES.items()},
        "max": counts.max,
        "histogram": [
            {"from": first, "to": last, "documents": documents, "total": total}
            for first, last, documents, total in counts.histogram()
        ],
    }


def rows_section(tallies: Sequence[Tally], batch_size: int | None) -> Json:
    """Metrics in total and for each bucket, and what the charts of the rows need."""
    if not tallies:
        return {"metrics": None, "buckets": [], "documents_per_row": [], "context": []}
    rows = sum(tally.rows for tally in tallies)
    tokens = sum(_tokens(tally) for tally in tallies)
    return {
        "metrics": metrics_section(measure(tallies, batch_size)),
        "buckets": [
            {
                "sequence_length": tally.sequence_length,
                "rows": tally.rows,
                "row_share": ratio(tally.rows, rows),
                "tokens": _tokens(tally),
                "token_share": ratio(_tokens(tally), tokens),
                "padding": tally.padding,
                "padding_ratio": ratio(tally.padding, tally.rows * tally.sequence_length),
                "intact_documents": tally.intact,
                "mean_documents_per_row": measure([tally]).documents_per_row.mean,
                "mean_context": measure([tally]).mean_context,
            }
            for tally in tallies
        ],
        "documents_per_row": _documents_per_row(histogram_sum([t.documents_in_row for t in tallies])),
        "context": _context(histogram_sum([t.piece_lengths for t in tallies])),
    }


def metrics_section(metrics: Metrics) -> Json:
    """Metrics as JSON, under the names of `packtool.metrics.Metrics`."""
    return dataclasses.asdict(metrics)


def sliding_section(found: Sliding) -> Json:
    """Texts that slide and tokens that are left, under the names of `packtool.metrics.sliding.Sliding`."""
    return {**dataclasses.asdict(found), "max_repetition": float(found.max_repetition)}


def _sliding(counts: LengthCounts, options: Mapping[str, Any]) -> Json:
    share = Fraction(str(options.get("max_repetition", PackOptions.max_repetition)))
    return sliding_section(sliding(counts, int(options["sequence_length"]), share))


def mixing_section(mixed: Mixed, sequence_length: int) -> Json:
    """How well mixed the rows of one bucket are, under the names of `packtool.metrics.mixing.Mixed`."""
    return {"sequence_length": sequence_length, **dataclasses.asdict(mixed)}


def _tokens(tally: Tally) -> int:
    return tally.rows * tally.sequence_length - tally.padding


def _documents_per_row(rows: I64) -> list[Json]:
    """Rows by their number of documents, in bins of equal width."""
    present = np.flatnonzero(rows)
    if not len(present):
        return []
    first, last = int(present[0]), int(present[-1])
    width = -(-(last - first + 1) // _BARS)
    return [
        {"from": a, "to": min(a + width - 1, last), "rows": int(rows[a : a + width].sum())}
        for a in range(first, last + 1, width)
    ]


def _context(pieces: I64) -> list[Json]:
    """Share of document tokens with at least so many tokens of their piece before them in the row."""
    longest = len(pieces) - 1
    # reaching[c]: pieces longer than c, that is, tokens with exactly c before them.
    reaching = np.cumsum(pieces[::-1])[::-1][1:]
    with_at_least = np.append(np.cumsum(reaching[::-1])[::-1], 0)
    total = int(with_at_least[0])
    if not total:
        return []
    even = np.arange(_CONTEXT_STEPS + 1) * longest // _CONTEXT_STEPS
    steps = np.union1d(even, 2 ** np.arange(longest.bit_length()))
    return [{"tokens": int(c), "share": int(with_at_least[c]) / total} for c in steps]
