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
from packtool.report.blend_tables import sources_table, stages_table, weight_lines
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
    SlidingForecast,
    Trial,
    Verdict,
)
from packtool.report.tables import Cell, Column, Table, name_of
from packtool.report.verdict import judge
from packtool.support.sizes import plural

_TILES = ("padding_ratio", "truncation_ratio", "avoidable_truncation_ratio", "mean_context", "steps_per_epoch")
_OUTPUT = (("placed", "text, once"), ("repeated", "text, repeated"), ("eos", "EOS"), ("padding", "padding"))
"""Contents of rows: names in the ledger, and in words."""
_MARKS = 6
"""Row lengths marked in a chart of lengths; of more, the longest only."""


def page(report: Report) -> str:
    """Write the page of whatever `packtool.stats` reports."""
    assets = Path(__file__).parents[1] / "assets"
    style, script = ((assets / name).read_text("utf-8") for name in ("report.css", "report.js"))
    if isinstance(report, BlendReport):
        title, sections = f"Blend: {report.path}", _blend_sections(report)
    elif isinstance(report, MeasuredReport):
        title, sections = f"{report.strategy}: {report.path}", _dataset_sections(report)
    else:
        title = f"Packing report: {report.path}" if report.comparison else f"Documents: {report.path}"
        sections = _documents_sections(report)
    kinds = {"packed": "Packed dataset", "store": "Token store", "corpus": "Corpus", "blend": "Blend"}
    subtitle = f"{kinds[report.kind]}, measured by packtool {report.packtool_version}"
    body = list(sections)
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


def _configuration(report: MeasuredReport | DocumentsReport) -> str:
    """Describe the measurement and its options."""
    known = [("measured", report.path)]
    if isinstance(report, MeasuredReport):
        known.append(("packed with", f"{report.strategy}: {_listed(report.options)}"))
        shuffle = msgspec.to_builtins(report.shuffle) if report.shuffle else None
        known.append(("order", _listed(shuffle) if shuffle else "that of the corpus"))
    else:
        held = ", ".join(f"{count(value)} {name.replace('_', ' ')}" for name, value in report.counts.items())
        known.append(("holds", held))
        tried = []
        for entry in report.comparison.entries if report.comparison else ():
            options = {k: v for k, v in entry.options.items() if k not in ("sequence_length", "atom_size")}
            tried.append((f"{entry.strategy} tried with", _listed(options) or "no other option"))
        known += dict.fromkeys(tried)  # once where they do not depend on the row length
        if (tokenizer := report.tokenizer) is not None:
            said = (
                f"{count(tokenizer.vocab_size)} ids, documents end with {tokenizer.eos_token!r} (id "
                f"{tokenizer.eos_id}); sha256 of its file {tokenizer.sha256}"
            )
            known.append(("tokenizer", said))
    if report.batch_size is not None:
        known.append(("a batch", plural(report.batch_size, "row")))
    return facts([*known, ("by", f"packtool {report.packtool_version}, report schema {report.schema_version}")])


def _listed(options: Options) -> str:
    """List options in words.

    >>> _listed({"sequence_length": 2048, "mix_rows": True, "segments": False, "max_repetition": None})
    'sequence length 2,048, mix rows: yes, segments: no'
    """
    words = []
    for name, value in options.items():
        if value is not None:
            said = f": {'yes' if value else 'no'}" if isinstance(value, bool) else f" {_plain(value)}"
            words.append(name.replace("_", " ") + said)
    return ", ".join(words)


def _plain(value: Any) -> str:
    if isinstance(value, list | tuple):
        return " / ".join(map(_plain, value))
    return count(value) if isinstance(value, int) else str(value)


# A blend: what a run takes of its sources.


def _blend_sections(report: BlendReport) -> Iterator[str]:
    yield tiles(
        [(report.unit, short(report.samples)), ("tokens", short(report.tokens)), ("stages", count(len(report.stages)))]
    )
    lines, share = weight_lines(report), f"share of the {report.unit}"
    drawing = charts.lines("Shares over the run", lines, x_label="tokens", y_label=share, top=1)
    names = charts.legend([(line.name, f"c{line.colour % charts.COLOURS}") for line in lines])
    yield grid([figure("Shares over the run", drawing, "", names)])
    yield section(sources_table(report))
    yield section(stages_table(report))


