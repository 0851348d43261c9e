"""Parts of pages: tables, figures, tiles, lists of facts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from packtool.report.dataset_tables import quantiles
from packtool.report.figures import count, number, percent
from packtool.report.page import charts
from packtool.report.page.charts import Bin
from packtool.report.schema import Lengths
from packtool.report.table import Cell, Column, Table

_MARKS = 6
"""Row lengths marked in a chart of lengths; of more, the longest only."""


def section(table: Table[Any]) -> str:
    """Write a table under its heading, with what its columns mean, and notes; nothing if it has no rows."""
    if not any(rows for _, rows in table.groups):
        return ""
    known = [(column.title, column.meaning) for column in table.columns if column.meaning]
    meanings = "".join(f"<dt>{escape(term)}</dt><dd>{escape(meaning)}</dd>" for term, meaning in known)
    legend = f"<dl class='terms'>{meanings}</dl>" if known else ""
    return f"<h2>{escape(table.title)}</h2>{html_table(table)}{legend}{''.join(map(soft, table.notes))}"


def html_table(table: Table[Any]) -> str:
    """Write a table that scrolls sideways where it must; a click on a head sorts the rows of each of its groups."""
    bodies = []
    for heading, rows in table.cells(table.columns):
        if heading:
            spanning = f"<th colspan='{len(table.columns)}' scope='rowgroup'>{escape(heading)}</th>"
            bodies.append(f"<tbody class='title'><tr class='group'>{spanning}</tr></tbody>")
        bodies.append(f"<tbody>{''.join(_row(table.columns, row) for row in rows)}</tbody>")
    css = "meanings" if table.facts else "sorts" if table.headed else "plain"
    head = "" if table.facts else f"<thead><tr>{''.join(_head(c, table.headed) for c in table.columns)}</tr></thead>"
    return f"<div class='scroll'><table class='{css}'>{head}{''.join(bodies)}</table></div>"


def _head(column: Column[Any], sorts: bool) -> str:
    title = f"<button>{escape(column.title)}</button>" if sorts else escape(column.title)
    tip = f" title='{escape(column.meaning, quote=True)}'" if column.meaning else ""
    return f"<th scope='col'{_classes(words=column.words)}{tip}>{title}</th>"


def _row(columns: Sequence[Column[Any]], cells: Sequence[Cell]) -> str:
    shown = []
    for column, cell in zip(columns, cells, strict=True):
        value = "" if cell.value is None else f" data-value='{cell.value!r}'"
        shown.append(f"<td{_classes(words=column.words, best=cell.best)}{value}>{escape(cell.text)}</td>")
    return f"<tr>{''.join(shown)}</tr>"


def _classes(**given: bool) -> str:
    names = " ".join(name for name, on in given.items() if on)
    return f" class='{names}'" if names else ""


def figure(title: str, drawing: str, caption: str = "", legend: str = "") -> str:
    """Write a chart with its heading, legend and caption."""
    note = f"<figcaption>{escape(caption)}</figcaption>" if caption else ""
    return f"<figure><h3>{escape(title)}</h3>{drawing}{legend}{note}</figure>"


def soft(words: str) -> str:
    """Write a paragraph in small letters."""
    return f"<p class='soft'>{escape(words)}</p>"


def grid(drawings: Iterable[str]) -> str:
    """Place figures side by side where there is room."""
    return f"<div class='charts'>{''.join(drawings)}</div>"


def tiles(shown: Sequence[tuple[str, str]]) -> str:
    """Show a few figures, large."""
    items = "".join(f"<div><dt>{escape(label)}</dt><dd>{escape(value)}</dd></div>" for label, value in shown)
    return f"<dl class='tiles'>{items}</dl>"


def facts(known: Iterable[tuple[str, str]]) -> str:
    """List names and values."""
    items = "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in known)
    return f"<dl class='facts'>{items}</dl>"


def length_chart(lengths: Lengths, marks: Sequence[int]) -> str:
    """Chart the length distribution with row lengths marked."""
    if not lengths.documents:
        return figure("Document length", "<p>No documents.</p>")
    unit = lengths.unit
    total, documents = lengths.total or 1, lengths.documents
    caption = (
        f"{count(documents)} documents with {count(lengths.total)} {unit}; mean {number(lengths.mean)}, median "
        f"{count(lengths.p50)}, p99 {count(lengths.p99)}, longest {count(lengths.max)}."
    )
    drawing = charts.histogram(
        "Distribution of document lengths",
        [Bin(b.first, b.last, b.documents / documents) for b in lengths.histogram],
        label=f"{unit} in a document" + (", EOS included" if unit == "tokens" else ""),
        unit="share of all",
        marks=marks if len(marks) <= _MARKS else marks[-1:],
        logarithmic=True,
        outline=[Bin(b.first, b.last, b.total / total) for b in lengths.histogram],
        write=percent,
        tick=charts.tick_percent,
    )
    legend = charts.legend([("documents", "bar-swatch"), (f"{unit} in them", "c1")])
    return figure("Document length", drawing, caption, legend)


def lengths_figure(lengths: Lengths) -> str:
    """Tabulate quantiles of the length distribution."""
    return figure(f"Lengths in {lengths.unit}", facts(quantiles(lengths)), "pNN: NN% have no more.")
