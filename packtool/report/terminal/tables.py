"""Tables and small histograms for terminals of 80 columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import rich.table
from rich import box
from rich.bar import Bar
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.text import Text

from packtool.report.figures import short
from packtool.report.table import Cell, Column, Table

_WIDTH = 80
_WORDS = 30  # columns that a column of words has at least; what is longer is wrapped
_BAR_WIDTH = 30
_LINES = 14  # of a histogram, at most


def print_table(table: Table[Any], console: Console, *, full: bool = False) -> None:
    """Print a table; columns beyond 80 characters continue below.

    Args:
        full: all columns, with what they mean and notes; else the most important ones alone.
    """
    columns = [column for column in table.columns if full or column.brief]
    groups = [group for group in table.cells(columns) if group[1]]
    if not groups:
        return
    if table.title and not table.headed:
        console.print(heading(table.title))
    for parts in [[group] for group in groups] if table.headed else [groups]:
        if table.headed:
            console.print(heading(parts[0][0], table.title.lower()))
        for below, shown in enumerate(_side_by_side(columns, [row for _, rows in parts for row in rows])):
            if below:
                console.print()
            console.print(_rich_table([columns[i] for i in shown], [_pick(rows, shown) for _, rows in parts]))
    if full and any(column.meaning for column in columns):
        console.print()
        known = rich.table.Table.grid(padding=(0, 2))
        for column in columns:
            if column.meaning:
                known.add_row(Text(_title(column), "dim"), Text(column.meaning, "dim"))
        console.print(known)
    for note in table.notes if full else ():
        console.print(Text(note, "dim"))


def heading(text: str, note: str = "") -> RenderableType:
    """Make a heading with room above it."""
    return Padding(Text.assemble((text, "bold"), (f"  {note}" if note else "", "dim")), (1, 0, 0, 0))


def span(first: int, last: int) -> str:
    """Return the label of a bin."""
    return short(first) if first == last else f"{short(first)}–{short(last)}"


def bars(bins: Sequence[tuple[str, int]], unit: str) -> RenderableType:
    """Make a histogram of horizontal bars, counted in a unit; join neighbouring bins if there are too many."""
    group = -(-len(bins) // _LINES) if bins else 1
    joined = [
        (_join_labels(bins[i][0], bins[min(i + group, len(bins)) - 1][0]), sum(n for _, n in bins[i : i + group]))
        for i in range(0, len(bins), group)
    ]
    most = max((n for _, n in joined), default=0)
    table = rich.table.Table.grid(padding=(0, 1))
    table.add_column(justify="right", no_wrap=True)
    table.add_column(no_wrap=True, width=_BAR_WIDTH)
    table.add_column(justify="right", no_wrap=True)
    for label, value in joined:
        # Anything above zero shows: an eighth of a character at least.
        shown = Bar(most, 0, max(value, most / 8 / _BAR_WIDTH) if value else 0, width=_BAR_WIDTH, color="cyan")
        table.add_row(label, shown, Text(f"{short(value)} {unit if value == 1 else f'{unit}s'}", "dim"))
    return table


def _side_by_side(columns: Sequence[Column[Any]], rows: Sequence[Sequence[Cell]]) -> Iterator[list[int]]:
    """Yield the numbers of columns that fit side by side; the first is repeated."""
    widths = [
        max(len(_title(column)), *(min(_WORDS, len(cell.text)) if column.words else len(cell.text) for cell in cells))
        for column, cells in zip(columns, zip(*rows, strict=True), strict=True)
    ]
    shown = [0]
    for number in range(1, len(columns)):
        if sum(widths[i] + 2 for i in [*shown, number]) - 1 > _WIDTH:
            yield shown
            shown = [0]
        shown.append(number)
    yield shown


def _title(column: Column[Any]) -> str:
    return column.short or column.title


def _pick(rows: Sequence[Sequence[Cell]], shown: Sequence[int]) -> list[list[Cell]]:
    return [[row[i] for i in shown] for row in rows]


def _rich_table(columns: Sequence[Column[Any]], sections: Sequence[Sequence[Sequence[Cell]]]) -> rich.table.Table:
    table = rich.table.Table(
        box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold"
    )
    for number, column in enumerate(columns):
        style = "dim" if column.words and number else ""
        table.add_column(_title(column), justify="left" if column.words else "right", overflow="fold", style=style)
    for rows in sections:
        for row in rows:
            table.add_row(*(Text("*" * cell.best + cell.text, "bold" if cell.best else "") for cell in row))
        table.add_section()
    return table


def _join_labels(first: str, last: str) -> str:
    return first if first == last else f"{first.split('–', maxsplit=1)[0]}–{last.rsplit('–', maxsplit=1)[-1]}"