# A packed dataset: where its tokens went, what its rows are like.


def _dataset_sections(report: MeasuredReport) -> Iterator[str]:
    metrics, ledger = report.metrics, report.ledger
    shown = [("rows", short(ledger.rows)), ("tokens", short(ledger.output))]
    if metrics is not None:
        known = [(tables.FIGURES[key], tables.FIGURES[key].of(metrics)) for key in _TILES]
        shown += [(figure.title, figure.write(value)) for figure, value in known if value is not None]
    yield tiles(shown)
    if judgements := judge(report):
        items = (f"<li class='{'good' if j.good else 'look'}'>{escape(j.words)}</li>" for j in judgements)
        yield f"<ul class='verdict judgement'>{''.join(items)}</ul>"
    drawings = [_ledger_figure(ledger)]
    if metrics is not None and report.lengths is not None:
        lengths = [bucket.sequence_length for bucket in report.buckets]
        drawings.append(_lengths_chart(report.lengths, lengths))
        drawings.append(_documents_figure(report.documents_per_row, metrics))
        drawings.append(_context_figure(report.context, metrics))
    if report.sample_rows:
        tokens = sum(segment.length for segment in report.sample_rows[0].segments)
        caption = (
            "A block is a piece of a document, its colour the length of that document in tokens; a notch marks where "
            "a document is cut."
        )
        title = f"Rows of {count(tokens)} tokens, evenly spread"
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


def _ledger_figure(ledger: Ledger) -> str:
    rows = [
        ("input text", [("placed", "placed", ledger.placed), ("dropped", "dropped", ledger.dropped)]),
        (f"output, {plural(ledger.rows, 'row')}", [(name, key, getattr(ledger, key)) for key, name in _OUTPUT]),
    ]
    names = [*((name, key) for key, name in _OUTPUT), ("dropped", "dropped")]
    drawing = charts.stacked("Ledger from input to output", rows, "tokens")
    return figure("Where every token went", drawing + charts.legend(names) + html_table(tables.ledger_table(ledger)))


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
    entries = comparison.entries if comparison else []
    marks = sorted({e.sequence_length for e in entries if e.sequence_length is not None})
    drawings = grid([_lengths_chart(lengths, marks), lengths_figure(lengths)])
    if comparison:
        yield from _comparison_sections(comparison, drawings)
    else:
        yield drawings


def _lengths_chart(lengths: Lengths, marks: Sequence[int]) -> str:
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
        leads = [("", verdict.choice)]
        leads += [("Or" if number else "Runner-up:", other) for number, other in enumerate(verdict.alternatives)]
        choices = "".join(_choice(lead, choice) for lead, choice in leads)
        items.append(f"<div class='verdict'><p class='choice'>{title}</p>{choices}</div>")
    return f"<h2>Verdict</h2>{''.join(items)}{_soft(verdicts[0].limits)}"


def _choice(lead: str, choice: ChosenStrategy) -> str:
    named = f"<b>{lead} {escape(choice.strategy)}</b>, " if lead else ""
    source = f"<div class='source'>{escape(choice.source)}</div>" if choice.source else ""
    return f"<p>{named}{escape(choice.reason)}</p>{source}<pre>{escape(choice.command)}</pre>"


def _comparison_sections(comparison: Comparison, lengths: str) -> Iterator[str]:
    """Write the sections of a comparison, except the verdict.

    Args:
        lengths: figures of the documents' lengths.
    """
    entries = comparison.entries
    colours = {name: index for index, name in enumerate(dict.fromkeys(e.strategy for e in entries))}
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
    for size in dict.fromkeys(e.sequence_length for e in entries):
        group = [e for e in entries if e.sequence_length == size]
        drawings = [_losses(group), _contexts(group, colours), _documents(group, colours), _ledgers(group)]
        yield f"<h2>{name_of(size)}</h2>" + grid([*drawings, *_pictures(group)])
    yield from map(section, tables.bucket_tables(entries))
    for forecast in comparison.sliding:
        if forecast.longer_texts:
            yield section(tables.sliding_table(forecast)) + _sliding(forecast)


