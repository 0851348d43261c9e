"""Parts of pages: figures, tables, tiles, lists of facts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

from packtool.report.figures import BY_KEY, COLUMNS, count, number, percent, times_random
from packtool.report.page import charts
from packtool.report.page.charts import Bin
from packtool.report.schema import BucketFigures, Lengths

_MARKS = 6
"""Row lengths marked in a chart of lengths; of more, the longest only."""


def figure(title: str, drawing: str, caption: str = "", legend: str = "") -> str:
    """A chart with its heading, legend and caption."""
    note = f"<figcaption>{escape(caption)}</figcaption>" if caption else ""
    return f"<figure><h3>{escape(title)}</h3>{drawing}{legend}{note}</figure>"


def length_chart(lengths: Lengths, marks: Sequence[int]) -> str:
    """The length distribution with sequence lengths marked."""
    if not lengths.documents:
        return figure("Document length", "<p>No documents.</p>")
    unit = lengths.unit
    total, documents = lengths.total or 1, lengths.documents
    bins = [Bin(b.first, b.last, b.documents / documents) for b in lengths.histogram]
    held = [Bin(b.first, b.last, b.total / total) for b in lengths.histogram]
    caption = (
        f"{count(documents)} documents with {count(lengths.total)} {unit}; mean {number(lengths.mean)}, median "
        f"{count(lengths.p50)}, p99 {count(lengths.p99)}, longest {count(lengths.max)}."
    )
    drawing = charts.histogram(
        "Distribution of document lengths",
        bins,
        label=f"{unit} in a document" + (", EOS included" if unit == "tokens" else ""),
        unit="share of all",
        marks=marks if len(marks) <= _MARKS else marks[-1:],
        logarithmic=True,
        outline=held,
        write=percent,
        tick=charts.tick_percent,
    )
    legend = charts.legend([("documents", "bar-swatch"), (f"{unit} in them", "c1")])
    return figure("Document length", drawing, caption, legend)


def buckets_table(buckets: Sequence[BucketFigures]) -> str:
    """Share of rows and tokens of each bucket, and how alike its rows are inside, random rows being 1."""
    head = ("bucket", "rows", "of rows", "of tokens", "padding", "documents per row", "mean context", "alike")
    rows = [
        (
            count(b.sequence_length),
            count(b.rows),
            percent(b.row_share),
            percent(b.token_share),
            percent(b.padding_ratio),
            number(b.mean_documents_per_row),
            number(b.mean_context),
            times_random(b.homogeneity),
        )
        for b in buckets
    ]
    return table(head, rows)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A plain table that scrolls sideways where it must."""
    top = "".join(f"<th>{escape(cell)}</th>" for cell in head)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<div class='scroll'><table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>"


@dataclass(frozen=True)
class Cell:
    """A cell of a table that sorts: what it says, and the number to sort by (None: the words)."""

    text: str
    value: float | None = None
    best: bool = False


def sortable_table(head: Sequence[str], groups: Sequence[tuple[str, Sequence[Sequence[Cell]]]]) -> str:
    """A table in named groups, whose rows a click on a head sorts within each group."""
    top = "".join(f"<th scope='col'><button>{escape(cell)}</button></th>" for cell in head)
    parts = []
    for name, rows in groups:
        title = f"<tr class='group'><th colspan='{len(head)}' scope='rowgroup'>{escape(name)}</th></tr>"
        parts.append(f"<tbody class='title'>{title}</tbody><tbody>{''.join(map(_row, rows))}</tbody>")
    return f"<div class='scroll'><table class='sorts'><thead><tr>{top}</tr></thead>{''.join(parts)}</table></div>"


def _row(cells: Sequence[Cell]) -> str:
    found = []
    for cell in cells:
        css = " class='best'" if cell.best else ""
        value = "" if cell.value is None else f" data-value='{cell.value!r}'"
        found.append(f"<td{css}{value}>{escape(cell.text)}</td>")
    return f"<tr>{''.join(found)}</tr>"


def definitions(known: Iterable[tuple[str, str]]) -> str:
    """Terms and what they mean."""
    items = "".join(f"<dt>{escape(term)}</dt><dd>{escape(meaning)}</dd>" for term, meaning in known)
    return f"<dl class='terms'>{items}</dl>"


def figure_definitions(keys: Sequence[str]) -> str:
    """What the columns of a table of figures mean, and what is marked in it."""
    marked = (
        "best of its row length; of strategies that cut more than half of the documents that fit, or pad more than a "
        "quarter, no figure is marked"
    )
    return definitions([*((COLUMNS[key], BY_KEY[key].meaning) for key in keys), ("green", marked)])


def grid(drawings: Iterable[str]) -> str:
    """Figures side by side where there is room."""
    return f"<div class='charts'>{''.join(drawings)}</div>"


def tiles(shown: Sequence[tuple[str, str]]) -> str:
    """A few figures, large."""
    items = "".join(f"<div><dt>{escape(label)}</dt><dd>{escape(value)}</dd></div>" for label, value in shown)
    return f"<dl class='tiles'>{items}</dl>"


def facts(known: Iterable[tuple[str, str]]) -> str:
    """Names and values."""
    items = "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in known)
    return f"<dl class='facts'>{items}</dl>"


def lengths_figure(lengths: Lengths) -> str:
    """Quantiles of the length distribution."""
    names = {"min": "shortest", "p50": "median", "max": "longest"}
    keys = ("min", "p01", "p10", "p25", "p50", "p75", "p90", "p99", "max")
    known = [(names.get(key, key), count(getattr(lengths, key))) for key in keys]
    return figure(
        f"Lengths in {lengths.unit}", facts([*known, ("mean", number(lengths.mean))]), "pNN: NN% have no more."
    )
