"""Write a report as one self-contained page: style, drawings and the script that sorts tables are inline."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from pathlib import Path
from typing import Any

import msgspec

from packtool.planning.metrics.ledger import Ledger
from packtool.planning.metrics.summary import Metrics
from packtool.report import charts, tables
from packtool.report.blend_schema import BlendReport, Report
from packtool.report.blend_tables import left_out, sources_table, stages_table, weight_lines
from packtool.report.charts import Bin, Series
from packtool.report.figures import count, number, percent, short
from packtool.report.schema import (
    Advice,
    ChosenStrategy,
    Comparison,
    ContextPoint,
    DocumentsBin,
    DocumentsReport,
    Lengths,
    MeasuredReport,
    Options,
    SampleRow,
    SlidingForecast,
    Trial,
    Verdict,
)
from packtool.report.tables import Cell, Column, Table, name_of
from packtool.report.verdict import Judgement, judge
from packtool.support.sizes import plural

_TILES = ("padding_ratio", "truncation_ratio", "avoidable_truncation_ratio", "mean_context", "steps_per_epoch")
_OUTPUT = (("placed", "text, once"), ("repeated", "text, repeated"), ("eos", "EOS"), ("padding", "padding"))
"""Contents of rows: names in the ledger, and in words."""
_MARKS = 6
"""Row lengths marked in a chart of lengths; of more, the longest only."""


def page(report: Report) -> str:
    """Write the page of whatever `packtool.stats` reports."""
    assets = Path(__file__).parents[1] / "assets"
    style, script = (assets / "report.css").read_text("utf-8"), (assets / "report.js").read_text("utf-8")
    title, subtitle = _titles(report)
    body: list[str] = []
    if isinstance(report, BlendReport):
        body += _blend_sections(report)
    elif isinstance(report, MeasuredReport):
        body += _dataset_sections(report)
    else:
        body += _documents_sections(report)
    if not isinstance(report, BlendReport):
        body += [*map(section, tables.source_tables(report)), f"<h2>Configuration</h2>{_configuration(report)}"]
    return (
        "<!DOCTYPE html>\n"
        '<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{style}</style></head>\n"
        f"<body><main><h1>{escape(title)}</h1><p class='soft'>{escape(subtitle)}</p>\n"
        + "\n".join(body)
        + f"</main><script>{script}</script></body></html>\n"
    )


def _titles(report: Report) -> tuple[str, str]:
    """Return the title of the page, and the line below it."""
    kinds = {"packed": "Packed dataset", "store": "Token store", "corpus": "Corpus", "blend": "Blend"}
    subtitle = f"{kinds[report.kind]}, measured by packtool {report.packtool_version}"
    if isinstance(report, BlendReport):
        return f"Blend: {report.path}", subtitle
    if isinstance(report, MeasuredReport):
        return f"{report.strategy}: {report.path}", subtitle
    if report.comparison:
        return f"Packing report: {report.path}", subtitle
    return f"Documents: {report.path}", subtitle


def _configuration(report: MeasuredReport | DocumentsReport) -> str:
    """Describe the measurement and its options."""
    known = [("measured", report.path)]
    if isinstance(report, MeasuredReport):
        known += _packed_with(report)
    else:
        known += _tried_on(report)
    if report.batch_size is not None:
        known.append(("a batch", plural(report.batch_size, "row")))
    return facts([*known, ("by", f"packtool {report.packtool_version}, report schema {report.schema_version}")])


def _packed_with(report: MeasuredReport) -> Iterator[tuple[str, str]]:
    yield "packed with", f"{report.strategy}: {_listed(report.options)}"
    if report.shuffle:
        yield "order", _listed(msgspec.to_builtins(report.shuffle))
    else:
        yield "order", "that of the corpus"


def _tried_on(report: DocumentsReport) -> Iterator[tuple[str, str]]:
    held = [f"{count(value)} {name.replace('_', ' ')}" for name, value in report.counts.items()]
    yield "holds", ", ".join(held)
    if report.comparison:
        tried = []
        for entry in report.comparison.entries:
            options = dict(entry.options)
            for of_rows in ("sequence_length", "atom_size"):
                options.pop(of_rows, None)
            tried.append((f"{entry.strategy} tried with", _listed(options) or "no other option"))
        yield from dict.fromkeys(tried)  # once where they do not depend on the row length
    tokenizer = report.tokenizer
    if tokenizer is not None:
        yield (
            "tokenizer",
            f"{count(tokenizer.vocab_size)} ids, documents end with {tokenizer.eos_token!r} (id "
            f"{tokenizer.eos_id}); sha256 of its file {tokenizer.sha256}",
        )


def _listed(options: Options) -> str:
    """List options in words.

    >>> _listed({"sequence_length": 2048, "mix_rows": True, "segments": False, "max_repetition": None})
    'sequence length 2,048, mix rows: yes, segments: no'
    """
    words = []
    for name, value in options.items():
        title = name.replace("_", " ")
        if isinstance(value, bool):
            words.append(f"{title}: {'yes' if value else 'no'}")
        elif value is not None:
            words.append(f"{title} {_plain(value)}")
    return ", ".join(words)


def _plain(value: Any) -> str:
    if isinstance(value, list | tuple):
        return " / ".join(map(_plain, value))
    if isinstance(value, int):
        return count(value)
    return str(value)


# A blend: what a run takes of its sources.


def _blend_sections(report: BlendReport) -> Iterator[str]:
    yield tiles(
        [(report.unit, short(report.samples)), ("tokens", short(report.tokens)), ("stages", count(len(report.stages)))]
    )
    if report.left_out:
        yield f"<p>{left_out(report)}</p>"
    lines, share = weight_lines(report), f"share of the {report.unit}"
    drawing = charts.lines("Shares over the run", lines, x_label="tokens", y_label=share, top=1)
    yield grid([figure("Shares over the run", drawing, "", charts.legend(list(map(_swatch, lines))))])
    yield section(sources_table(report))
    yield section(stages_table(report))


def _swatch(line: Series) -> tuple[str, str]:
    """Return a line's name and the style of its swatch in a legend."""
    return line.name, f"c{line.colour % charts.COLOURS}"


