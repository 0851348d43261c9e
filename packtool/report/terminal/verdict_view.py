"""The verdict in the terminal, and one table for each row length, within 80 columns."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from packtool.report.compared import best
from packtool.report.figures import FIGURES, count, percent, short, times_random
from packtool.report.notes import notes
from packtool.report.schema import ChosenStrategy, Comparison, Trial, Verdict
from packtool.report.terminal.tables import heading, plain_table

_BY_KEY = {figure.key: figure for figure in FIGURES}
_COLUMNS = {
    "padding_ratio": "padding",
    "avoidable_truncation_ratio": "cut",
    "dropped_ratio": "drop",
    "repeated_ratio": "repeat",
    "concatenation_ratio": "docs",
    "mean_context": "context",
}
_MEANINGS = {
    "padding": "share of the output tokens",
    "cut": "documents that would fit a row but are not whole in one, share of those that fit",
    "drop": "share of the text tokens",
    "repeat": "share of the output tokens",
    "docs": "documents / rows",
    "context": "tokens of its own document before a token, mean",
    "alike": "variance of log length between rows, times that of random rows; 1 is as mixed as random",
    "rows": "of so many tokens each",
}


def print_verdict(comparison: Comparison, console: Console) -> None:
    """What to do, for each row length, and why."""
    for verdict in comparison.verdicts:
        console.print(Text.assemble(*_title(verdict)))
        _print_choice(verdict.choice, console)
        if verdict.runner_up is not None:
            rival = verdict.runner_up
            _print_choice(rival, console, lead=f"Runner-up: {rival.strategy}, ")
        console.print()
    if comparison.verdicts:
        console.print(Text(comparison.verdicts[0].limits, "dim"))


def print_figures(comparison: Comparison, console: Console) -> None:
    """A table of strategies for each row length, and what its columns mean."""
    for size in dict.fromkeys(entry.sequence_length for entry in comparison.entries):
        group = [entry for entry in comparison.entries if entry.sequence_length == size]
        console.print(heading("Rows of several lengths" if size is None else f"Rows of {count(size)} tokens"))
        console.print(_table(group))
    console.print()
    known = Table.grid(padding=(0, 2))
    for name, meaning in _MEANINGS.items():
        known.add_row(Text(name, "dim"), Text(meaning, "dim"))
    console.print(known)
    console.print(
        Text(
            "* best of its row length; of strategies that cut more than half of what fits, or pad more than a quarter, "
            "no figure is marked.",
            "dim",
        )
    )
    for note in notes(comparison):
        console.print(Text(note, "dim"))


def _title(verdict: Verdict) -> list[tuple[str, str]]:
    size = verdict.sequence_length
    rows = "rows of several lengths" if size is None else f"rows of {count(size)} tokens"
    return [(f"Verdict for {rows}: ", "bold"), (verdict.choice.strategy, "bold green")]


def _print_choice(choice: ChosenStrategy, console: Console, lead: str = "") -> None:
    console.print(Padding(Text(lead + choice.reason), (0, 0, 0, 2)))
    # Never wrapped: it is there to be pasted.
    console.print(Text(f"    {choice.command}", "cyan"), soft_wrap=True)


def _table(entries: Sequence[Trial]) -> Table:
    table = plain_table("strategy", *_COLUMNS.values(), "alike", "rows")
    for entry in entries:
        figures = [_cell(entries, entry, key) for key in _COLUMNS]
        table.add_row(entry.label, *figures, times_random(entry.metrics.homogeneity), short(entry.metrics.rows))
    return table


def _cell(entries: Sequence[Trial], entry: Trial, key: str) -> Text:
    figure = _BY_KEY[key]
    wins = best(entries, entry, figure)
    value = figure.of(entry.metrics)
    text = percent(value) if key.endswith("_ratio") and key != "concatenation_ratio" else figure.write(value)
    return Text("*" * wins + text, "bold" if wins else "")
