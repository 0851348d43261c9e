"""The comparison of strategies on a page: advice, charts for each sequence length, the table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from packtool.report.compared import best
from packtool.report.figures import BY_KEY, COLUMNS, count, number, percent, short
from packtool.report.notes import notes
from packtool.report.page import charts
from packtool.report.page.charts import Series
from packtool.report.page.elements import (
    Cell,
    buckets_table,
    definitions,
    figure,
    figure_definitions,
    grid,
    sortable_table,
    table,
)
from packtool.report.page.row_picture import picture_legend, row_picture
from packtool.report.schema import Advice, Comparison, SlidingForecast, Trial, Verdict

_LEDGER = (
    ("placed", "text, once"),
    ("repeated", "text, repeated"),
    ("eos", "EOS"),
    ("padding", "padding"),
    ("dropped", "dropped"),
)

_COLUMNS = (
    "padding_ratio",
    "avoidable_truncation_ratio",
    "truncation_ratio",
    "dropped_ratio",
    "repeated_ratio",
    "concatenation_ratio",
    "mean_context",
    "homogeneity.between_rows",
    "homogeneity.random_rows",
    "homogeneity.equal_but_one",
    "rows",
)
_COSTS = ("rows", "row_excess", "steps_per_epoch")


def comparison_sections(comparison: Comparison, lengths: Sequence[str]) -> Iterator[str]:
    """The sections of the page between its head and its configuration, but for the verdict."""
    entries = comparison.entries
    colours = {name: index for index, name in enumerate(dict.fromkeys(e.label for e in entries))}
    note = "".join(f"<p class='soft'>{escape(note)}</p>" for note in notes(comparison))
    yield "<h2>Strategies</h2>" + _figures_table(entries) + figure_definitions(_COLUMNS) + note
    yield "<h2>Rows</h2>" + _pictures(entries)
    yield "<h2>Documents</h2>" + grid(lengths)
    yield "<h2>Costs</h2>" + _costs_table(comparison) + _cost_definitions(comparison)
    if comparison.advice:
        yield "<h2>Advice</h2>" + _advice(comparison.advice)
    several = [e for e in entries if e.sequence_length is None]
    for size in dict.fromkeys(e.sequence_length for e in entries):
        group = [e for e in entries if e.sequence_length == size]
        rivals = group if size is None else [*group, *several]
        yield f"<h2>{_name(size)}</h2>" + grid(
            [_trade_off(rivals, colours), _context(group, colours), _documents(group, colours), _ledgers(group)]
        )
        for entry in group:
            if len(entry.buckets) > 1:
                yield f"<h3>{escape(entry.label)} by row length</h3>" + buckets_table(entry.buckets)
    for foreseen in comparison.sliding:
        if foreseen.longer_texts:
            yield f"<h2>Sliding windows, {_name(foreseen.sequence_length).lower()}</h2>" + _sliding(foreseen)


def verdict_section(verdicts: Sequence[Verdict]) -> str:
    """What to do, for each row length, and why."""
    items = []
    for verdict in verdicts:
        size = verdict.sequence_length
        rows = "several lengths" if size is None else f"{count(size)} tokens"
        rival = verdict.runner_up
        other = ""
        if rival is not None:
            other = f"<p><b>Runner-up: {escape(rival.strategy)}</b>, {escape(rival.reason)}</p>"
            other += f"<pre>{escape(rival.command)}</pre>"
        items.append(
            f"<div class='verdict'><p class='choice'>Rows of {rows}: <b>{escape(verdict.choice.strategy)}</b></p>"
            f"<p>{escape(verdict.choice.reason)}</p><pre>{escape(verdict.choice.command)}</pre>{other}</div>"
        )
    return f"<h2>Verdict</h2>{''.join(items)}<p class='soft'>{escape(verdicts[0].limits)}</p>"


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


def _figures_table(entries: Sequence[Trial]) -> str:
    head = ["strategy", *(COLUMNS[key] for key in _COLUMNS)]
    groups = []
    for size in dict.fromkeys(e.sequence_length for e in entries):
        group = [e for e in entries if e.sequence_length == size]
        rows = [[Cell(e.label), *(_cell(entries, e, key) for key in _COLUMNS)] for e in group]
        groups.append((_name(size), rows))
    return sortable_table(head, groups)


def _cell(entries: Sequence[Trial], entry: Trial, key: str) -> Cell:
    figure = BY_KEY[key]
    value = figure.of(entry.metrics)
    return Cell(figure.write(value), value, best(entries, entry, figure))


def _costs_table(comparison: Comparison) -> str:
    entries = comparison.entries
    keys = [key for key in _COSTS if BY_KEY[key].of(entries[0].metrics) is not None]
    trained = entries[0].training is not None
    head = ["strategy", *(COLUMNS[key] for key in keys), "attention", "masked"]
    head += ["linear FLOPs", "attention FLOPs", "masked FLOPs"] if trained else []
    groups = []
    for size in dict.fromkeys(e.sequence_length for e in entries):
        rows = []
        for entry, timing in zip(entries, comparison.timings, strict=True):
            if entry.sequence_length != size:
                continue
            row = [Cell(entry.label), *(_cell(entries, entry, key) for key in keys)]
            row += [Cell(number(share), share) for share in (entry.attention, entry.attention_masked)]
            if entry.training is not None:
                cost = entry.training
                row += [Cell(f"{flops:.2e}", flops) for flops in (cost.linear, cost.attention, cost.attention_masked)]
            rows.append([*row, Cell(f"{timing.planning_seconds:.2f}", timing.planning_seconds)])
        groups.append((_name(size), rows))
    return sortable_table([*head, "CPU s"], groups)


def _cost_definitions(comparison: Comparison) -> str:
    base = count(comparison.attention_baseline)
    known = [(COLUMNS[key], BY_KEY[key].meaning) for key in _COSTS]
    known += [
        ("attention", f"query-key pairs of causal rows, relative to the corpus as one stream in rows of {base} tokens"),
        ("masked", "the same where a token sees only its own document"),
        ("CPU s", "from lengths to plans"),
    ]
    cost = comparison.entries[0].training
    if cost is not None:
        shape = f"{short(cost.parameters)} parameters, {count(cost.layers)} layers of width {count(cost.width)}"
        known.append(("FLOPs", f"of one epoch, forward and backward, of a decoder of {shape}; padding included"))
    return definitions(known)


def _pictures(entries: Sequence[Trial]) -> str:
    drawings = []
    for size in dict.fromkeys(e.sequence_length for e in entries):
        for entry in (e for e in entries if e.sequence_length == size and e.pictured):
            tokens = sum(segment.length for segment in entry.pictured[0].segments)
            title = f"{entry.label}, rows of {count(tokens)}"
            drawings.append(figure(title, row_picture(title, entry.pictured)))
    note = (
        "A few rows of each strategy, packed from the first 20,000 documents. A block is a piece of a document, its "
        "colour the length of that document in tokens: a row of one colour holds documents of one length. A notch "
        "marks where a document is cut."
    )
    return f"<p class='soft'>{note}</p>{picture_legend()}{grid(drawings)}"


def _trade_off(entries: Sequence[Trial], colours: dict[str, int]) -> str:
    points = [
        Series(
            e.label,
            colours[e.label],
            [(e.metrics.padding_ratio, e.metrics.truncation_ratio)],
        )
        for e in entries
    ]
    drawing = charts.scatter("Padding against truncation", points, x_label="padding", y_label="documents truncated")
    return figure("Padding against truncation", drawing, "Lower left is better. Small shares are drawn apart.")


def _context(entries: Sequence[Trial], colours: dict[str, int]) -> str:
    series = [
        Series(e.label, colours[e.label], [(p.tokens, p.share) for p in e.context], index % 2 == 1)
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
        rows.append((e.label, colours[e.label], per_row.p50, per_row.mean, per_row.p99))
    drawing = charts.whiskers("Documents per row", rows, "documents in a row")
    return figure("Documents per row", drawing, "A dot at the mean, a line from the median to the 99th percentile.")


def _ledgers(entries: Sequence[Trial]) -> str:
    rows = [(e.label, [(name, key, getattr(e.ledger, key)) for key, name in _LEDGER]) for e in entries]
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
