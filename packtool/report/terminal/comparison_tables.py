"""The comparison of strategies in the terminal, within 80 columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from packtool.report.compared import best
from packtool.report.figures import FIGURES, count, number, percent, short
from packtool.report.schema import Advice, Comparison, SlidingForecast, Trial
from packtool.report.terminal.tables import buckets_table, heading, plain_table

_BY_KEY = {figure.key: figure for figure in FIGURES}
_TOKENS = {
    "padding_ratio": "padding",
    "truncation_ratio": "cut",
    "avoidable_truncation_ratio": "avoid.",
    "concatenation_ratio": "docs",
    "mean_context": "context",
    "dropped_ratio": "drop",
    "repeated_ratio": "repeat",
}
_COSTS = {"rows": "rows", "steps_per_epoch": "steps", "row_excess": "above bound"}


def print_comparison(comparison: Comparison, console: Console) -> None:
    """Print everything: tables of strategies, of sliding windows and of buckets, and the advice."""
    entries, timings = comparison.entries, comparison.timings
    for size in dict.fromkeys(entry.sequence_length for entry in entries):
        group = [entry for entry in entries if entry.sequence_length == size]
        console.print(heading("Rows of several lengths" if size is None else f"Rows of {count(size)} tokens"))
        console.print(_tokens_table(group))
        console.print()
        seconds = [t.planning_seconds for e, t in zip(entries, timings, strict=True) if e in group]
        console.print(_costs_table(group, seconds))
    console.print()
    console.print(
        Text(
            "* best of its row length. cut: documents not whole in one row; avoid.: the same of those that fit a row; "
            "docs: documents / rows; context: mean tokens of its own document before a token; above bound: rows "
            "above the fewest possible. attention, masked: query-key pairs, plain and with document masks, relative to "
            f"one stream in rows of {count(comparison.attention_baseline)} tokens. plan: CPU seconds.",
            "dim",
        )
    )
    for entry in entries:
        if len(entry.buckets) > 1:
            console.print(heading(f"{entry.label}: rows and tokens by bucket", _size(entry)))
            console.print(buckets_table(entry.buckets))
    for foreseen in comparison.sliding:
        if foreseen.longer_texts:
            _print_sliding(foreseen, console)
    _print_advice(comparison.advice, console)


def _size(entry: Trial) -> str:
    return "" if entry.sequence_length is None else f"L = {count(entry.sequence_length)}"


def _tokens_table(entries: Sequence[Trial]) -> Table:
    table = plain_table("strategy", *_TOKENS.values())
    for entry in entries:
        table.add_row(entry.label, *_cells(entries, entry, _TOKENS))
    return table


def _costs_table(entries: Sequence[Trial], seconds: Sequence[float]) -> Table:
    keys = [key for key in _COSTS if _BY_KEY[key].of(entries[0].metrics) is not None]
    table = plain_table("strategy", *(_COSTS[key] for key in keys), "attention", "masked", "plan")
    for entry, spent in zip(entries, seconds, strict=True):
        table.add_row(
            entry.label,
            *_cells(entries, entry, keys),
            number(entry.attention),
            number(entry.attention_masked),
            f"{spent:.2f}",
        )
    return table


def _cells(entries: Sequence[Trial], entry: Trial, keys: Iterable[str]) -> list[Text]:
    cells = []
    for key in keys:
        figure = _BY_KEY[key]
        wins = best(entries, entry, figure)
        cells.append(Text("*" * wins + figure.write(figure.of(entry.metrics)), "bold" if wins else ""))
    return cells


def _print_sliding(foreseen: SlidingForecast, console: Console) -> None:
    note = f"{count(foreseen.longer_texts)} texts are longer than a row, with {short(foreseen.longer_tokens)} tokens"
    console.print(heading(f"seamless, rows of {count(foreseen.sequence_length)}", note))
    table = plain_table("r_max", "texts slide", "predicted", "tokens left", "predicted", "of their tokens")
    total = foreseen.longer_tokens
    for step in foreseen.steps:
        table.add_row(
            f"{step.max_repetition:.2f}",
            count(step.texts),
            count(step.predicted_texts),
            count(step.tokens),
            count(step.predicted_tokens),
            percent(step.tokens / total if total else 0.0),
        )
    console.print(table)


def _print_advice(advice: Sequence[Advice], console: Console) -> None:
    if not advice:
        return
    console.print(heading("Advice"))
    for item in advice:
        console.print(Text(f"• {item.advice}"))
        console.print(Padding(Text(item.reason), (0, 0, 0, 2)))
        console.print(Padding(Text(f"{item.source}. {item.untested}", "dim"), (0, 0, 0, 2)))
