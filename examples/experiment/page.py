"""Render findings: one HTML page that stands alone, or a short page as Markdown, with pictures and tables beside it."""

from __future__ import annotations

import csv
import html
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

import numpy as np
from findings import Chart, Found

TITLE = "Which packing gives the best model?"
COLOURS = ("#4269d0", "#efb118", "#ff725c", "#6cc5b0", "#9c6b4e", "#a463f2", "#97bbf5", "#3ca951")
STYLE = """body { font: 16px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem }
table { border-collapse: collapse; margin: 1rem 0; font-size: 14px } td, th { padding: .2rem .7rem; text-align: right }
td:first-child, th:first-child { text-align: left } thead { border-bottom: 1px solid #999 }
figure { display: inline-block; margin: 1rem 0 } svg { max-width: 100% } figcaption { color: #555 }"""
COMMAND = "python examples/experiment/experiment.py OUTPUT"
WIDTH, HEIGHT, LEFT, RIGHT = 560, 260, 50, 130


def write(found: Found, page: Path, docs: Path | None) -> None:
    """Write the page.

    Args:
        docs: where to write a short page as Markdown, too, with pictures and a file of all tables beside it.
    """
    page.write_text(in_html(found), encoding="utf-8")
    if docs is None:
        return
    charts = [chart for section in found.sections for chart in section.charts]
    names = {chart.title: f"{docs.stem}-{_file_name(chart.title)}.svg" for chart in charts}
    tables = docs.with_suffix(".csv")
    docs.write_text(in_markdown(found, names, tables.name), encoding="utf-8")
    with tables.open("w", encoding="utf-8", newline="") as file:
        write_tables(found, file)
    for chart in charts:
        (docs.parent / names[chart.title]).write_text(svg(chart) + "\n", encoding="utf-8")


def in_html(found: Found) -> str:
    """A page without any other file."""
    parts = [f"<h1>{TITLE}</h1><p>{html.escape(found.answer)}</p><p>{html.escape(found.facts)}</p>"]
    for section in found.sections:
        parts.append(f"<h2>{html.escape(section.title)}</h2>")
        parts += [f"<p>{html.escape(text)}</p>" for text in (*section.text, *section.notes)]
        parts += [_table(head, rows) for head, rows in section.tables]
        parts += [
            f"<figure>{svg(chart)}<figcaption>{html.escape(_caption(chart))}</figcaption></figure>"
            for chart in section.charts
        ]
    return f"<!doctype html><meta charset=utf-8><title>{TITLE}</title><style>{STYLE}</style>{''.join(parts)}\n"


def in_markdown(found: Found, pictures: dict[str, str], tables: str) -> str:
    """Return the short page: what came out, and of the tables what sections have for it.

    Args:
        pictures: file name of each chart, by its title.
        tables: file name of all tables.
    """
    made = (
        f"Made by `{COMMAND}`, as all figures here were ([how](../examples/experiment/experiment.py)); "
        f"[all tables]({tables})."
    )
    parts = [f"# {TITLE}", found.answer, made, found.facts]
    for section in found.sections:
        parts += [f"## {section.title}", *section.text]
        for number, columns in section.brief.items():
            head, rows = section.tables[number]
            places = [head.index(name) for name in columns]
            parts.append(_markdown(columns, [[row[place] for place in places] for row in rows]))
        parts += [f"![{_caption(chart)}]({pictures[chart.title]})" for chart in section.charts]
    return "\n\n".join(parts) + "\n"


def write_tables(found: Found, file: TextIO) -> None:
    """Write all tables as CSV: of each its section, its columns and its rows, and an empty line."""
    writer = csv.writer(file, lineterminator="\n")
    for section in found.sections:
        for head, rows in section.tables:
            writer.writerows([[section.title], head, *rows, []])


def svg(chart: Chart) -> str:
    """Lines over a logarithmic axis; of training, without its first quarter."""
    shown = {name: (x[len(x) // 4 :], np.log(y[len(y) // 4 :])) for name, (x, y) in chart.lines.items()}
    if chart.across == "place":
        shown = {name: (x, np.log(y)) for name, (x, y) in chart.lines.items()}
    xs = np.concatenate([x for x, _ in shown.values()])
    ys = np.concatenate([y for _, y in shown.values()])
    low, high = ys.min(), ys.max() + 1e-9

    def place(x: float, y: float) -> tuple[float, float]:
        across = (x - xs.min()) / (np.ptp(xs) + 1e-9) * (WIDTH - LEFT - RIGHT)
        return round(LEFT + across, 1), round(15 + (high - y) / (high - low) * (HEIGHT - 60), 1)

    title = html.escape(_caption(chart))
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" role="img" '
        f'aria-label="{title}" font-family="system-ui, sans-serif" font-size="12" fill="#777">'
    ]
    for tick in np.linspace(low, high, 5):
        _, y = place(xs.min(), tick)
        out.append(f'<text x="{LEFT - 6}" y="{y + 4}" text-anchor="end">{np.exp(tick):.0f}</text>')
        out.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y}" y2="{y}" stroke="#7773"/>')
    for tick in np.linspace(xs.min(), xs.max(), 5):
        x, y = place(tick, low)
        out.append(f'<text x="{x}" y="{y + 18}" text-anchor="middle">{tick:.3g}</text>')
    for number, (name, (line_x, line_y)) in enumerate(shown.items()):
        colour, every = COLOURS[number % len(COLOURS)], max(1, len(line_x) // 100)
        corners = (place(x, y) for x, y in zip(line_x[::every], line_y[::every], strict=True))
        points = " ".join(f"{x},{y}" for x, y in corners)
        out.append(f'<polyline fill="none" stroke="{colour}" stroke-width="1.5" points="{points}"/>')
        label = html.escape(name)
        out.append(f'<text x="{WIDTH - RIGHT + 8}" y="{25 + 18 * number}" fill="{colour}">{label}</text>')
    middle = (WIDTH - RIGHT + LEFT) / 2
    out.append(f'<text x="{middle}" y="{HEIGHT - 8}" text-anchor="middle">{chart.across}</text></svg>')
    return "".join(out)


def _caption(chart: Chart) -> str:
    what = "held-out text" if chart.across == "place" else "text while training, smoothed"
    return f"Perplexity of {what}: {chart.title}"


def _file_name(title: str) -> str:
    return "-".join("".join(each if each.isalnum() else " " for each in title.lower()).split())


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    cells = "".join(f"<th>{html.escape(each)}</th>" for each in head)
    body = "".join("<tr>" + "".join(f"<td>{html.escape(each)}</td>" for each in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{cells}</tr></thead><tbody>{body}</tbody></table>"


def _markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
