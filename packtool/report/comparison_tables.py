"""The tables of a comparison of strategies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from packtool.metrics.sliding import Sliding
from packtool.report.dataset_tables import buckets_table
from packtool.report.figures import ALIKE, FIGURES, count, number, percent, seconds, short, times, times_random
from packtool.report.schema import BucketFigures, Comparison, SlidingForecast, Timing, Trial
from packtool.report.table import Column, Table, table_of
from packtool.report.verdict import degenerate
from packtool.shuffling.balance import Waiting

Entry = TypeVar("Entry")
Spent = tuple[Trial, Timing]

MARKED = (
    "The best figure of each row length is marked, but not of strategies that cut more than half of the documents that "
    "fit a row, or pad more than a quarter."
)
_BRIEF = ("padding_ratio", "avoidable_truncation_ratio", "dropped_ratio", "repeated_ratio", "mean_context")
_REST = (
    "truncation_ratio",
    "concatenation_ratio",
    "homogeneity.between_rows",
    "homogeneity.random_rows",
    "homogeneity.equal_but_one",
)


def strategies_table(comparison: Comparison) -> Table[Trial]:
    """Tabulate what strategies do to documents, by row length."""
    columns: list[Column[Trial]] = [
        Column("strategy", lambda entry: entry.label, words=True),
        *(_figure(key, lambda entry: entry) for key in _BRIEF),
        Column("alike", lambda e: times_random(e.metrics.homogeneity), times, ALIKE, better=-1),
        Column("rows", lambda entry: entry.metrics.rows, short, "training samples"),
        *(_figure(key, lambda entry: entry, brief=False) for key in _REST),
    ]
    return Table("Strategies", columns, _by_length(comparison.entries, _length), _contest, [MARKED, *notes(comparison)])


def waits_table(comparison: Comparison) -> Table[tuple[Trial, Waiting]]:
    """Tabulate how long ranks wait for the slowest, with the rows of each strategy."""
    waits = [(entry, each) for entry in comparison.entries for each in entry.waiting]
    columns: list[Column[tuple[Trial, Waiting]]] = [
        Column("strategy", lambda pair: pair[0].label, words=True),
        Column("row length", lambda pair: pair[1].sequence_length, count),
        Column("step", lambda pair: pair[1].dealt, percent, "waiting where ranks meet once a step", better=-1),
        Column("balanced", lambda pair: pair[1].balanced, percent, "the same with rows dealt evenly"),
        Column(
            "turn", lambda pair: pair[1].turns_dealt, percent, "waiting where ranks meet after every row", better=-1
        ),
        Column("balanced", lambda pair: pair[1].turns_balanced, percent, "the same with rows of like cost in one turn"),
    ]
    note = "Share of the time that ranks wait for the slowest, in rows of the first documents packed alone."
    return table_of("Waiting", columns, waits, note)


def costs_table(comparison: Comparison) -> Table[Spent]:
    """Tabulate what training on the rows costs, and what planning them did."""
    spent = list(zip(comparison.entries, comparison.timings, strict=True))
    first, base = comparison.entries[0], count(comparison.attention_baseline)
    keys = [key for key in ("row_excess", "steps_per_epoch") if FIGURES[key].of(first.metrics) is not None]
    columns: list[Column[Spent]] = [
        Column("strategy", lambda pair: pair[0].label, words=True),
        *(_figure(key, lambda pair: pair[0]) for key in keys),
        Column(
            "attention",
            lambda pair: pair[0].attention,
            number,
            f"query-key pairs of causal rows, relative to the corpus as one stream in rows of {base} tokens",
        ),
        Column(
            "masked",
            lambda pair: pair[0].attention_masked,
            number,
            "the same where a token sees only its own document",
        ),
        Column("CPU s", lambda pair: pair[1].planning_seconds, seconds, "from lengths to plans"),
    ]
    if (cost := first.training) is not None:
        shape = f"{short(cost.parameters)} parameters, {count(cost.layers)} layers of width {count(cost.width)}"
        meaning = f"FLOPs of one epoch, forward and backward, of a decoder of {shape}; padding included"
        columns += [
            _flops("linear", "linear", f"in linear layers: {meaning}"),
            _flops("attention", "attention", "the same in attention over whole rows"),
            _flops("masked", "attention_masked", "the same where a token sees only its own document"),
        ]
    return Table("Costs", columns, _by_length(spent, lambda pair: _length(pair[0])), None)


def sliding_table(forecast: SlidingForecast) -> Table[Sliding]:
    """Tabulate what `seamless` can do with documents longer than a row."""
    total = forecast.longer_tokens or 1
    columns: list[Column[Sliding]] = [
        Column("r_max", lambda step: step.max_repetition, "{:.2f}".format, "repeated tokens / tokens, at most"),
        Column("slide", lambda step: step.texts, count, "texts that become one row more by overlap"),
        Column("predicted", lambda step: step.predicted_texts, count, "the same by equation 6"),
        Column("tokens left", lambda step: step.tokens, count, "what the other texts leave after their whole rows"),
        Column("predicted", lambda step: step.predicted_tokens, count, "the same by equation 7"),
        Column("of all", lambda step: step.tokens / total, percent, "tokens left / tokens of texts longer than a row"),
    ]
    return table_of(
        f"Sliding windows, {name_of(forecast.sequence_length).lower()}",
        columns,
        forecast.steps,
        f"seamless: {count(forecast.longer_texts)} texts are longer than a row and hold "
        f"{count(forecast.longer_tokens)} tokens. Predicted by equations 6 and 7 of Seamless Data Packing, which take "
        "lengths as uniform between multiples of the row.",
    )


def bucket_tables(entries: Sequence[Trial]) -> list[Table[BucketFigures]]:
    """Tabulate rows and tokens by row length, for strategies of several."""
    several = [entry for entry in entries if len(entry.buckets) > 1]
    lengths = ["" if entry.sequence_length is None else f" (L = {count(entry.sequence_length)})" for entry in several]
    titles = [f"{entry.label}{length} by row length" for entry, length in zip(several, lengths, strict=True)]
    return [buckets_table(entry.buckets, title) for entry, title in zip(several, titles, strict=True)]


def name_of(length: int | None) -> str:
    """Return the heading of a row length."""
    return "Rows of several lengths" if length is None else f"Rows of {count(length)} tokens"


def notes(comparison: Comparison) -> list[str]:
    """Note which figures were estimated and from what, what was not tried, and the cost of not packing."""
    lines = []
    sampled = [entry for entry in comparison.entries if entry.sampled_documents is not None]
    if sampled:
        names = ", ".join(dict.fromkeys(entry.label for entry in sampled))
        lines.append(
            f"Estimated from the first {count(sampled[0].sampled_documents)} documents, packed alone: how alike the "
            f"rows of {names} are, and how many documents each holds. All other figures are of all documents."
        )
    if comparison.left_out:
        lines.append(
            f"Not tried: {', '.join(comparison.left_out)}, which places documents one by one, and there are more than "
            "two million. Name it in --compare to have it planned, too."
        )
    if (unpacked := comparison.unpacked) is not None:
        lines.append(
            f"Without packing, each document padded to the longest of its batch of {count(unpacked.batch_size)}, "
            f"{percent(unpacked.padding_ratio)} would be padding."
        )
    return lines


def _figure(key: str, trial: Callable[[Any], Trial], *, brief: bool = True) -> Column[Any]:
    figure = FIGURES[key]
    return replace(figure, of=lambda row: figure.of(trial(row).metrics), brief=brief)


def _flops(title: str, name: str, meaning: str) -> Column[Spent]:
    return Column(f"{title} FLOPs", lambda pair: getattr(pair[0].training, name), "{:.2e}".format, meaning)


def _by_length(rows: Sequence[Entry], length: Callable[[Entry], int | None]) -> list[tuple[str, list[Entry]]]:
    lengths = dict.fromkeys(map(length, rows))
    return [(name_of(each), [row for row in rows if length(row) == each]) for each in lengths]


def _length(entry: Trial) -> int | None:
    return entry.sequence_length


def _contest(entries: Sequence[Trial]) -> Sequence[Trial]:
    return [entry for entry in entries if not degenerate(entry)]