# A packed dataset: where its tokens went, what its rows are like.


def _dataset_sections(report: MeasuredReport) -> Iterator[str]:
    metrics, ledger = report.metrics, report.ledger
    shown = [("rows", short(ledger.rows)), ("tokens", short(ledger.output))]
    if metrics is not None:
        shown += _figures(metrics)
    yield tiles(shown)
    judgements = judge(report)
    if judgements:
        items = "".join(map(_judgement, judgements))
        yield f"<ul class='verdict judgement'>{items}</ul>"
    drawings = [_ledger_figure(ledger)]
    if metrics is not None and report.lengths is not None:
        lengths = [bucket.sequence_length for bucket in report.buckets]
        drawings.append(_lengths_chart(report.lengths, lengths))
        drawings.append(_documents_figure(report.documents_per_row, metrics))
        drawings.append(_context_figure(report.context, metrics))
    if report.sample_rows:
        caption = (
            "A block is a piece of a document, its colour the length of that document in tokens; a notch marks where "
            "a document is cut."
        )
        title = f"Rows of {count(_tokens_in(report.sample_rows[0]))} tokens, evenly spread"
        drawings.append(figure(title, charts.row_picture(title, report.sample_rows), caption, charts.picture_legend()))
    yield grid(drawings)
    if metrics is None:
        yield "<p>Document boundaries are not known (--no-segments), so there are no metrics.</p>"
        return
    yield section(tables.metrics_table(metrics, report.sliding, report.stages))
    if len(report.buckets) > 1:
        yield section(tables.buckets_table(report.buckets))
    yield section(tables.mixing_table(report.mixing))
    if report.training is not None:
        yield section(tables.training_table(report.training))


def _figures(metrics: Metrics) -> Iterator[tuple[str, str]]:
    """Yield the figures that are shown large, as far as they are known."""
    for key in _TILES:
        figure = tables.FIGURES[key]
        value = figure.of(metrics)
        if value is not None:
            yield figure.title, figure.write(value)


def _judgement(judgement: Judgement) -> str:
    css = "good" if judgement.good else "look"
    return f"<li class='{css}'>{escape(judgement.words)}</li>"


def _tokens_in(row: SampleRow) -> int:
    return sum(segment.length for segment in row.segments)


def _ledger_figure(ledger: Ledger) -> str:
    dropped = ("dropped", "dropped")
    text = _accounts(ledger, [("placed", "placed"), dropped])
    rows = [("input text", text), (f"output, {plural(ledger.rows, 'row')}", _accounts(ledger, _OUTPUT))]
    drawing = charts.stacked("Ledger from input to output", rows, "tokens")
    names = charts.legend(_legend([*_OUTPUT, dropped]))
    return figure("Where every token went", drawing + names + html_table(tables.ledger_table(ledger)))