def _advice(advice: Sequence[Advice]) -> str:
    items = "".join(
        f"<li><strong>{escape(a.advice)}</strong>{escape(a.reason)}"
        f"<div class='source'>{escape(a.source)}. {escape(a.untested)}</div></li>"
        for a in advice
    )
    return f"<ul class='advice'>{items}</ul>"


def _losses(entries: Sequence[Trial]) -> str:
    """Chart what each strategy pads and cuts, one line a strategy."""
    title = "Padding and avoidable truncation"
    kinds = (("padding", "padding_ratio", "c0"), ("avoidable truncation", "avoidable_truncation_ratio", "c1"))
    rows = [(e.strategy, [(name, css, getattr(e.metrics, key)) for name, key, css in kinds]) for e in entries]
    note = "Padding of the output, documents cut of those that fit a row: less is better. Small shares are drawn apart."
    return figure(title, charts.dots(title, rows), note, charts.legend([(name, css) for name, _, css in kinds]))


def _contexts(entries: Sequence[Trial], colours: dict[str, int]) -> str:
    series = [
        Series(e.strategy, colours[e.strategy], [(p.tokens, p.share) for p in e.context], index % 2 == 1)
        for index, e in enumerate(entries)
        if e.context
    ]
    if not series:
        return figure("Context available", "<p>No rows.</p>")
    names = charts.legend([(s.name, f"c{s.colour % charts.COLOURS}") for s in series])
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
    rows = [(e.strategy, [(name, key, getattr(e.ledger, key)) for key, name in accounts]) for e in entries]
    names = charts.legend([(name, key) for key, name in accounts])
    note = "What the rows hold, and after it what is dropped."
    return figure(title, charts.stacked(title, rows, "tokens"), note, names)


def _pictures(entries: Sequence[Trial]) -> Iterator[str]:
    for entry in entries:
        if entry.sample_rows:
            tokens = sum(segment.length for segment in entry.sample_rows[0].segments)
            longest = entry.sequence_length or tokens
            of = "" if longest == tokens else f" of at most {count(longest)}"
            title = f"{entry.strategy}, rows of {count(tokens)}{of}"
            yield figure(title, charts.row_picture(title, entry.sample_rows))


def _sliding(forecast: SlidingForecast) -> str:
    names, drawings = charts.legend([("actual", "c0"), ("predicted (dashed)", "c1")]), []
    for title, key in (("Texts that slide", "texts"), ("Tokens left over", "tokens")):
        actual = [(step.max_repetition, getattr(step, key)) for step in forecast.steps]
        predicted = [(step.max_repetition, getattr(step, f"predicted_{key}")) for step in forecast.steps]
        series = [Series("actual", 0, actual), Series("predicted", 1, predicted, dashed=True)]
        drawing = charts.lines(title, series, x_label="r_max", y_label=key, x_write="{:.1f}".format, y_write=short)
        drawings.append(figure(title, drawing, "", names))
    return grid(drawings)


# Parts of pages.


def section(table: Table[Any]) -> str:
    """Write a table under its heading, with what its columns mean, and notes; nothing if it has no rows."""
    if not any(rows for _, rows in table.groups):
        return ""
    known = [(column.title, column.meaning) for column in table.columns if column.meaning]
    meanings = "".join(f"<dt>{escape(term)}</dt><dd>{escape(meaning)}</dd>" for term, meaning in known)
    legend = f"<dl class='terms'>{meanings}</dl>" if known else ""
    return f"<h2>{escape(table.title)}</h2>{html_table(table)}{legend}{''.join(map(_soft, table.notes))}"


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
        css = _classes(words=column.words, best=cell.best, bad=cell.bad)
        shown.append(f"<td{css}{value}>{escape('!' * cell.bad + cell.text)}</td>")
    return f"<tr>{''.join(shown)}</tr>"


def _classes(**given: bool) -> str:
    names = " ".join(name for name, on in given.items() if on)
    return f" class='{names}'" if names else ""


def figure(title: str, drawing: str, caption: str = "", legend: str = "") -> str:
    """Write a chart with its heading, legend and caption."""
    note = f"<figcaption>{escape(caption)}</figcaption>" if caption else ""
    return f"<figure><h3>{escape(title)}</h3>{drawing}{legend}{note}</figure>"


def _soft(words: str) -> str:
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
