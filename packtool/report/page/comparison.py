"""The comparison of strategies on a page: the verdict, tables, charts for each row length."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from packtool.report.comparison_tables import (
    bucket_tables,
    costs_table,
    name_of,
    sliding_table,
    strategies_table,
    waits_table,
)
from packtool.report.figures import count, short
from packtool.report.page import charts
from packtool.report.page.charts import Series
from packtool.report.page.dataset import OUTPUT
from packtool.report.page.elements import figure, grid, section, soft
from packtool.report.page.row_picture import picture_legend, row_picture
from packtool.report.schema import Advice, ChosenStrategy, Comparison, SlidingForecast, Trial, Verdict

_LEDGER = (*OUTPUT, ("dropped", "dropped"))
_PICTURES = (
    "A few rows of each strategy, packed from the first 20,000 documents; of several row lengths, those of the one "
    "with the most tokens. A block is a piece of a document, its colour the length of that document in tokens: a row "
    "of one colour holds documents of one length. A notch marks where a document is cut."
)


def comparison_sections(comparison: Comparison, lengths: Sequence[str]) -> Iterator[str]:
    """Write the sections of the page between its head and its configuration, except the verdict.

    Args:
        lengths: figures of the documents' lengths.
    """
    entries = comparison.entries
    colours = {name: index for index, name in enumerate(dict.fromkeys(e.label for e in entries))}
    yield section(strategies_table(comparison))
    yield "<h2>Documents</h2>" + grid(lengths)
    yield section(costs_table(comparison))
    if waits := [entry for entry in entries if entry.waiting]:
        yield section(waits_table(comparison)) + grid(_waits(waits))
    if comparison.advice:
        yield "<h2>Advice</h2>" + _advice(comparison.advice)
    if any(entry.sample_rows for entry in entries):
        yield "<h2>Rows</h2>" + soft(_PICTURES) + picture_legend()
    for size in dict.fromkeys(e.sequence_length for e in entries):
        group = [e for e in entries if e.sequence_length == size]
        drawings = [_losses(group), _context(group, colours), _documents(group, colours), _ledgers(group)]
        yield f"<h2>{name_of(size)}</h2>" + grid([*drawings, *_pictures(group)])
    yield from map(section, bucket_tables(entries))
    for forecast in comparison.sliding:
        if forecast.longer_texts:
            yield section(sliding_table(forecast)) + _sliding(forecast)


def verdict_section(verdicts: Sequence[Verdict]) -> str:
    """Present the recommendation for each row length, with its reasons."""
    items = []
    for verdict in verdicts:
        title = f"{name_of(verdict.sequence_length)}: <b>{escape(verdict.choice.strategy)}</b>"
        leads = [("", verdict.choice)]
        leads += [("Or" if number else "Runner-up:", each) for number, each in enumerate(verdict.alternatives)]
        choices = "".join(_choice(lead, choice) for lead, choice in leads)
        items.append(f"<div class='verdict'><p class='choice'>{title}</p>{choices}</div>")
    return f"<h2>Verdict</h2>{''.join(items)}{soft(verdicts[0].limits)}"


def _choice(lead: str, choice: ChosenStrategy) -> str:
    named = f"<b>{lead} {escape(choice.strategy)}</b>, " if lead else ""
    source = f"<div class='source'>{escape(choice.source)}</div>" if choice.source else ""
    return f"<p>{named}{escape(choice.reason)}</p>{source}<pre>{escape(choice.command)}</pre>"


def _advice(advice: Sequence[Advice]) -> str:
    items = "".join(
        f"<li><strong>{escape(a.advice)}</strong>{escape(a.reason)}"
        f"<div class='source'>{escape(a.source)}. {escape(a.untested)}</div></li>"
        for a in advice
    )
    return f"<ul class='advice'>{items}</ul>"


def _pictures(entries: Sequence[Trial]) -> Iterator[str]:
    for entry in entries:
        if entry.sample_rows:
            tokens = sum(segment.length for segment in entry.sample_rows[0].segments)
            of = f" of at most {count(entry.sequence_length)}" if (entry.sequence_length or tokens) != tokens else ""
            title = f"{entry.label}, rows of {count(tokens)}{of}"
            yield figure(title, row_picture(title, entry.sample_rows))


def _losses(entries: Sequence[Trial]) -> str:
    """Chart what each strategy pads and cuts, one line a strategy."""
    kinds = (("padding", "padding_ratio", "c0"), ("avoidable truncation", "avoidable_truncation_ratio", "c1"))
    rows = [(e.label, [(name, css, getattr(e.metrics, key)) for name, key, css in kinds]) for e in entries]
    drawing = charts.dots("Padding and avoidable truncation", rows)
    legend = charts.legend([(name, css) for name, _, css in kinds])
    note = "Padding of the output, documents cut of those that fit a row: less is better. Small shares are drawn apart."
    return figure("Padding and avoidable truncation", drawing, note, legend)


def _waits(entries: Sequence[Trial]) -> Iterator[str]:
    """Chart how long ranks wait, for each row length and both ways to meet, one line a strategy."""
    ways = (
        ("Ranks that meet once a step", "dealt", "balanced"),
        ("Ranks that meet after every row", "turns_dealt", "turns_balanced"),
    )
    names = (("as dealt", "c0"), ("balanced", "c1"))
    for size in sorted({each.sequence_length for entry in entries for each in entry.waiting}):
        here = [(e.label, each) for e in entries for each in e.waiting if each.sequence_length == size]
        for meet, *keys in ways:
            rows = [
                (label, [(name, css, getattr(each, key)) for (name, css), key in zip(names, keys, strict=True)])
                for label, each in here
            ]
            title = f"{meet}, {name_of(size).lower()}"
            note = "Share of the time that ranks wait for the slowest: less is better. Small shares are drawn apart."
            yield figure(title, charts.dots(f"Waiting: {title}", rows), note, charts.legend(names))


def _context(entries: Sequence[Trial], colours: dict[str, int]) -> str:
    series = [
        Series(e.label, colours[e.label], [(p.tokens, p.share) for p in e.context], index % 2 == 1)
        for index, e in enumerate(entries)
        if e.context
    ]
    if not series:
        return figure("Context available", "<p>No rows.</p>")
    drawing = charts.context(series)
    names = charts.legend([(s.name, f"c{s.colour % charts.COLOURS}") for s in series])
    return figure("Context available", drawing, "Every other line is dashed. Higher is better.", names)


def _documents(entries: Sequence[Trial], colours: dict[str, int]) -> str:
    rows = []
    for e in entries:
        per_row = e.metrics.documents_per_row
        rows.append((e.label, colours[e.label], per_row.p50, per_row.mean, per_row.p99))
    drawing = charts.whiskers("Documents per row", rows, "documents in a row")
    return figure("Documents per row", drawing, "A dot at the mean, a line from the median to the 99th percentile.")


def _ledgers(entries: Sequence[Trial]) -> str:
    rows = [(e.label, [(name, key, getattr(e.ledger, key)) for key, name in _LEDGER]) for e in entries]
    drawing = charts.stacked("Where every token goes", rows, "tokens")
    legend = charts.legend([(name, key) for key, name in _LEDGER])
    return figure("Where every token goes", drawing, "What the rows hold, and after it what is dropped.", legend)


def _sliding(forecast: SlidingForecast) -> str:
    steps = forecast.steps

    def chart(title: str, key: str, unit: str) -> str:
        series = [
            Series("actual", 0, [(s.max_repetition, getattr(s, key)) for s in steps]),
            Series("predicted", 1, [(s.max_repetition, getattr(s, f"predicted_{key}")) for s in steps], dashed=True),
        ]
        drawing = charts.lines(
            title, series, x_label="r_max", y_label=unit, x_write=lambda v: f"{v:.1f}", y_write=short
        )
        return figure(title, drawing, "", charts.legend([("actual", "c0"), ("predicted (dashed)", "c1")]))

    return grid([chart("Texts that slide", "texts", "texts"), chart("Tokens left over", "tokens", "tokens")])