def _accounts(ledger: Ledger, accounts: Iterable[tuple[str, str]]) -> list[tuple[str, str, float]]:
    """Return the parts of a bar: name, style class and tokens of each account."""
    return [(name, key, getattr(ledger, key)) for key, name in accounts]


def _legend(accounts: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    return [(name, key) for key, name in accounts]


def _documents_figure(bins: Sequence[DocumentsBin], metrics: Metrics) -> str:
    title = "Documents per row"
    if not bins:
        return figure(title, "<p>No rows.</p>")
    per_row = metrics.documents_per_row
    caption = (
        f"Mean {number(per_row.mean)}; half of the rows have at most {count(per_row.p50)}, 99% at most "
        f"{count(per_row.p99)}; most {count(per_row.max)}."
    )
    bars = [Bin(b.first, b.last, b.rows) for b in bins]
    return figure(title, charts.histogram(title, bars, label="documents in a row", unit="rows"), caption)


def _context_figure(context: Sequence[ContextPoint], metrics: Metrics) -> str:
    if not context:
        return figure("Context available", "<p>No documents.</p>")
    drawing = charts.context([Series("context", 0, [(point.tokens, point.share) for point in context])])
    caption = f"On average a token has {number(metrics.mean_context)} tokens of its own document before it in its row."
    return figure("Context available", drawing, caption)


# Documents that are not packed: their lengths, and what strategies would make of them.


def _documents_sections(report: DocumentsReport) -> Iterator[str]:
    lengths, comparison = report.lengths, report.comparison
    if comparison and comparison.verdicts:
        yield _verdict_section(comparison.verdicts)
    yield tiles(
        [
            ("documents", short(lengths.documents)),
            (lengths.unit, short(lengths.total)),
            ("mean", number(lengths.mean)),
            ("median", short(lengths.p50)),
            ("p99", short(lengths.p99)),
            ("longest", short(lengths.max)),
        ]
    )
    marks: set[int] = set()
    if comparison:
        marks.update(entry.sequence_length for entry in comparison.entries if entry.sequence_length is not None)
    drawings = grid([_lengths_chart(lengths, sorted(marks)), lengths_figure(lengths)])
    if comparison:
        yield from _comparison_sections(comparison, drawings)
    else:
        yield drawings


def _lengths_chart(lengths: Lengths, marks: Sequence[int]) -> str:
    """Chart the length distribution with row lengths marked."""
    if not lengths.documents:
        return figure("Document length", "<p>No documents.</p>")
    unit, total, documents = lengths.unit, lengths.total or 1, lengths.documents
    caption = (
        f"{count(documents)} documents with {count(lengths.total)} {unit}; mean {number(lengths.mean)}, median "
        f"{count(lengths.p50)}, p99 {count(lengths.p99)}, longest {count(lengths.max)}."
    )
    label = f"{unit} in a document"
    if unit == "tokens":
        label += ", EOS included"
    if len(marks) > _MARKS:
        marks = marks[-1:]
    drawing = charts.histogram(
        "Distribution of document lengths",
        [Bin(b.first, b.last, b.documents / documents) for b in lengths.histogram],
        label=label,
        unit="share of all",
        marks=marks,
        logarithmic=True,
        outline=[Bin(b.first, b.last, b.total / total) for b in lengths.histogram],
        write=percent,
        tick=charts.tick_percent,
    )
    legend = charts.legend([("documents", "bar-swatch"), (f"{unit} in them", "c1")])
    return figure("Document length", drawing, caption, legend)


def lengths_figure(lengths: Lengths) -> str:
    """List quantiles of the length distribution."""
    names = {"min": "shortest", "p50": "median", "max": "longest"}
    keys = ("min", "p01", "p10", "p25", "p50", "p75", "p90", "p99", "max")
    quantiles = [(names.get(key, key), short(getattr(lengths, key))) for key in keys]
    known = facts([*quantiles, ("mean", number(lengths.mean))])
    return figure(f"Lengths in {lengths.unit}", known, "pNN: NN% have no more.")


def _verdict_section(verdicts: Sequence[Verdict]) -> str:
    """Present the recommendation for each row length, with its reasons."""
    items = []
    for verdict in verdicts:
        title = f"{name_of(verdict.sequence_length)}: <b>{escape(verdict.choice.strategy)}</b>"
        choices, lead = _choice("", verdict.choice), "Runner-up:"
        for other in verdict.alternatives:
            choices += _choice(lead, other)
            lead = "Or"
        items.append(f"<div class='verdict'><p class='choice'>{title}</p>{choices}</div>")
    return f"<h2>Verdict</h2>{''.join(items)}{_soft(verdicts[0].limits)}"


def _choice(lead: str, choice: ChosenStrategy) -> str:
    named = source = ""
    if lead:
        named = f"<b>{lead} {escape(choice.strategy)}</b>, "
    if choice.source:
        source = f"<div class='source'>{escape(choice.source)}</div>"
    return f"<p>{named}{escape(choice.reason)}</p>{source}<pre>{escape(choice.command)}</pre>"


def _comparison_sections(comparison: Comparison, lengths: str) -> Iterator[str]:
    """Write the sections of a comparison, except the verdict.

    Args:
        lengths: figures of the documents' lengths.
    """
    entries = comparison.entries
    strategies = list(dict.fromkeys(entry.strategy for entry in entries))
    colours = {name: number for number, name in enumerate(strategies)}
    yield section(tables.strategies_table(comparison))
    yield "<h2>Documents</h2>" + lengths
    yield section(tables.costs_table(comparison))
    if comparison.advice:
        yield "<h2>Advice</h2>" + _advice(comparison.advice)
    if any(entry.sample_rows for entry in entries):
        caption = (
            "A few rows of each strategy, packed from the first 20,000 documents; of several row lengths, those of the "
            "one with the most tokens. A block is a piece of a document, its colour the length of that document in "
            "tokens: a row of one colour holds documents of one length. A notch marks where a document is cut."
        )
        yield "<h2>Rows</h2>" + _soft(caption) + charts.picture_legend()
    by_length: dict[int | None, list[Trial]] = {}
    for entry in entries:
        by_length.setdefault(entry.sequence_length, []).append(entry)
    for size, group in by_length.items():
        drawings = [_losses(group), _contexts(group, colours), _documents(group, colours), _ledgers(group)]
        yield f"<h2>{name_of(size)}</h2>" + grid([*drawings, *_pictures(group)])
    yield from map(section, tables.bucket_tables(entries))
    for forecast in comparison.sliding:
        if forecast.longer_texts:
            yield section(tables.sliding_table(forecast)) + _sliding(forecast)


def _advice(advice: Sequence[Advice]) -> str:
    items = []
    for item in advice:
        source = f"<div class='source'>{escape(item.source)}. {escape(item.untested)}</div>"
        items.append(f"<li><strong>{escape(item.advice)}</strong>{escape(item.reason)}{source}</li>")
    return f"<ul class='advice'>{''.join(items)}</ul>"


def _losses(entries: Sequence[Trial]) -> str:
    """Chart what each strategy pads and cuts, one line a strategy."""
    title = "Padding and avoidable truncation"
    padding, cut = ("padding", "c0"), ("avoidable truncation", "c1")
    rows = []
    for entry in entries:
        metrics = entry.metrics
        parts = [(*padding, metrics.padding_ratio), (*cut, metrics.avoidable_truncation_ratio)]
        rows.append((entry.strategy, parts))
    note = "Padding of the output, documents cut of those that fit a row: less is better. Small shares are drawn apart."
    return figure(title, charts.dots(title, rows), note, charts.legend([padding, cut]))


def _contexts(entries: Sequence[Trial], colours: dict[str, int]) -> str:
    series = []
    for place, entry in enumerate(entries):
        points = [(point.tokens, point.share) for point in entry.context]
        if points:
            series.append(Series(entry.strategy, colours[entry.strategy], points, dashed=place % 2 == 1))
    if not series:
        return figure("Context available", "<p>No rows.</p>")
    names = charts.legend(list(map(_swatch, series)))
    return figure("Context available", charts.context(series), "Every other line is dashed. Higher is better.", names)


def _documents(entries: Sequence[Trial], colours: dict[str, int]) -> str:
    title, rows = "Documents per row", []
    for e in entries:
        per_row = e.metrics.documents_per_row
        rows.append((e.strategy, colours[e.strategy], per_row.p50, per_row.mean, per_row.p99))
    note = "A dot at the mean, a line from the median to the 99th percentile."
    return figure(title, charts.whiskers(title, rows, "documents in a row"), note)


def _ledgers(entries: Sequence[Trial]) -> str:
    title, accounts = "Where every token goes", (*_OUTPUT, ("dropped", "dropped"))
    rows = [(entry.strategy, _accounts(entry.ledger, accounts)) for entry in entries]
    note = "What the rows hold, and after it what is dropped."
    return figure(title, charts.stacked(title, rows, "tokens"), note, charts.legend(_legend(accounts)))


def _pictures(entries: Sequence[Trial]) -> Iterator[str]:
    for entry in entries:
        if entry.sample_rows:
            tokens = _tokens_in(entry.sample_rows[0])
            title = f"{entry.strategy}, rows of {count(tokens)}"
            longest = entry.sequence_length or tokens
            if longest != tokens:
                title += f" of at most {count(longest)}"
            yield figure(title, charts.row_picture(title, entry.sample_rows))


def _sliding(forecast: SlidingForecast) -> str:
    names, drawings = charts.legend([("actual", "c0"), ("predicted (dashed)", "c1")]), []
    for title, key in (("Texts that slide", "texts"), ("Tokens left over", "tokens")):
        actual, predicted = [], []
        for step in forecast.steps:
            actual.append((step.max_repetition, getattr(step, key)))
            predicted.append((step.max_repetition, getattr(step, f"predicted_{key}")))
        series = [Series("actual", 0, actual), Series("predicted", 1, predicted, dashed=True)]
        drawing = charts.lines(title, series, x_label="r_max", y_label=key, x_write="{:.1f}".format, y_write=short)
        drawings.append(figure(title, drawing, "", names))
    return grid(drawings)


# Parts of pages.


def section(table: Table[Any]) -> str:
    """Write a table under its heading, with what its columns mean, and notes; nothing if it has no rows."""
    if not any(rows for _, rows in table.groups):
        return ""
    meanings, legend = "", ""
    for column in table.columns:
        if column.meaning:
            meanings += _term(column.title, column.meaning)
    if meanings:
        legend = f"<dl class='terms'>{meanings}</dl>"
    return f"<h2>{escape(table.title)}</h2>{html_table(table)}{legend}{''.join(map(_soft, table.notes))}"


def html_table(table: Table[Any]) -> str:
    """Write a table that scrolls sideways where it must; a click on a head sorts the rows of each of its groups."""
    bodies = []
    for heading, rows in table.cells(table.columns):
        if heading:
            spanning = f"<th colspan='{len(table.columns)}' scope='rowgroup'>{escape(heading)}</th>"
            bodies.append(f"<tbody class='title'><tr class='group'>{spanning}</tr></tbody>")
        bodies.append(f"<tbody>{''.join(_row(table.columns, row) for row in rows)}</tbody>")
    css, head = "meanings", ""
    if not table.facts:
        css = "sorts" if table.headed else "plain"
        head = "".join(_head(column, table.headed) for column in table.columns)
        head = f"<thead><tr>{head}</tr></thead>"
    return f"<div class='scroll'><table class='{css}'>{head}{''.join(bodies)}</table></div>"


def _head(column: Column[Any], sorts: bool) -> str:
    title = escape(column.title)
    if sorts:
        title = f"<button>{title}</button>"
    tip = ""
    if column.meaning:
        tip = f" title='{escape(column.meaning, quote=True)}'"
    return f"<th scope='col'{_classes(words=column.words)}{tip}>{title}</th>"


def _row(columns: Sequence[Column[Any]], cells: Sequence[Cell]) -> str:
    shown = []
    for column, cell in zip(columns, cells, strict=True):
        value = "" if cell.value is None else f" data-value='{cell.value!r}'"
        css = _classes(words=column.words, best=cell.best, bad=cell.bad)
        shown.append(f"<td{css}{value}>{escape('!' * cell.bad + cell.text)}</td>")
    return f"<tr>{''.join(shown)}</tr>"


def _classes(**given: bool) -> str:
    names = " ".join(filter(given.get, given))
    return names and f" class='{names}'"


def figure(title: str, drawing: str, caption: str = "", legend: str = "") -> str:
    """Write a chart with its heading, legend and caption."""
    note = caption and f"<figcaption>{escape(caption)}</figcaption>"
    return f"<figure><h3>{escape(title)}</h3>{drawing}{legend}{note}</figure>"


def _soft(words: str) -> str:
    """Write a paragraph in small letters."""
    return f"<p class='soft'>{escape(words)}</p>"


def grid(drawings: Iterable[str]) -> str:
    """Place figures side by side where there is room."""
    return f"<div class='charts'>{''.join(drawings)}</div>"


def tiles(shown: Sequence[tuple[str, str]]) -> str:
    """Show a few figures, large."""
    items = [f"<div>{_term(*item)}</div>" for item in shown]
    return f"<dl class='tiles'>{''.join(items)}</dl>"


def facts(known: Iterable[tuple[str, str]]) -> str:
    """List names and values."""
    items = [_term(*item) for item in known]
    return f"<dl class='facts'>{''.join(items)}</dl>"


def _term(name: str, value: str) -> str:
    return f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>"
