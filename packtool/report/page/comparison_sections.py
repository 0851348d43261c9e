"""The comparison of strategies on a page: advice, charts for each sequence length, the table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from packtool.report.compared import best
from packtool.report.figures import FIGURES, count, number, percent, short
from packtool.report.page import charts
from packtool.report.page.charts import Series
from packtool.report.page.elements import buckets_table, figure, grid, table
from packtool.report.schema import Advice, Comparison, SlidingForecast, Timing, Trial

_LEDGER = (
    ("placed", "text, once"),
    ("repeated", "text, repeated"),
    ("eos", "EOS"),
    ("padding", "padding"),
    ("dropped", "dropped"),
)


def comparison_sections(comparison: Comparison, lengths: Sequence[str]) -> Iterator[str]:
    """The sections of the page between its head and its configuration."""
    entries = comparison.entries
    colours = {name: index for index, name in enumerate(dict.fromkeys(e.strategy for e in entries))}
    if comparison.advice:
        yield "<h2>Advice</h2>" + _advice(comparison.advice)
    yield "<h2>Strategies</h2>" + _table(entries, comparison.timings) + _definitions(comparison)
    yield "<h2>Documents</h2>" + grid(lengths)
    several = [e for e in entries if e.sequence_length is None]
    for size in dict.fromkeys(e.sequence_length for e in entries):
        group = [e for e in entries if e.sequence_length == size]
        rivals = group if size is None else [*group, *several]
        yield f"<h2>{_name(size)}</h2>" + grid(
            [_trade_off(rivals, colours), _context(group, colours), _documents(group, colours), _ledgers(group)]
        )
        for entry in group:
            if len(entry.buckets) > 1:
                yield f"<h3>{escape(entry.strategy)} by row length</h3>" + buckets_table(entry.buckets)
    for foreseen in comparison.sliding:
        if foreseen.longer_texts:
            yield f"<h2>Sliding windows, {_name(foreseen.sequence_length).lower()}</h2>" + _sliding(foreseen)


def _name(size: int | None) -> str:
    return "Rows of several lengths" if size is None else f"Rows of {count(size)} tokens"


def _advice(advice: Sequence[Advice]) -> str:
    items = "".join(
        f"<li><strong>{escape(a.advice)}</strong>{escape(a.reason)}"
        f"<div class='source'>{escape(a.source)}. {escape(a.untested)}</div></li>"
        for a in advice
    )
    return (
        f"<ul class='advice'>{items}</ul>"
        "<p class='soft'>No paper compared all of these on one corpus; the figures below are of yours.</p>"
    )


def _table(entries: Sequence[Trial], timings: Sequence[Timing]) -> str:
    figures = [f for f in FIGURES if f.of(entries[0].metrics) is not None]
    head = ["strategy", *(f.label for f in figures), "attention", "masked attention", "planning, CPU s"]
    body = []
    for size in dict.fromkeys(e.sequence_length for e in entries):
        body.append(f"<tr class='group'><th colspan='{len(head)}' scope='rowgroup'>{_name(size)}</th></tr>")
        for entry, timing in zip(entries, timings, strict=True):
            if entry.sequence_length != size:
                continue
            cells = [f"<td>{escape(entry.strategy)}</td>"]
            for f in figures:
                css = " class='best'" if best(entries, entry, f) else ""
                cells.append(f"<td{css}>{escape(f.write(f.of(entry.metrics)))}</td>")
            cells.append(f"<td>{number(entry.attention)}</td><td>{number(entry.attention_masked)}</td>")
            cells.append(f"<td>{timing.planning_seconds:.2f}</td>")
            body.append(f"<tr>{''.join(cells)}</tr>")
    top = "".join(f"<th scope='col'>{escape(cell)}</th>" for cell in head)
    return f"<div class='scroll'><table><thead><tr>{top}</tr></thead><tbody>{''.join(body)}</tbody></table></div>"


def _definitions(comparison: Comparison) -> str:
    said = "; ".join(f"<b>{escape(f.label)}</b>: {escape(f.meaning)}" for f in FIGURES)
    return (
        f"<p class='soft'>Green: best of its row length. {said}; <b>attention</b>: query-key pairs of causal rows, "
        f"relative to the corpus as one stream in rows of {count(comparison.attention_baseline)} tokens; <b>masked "
        "attention</b>: the same where a token sees only its own document.</p>"
    )


def _trade_off(entries: Sequence[Trial], colours: dict[str, int]) -> str:
    points = [
        Series(
            e.strategy,
            colours[e.strategy],
            [(e.metrics.padding_ratio, e.metrics.truncation_ratio)],
        )
        for e in entries
    ]
    drawing = charts.scatter("Padding against truncation", points, x_label="padding", y_label="documents truncated")
    return figure("Padding against truncation", drawing, "Lower left is better. Small shares are drawn apart.")


def _context(entries: Sequence[Trial], colours: dict[str, int]) -> str:
    series = [
        Series(e.strategy, colours[e.strategy], [(p.tokens, p.share) for p in e.context], index % 2 == 1)
        for index, e in enumerate(entries)
        if e.context
    ]
    if not series:
        return figure("Context available", "<p>No rows.</p>")
    drawing = charts.lines(
        "Context available",
        series,
        x_label="tokens of its own document before a token",
        y_label="share of tokens with at least as many",
        top=1,
    )
    names = charts.legend([(s.name, f"c{s.colour % charts.COLOURS}") for s in series])
    return figure("Context available", drawing, "Every other line is dashed. Higher is better.", names)


def _documents(entries: Sequence[Trial], colours: dict[str, int]) -> str:
    rows = []
    for e in entries:
        per_row = e.metrics.documents_per_row
        rows.append((e.strategy, colours[e.strategy], per_row.p50, per_row.mean, per_row.p99))
    drawing = charts.whiskers("Documents per row", rows, "documents in a row")
    return figure("Documents per row", drawing, "A dot at the mean, a line from the median to the 99th percentile.")


def _ledgers(entries: Sequence[Trial]) -> str:
    rows = [(e.strategy, [(name, key, getattr(e.ledger, key)) for key, name in _LEDGER]) for e in entries]
    drawing = charts.stacked("Where every token goes", rows, "tokens")
    legend = charts.legend([(name, key) for key, name in _LEDGER])
    return figure("Where every token goes", drawing, "What the rows hold, and after it what is dropped.", legend)


def _sliding(foreseen: SlidingForecast) -> str:
    steps = foreseen.steps

    def chart(title: str, key: str, unit: str) -> str:
        series = [
            Series("actual", 0, [(s.max_repetition, getattr(s, key)) for s in steps]),
            Series("predicted", 1, [(s.max_repetition, getattr(s, f"predicted_{key}")) for s in steps], dashed=True),
        ]
        drawing = charts.lines(
            title, series, x_label="r_max", y_label=unit, x_write=lambda v: f"{v:.1f}", y_write=short
        )
        return figure(title, drawing, "", charts.legend([("actual", "c0"), ("predicted (dashed)", "c1")]))

    drawings = grid([chart("Texts that slide", "texts", "texts"), chart("Tokens left over", "tokens", "tokens")])
    total = foreseen.longer_tokens or 1
    rows = [
        (
            f"{s.max_repetition:.2f}",
            count(s.texts),
            count(s.predicted_texts),
            count(s.tokens),
            count(s.predicted_tokens),
            percent(s.tokens / total),
        )
        for s in steps
    ]
    head = ("r_max", "texts that slide", "predicted", "tokens left over", "predicted", "of their tokens")
    note = (
        f"<p class='soft'>seamless: {count(foreseen.longer_texts)} texts are longer than a row and hold "
        f"{count(foreseen.longer_tokens)} tokens. Those that can become one row more by overlap slide; what the "
        "others leave after their whole rows goes to the short list. Predicted by equations 6 and 7 of Seamless Data "
        "Packing, which take lengths as uniform between multiples of the row.</p>"
    )
    return note + drawings + table(head, rows)
