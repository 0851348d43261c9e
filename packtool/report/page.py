"""Write a report as one self-contained page: style, drawings and the script that sorts tables are inline."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from itertools import starmap
from operator import attrgetter
from pathlib import Path
from typing import Any

from packtool.formats.made_by import is_default
from packtool.planning.metrics.ledger import Ledger
from packtool.planning.metrics.summary import Metrics
from packtool.report import charts, tables
from packtool.report.blend_tables import left_out, often_repeated, sources_table, stages_table, weight_lines
from packtool.report.blend_types import BlendReport, Report
from packtool.report.charts import Bin, Series
from packtool.report.choice_words import choice_in_words
from packtool.report.figures import count, number, options_in_words, order_in_words, percent, short
from packtool.report.tables import Cell, Table, TableColumn, name_of
from packtool.report.types import (
    Advice,
    ChosenStrategy,
    Comparison,
    Lengths,
    MeasuredReport,
    PackedSourceFigures,
    SampleRow,
    StoreReport,
    Trial,
    Verdict,
)
from packtool.report.verdict import Judgement, by_length, judge, with_leads
from packtool.support.sizes import plural

_TILES = (*("padding_ratio", "cut_fitting_ratio", "dropped_ratio", "repeated_ratio", "mean_context"), "steps_per_epoch")
_OUTPUT = (("placed", "placed"), ("repeated", "repeated"), ("eos", "EOS"), ("padding", "padding"))
"""Contents of rows: names in the ledger, and in words."""
_ROWS = (
    "A few rows of the strategy chosen and of the runner-up, made of the first 20,000 documents; of several row "
    "lengths, those of the one with the most tokens. A block is a piece of a document, its colour the length of that "
    "document in tokens: a row of one colour holds documents of one length. A notch marks where a document is cut."
)
_MARKS = 6  # row lengths marked in a chart of lengths; of more, the longest only


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
    return (
        "<!DOCTYPE html>\n"
        '<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{style}</style></head>\n"
        f"<body><main><h1>{escape(title)}</h1><p class='soft'>{escape(subtitle)}</p>\n"
        + "\n".join(body)
        + f"</main><script>{script}</script></body></html>\n"
    )


def framed(report: Report) -> str:
    """Write the page of a report as a frame, for the output of a notebook's cell: its styles stay inside."""
    return f'<iframe srcdoc="{escape(page(report))}" style="width: 100%; height: 40em; border: 0"></iframe>'


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


def _configuration(report: MeasuredReport | StoreReport, options: Iterable[tuple[str, str]]) -> str:
    """Describe the measurement and its options."""
    known = [("measured", report.path), *options]
    if report.batch_size is not None:
        known.append(("a batch", plural(report.batch_size, "row")))
    known.append(("by", f"packtool {report.packtool_version}, report schema {report.schema_version}"))
    return f"<h2>Configuration</h2>{facts(known)}"


def _packed_with(report: MeasuredReport) -> Iterator[tuple[str, str]]:
    yield "packed with", f"{report.strategy}: {options_in_words(report.options)}"
    if report.choice is not None:
        yield "documents", choice_in_words(report.choice, report.excluded) or "each once"
    yield from _tokenizer(report)
    if report.command is not None:
        yield "made by", report.command
    yield "order", order_in_words(report.shuffle, report.options.get("order_by", ()))


def _tried_on(report: StoreReport) -> Iterator[tuple[str, str]]:
    amounts = [f"{count(value)} {name.replace('_', ' ')}" for name, value in report.counts.items()]
    yield "holds", ", ".join(amounts)
    if report.comparison:
        tried = []
        for entry in report.comparison.entries:
            options = dict(entry.options)
            for of_rows in ("sequence_length", "atom_size"):
                options.pop(of_rows, None)
            tried.append((f"{entry.strategy} tried with", options_in_words(options) or "no other option"))
        yield from dict.fromkeys(tried)  # once where they do not depend on the row length
    yield from _tokenizer(report)


def _tokenizer(report: MeasuredReport | StoreReport) -> Iterator[tuple[str, str]]:
    tokenizer, name = report.tokenizer, ""
    if report.tokenizer_name is not None:
        name = f"{report.tokenizer_name}: "
    elif is_default(tokenizer):
        name = "packtool's small one, for trying things out: "
    yield (
        "tokenizer",
        f"{name}{count(tokenizer.vocab_size)} ids, documents end with {tokenizer.eos_token!r} (id "
        f"{tokenizer.eos_id}); sha256 of its file {tokenizer.sha256}",
    )


# A blend: what a run takes of its sources.


def _blend_sections(report: BlendReport) -> Iterator[str]:
    yield tiles(
        [(report.unit, short(report.samples)), ("tokens", short(report.tokens)), ("stages", count(len(report.stages)))]
    )
    if report.left_out:
        yield f"<p>{left_out(report)}</p>"
    lines, share = weight_lines(report), f"share of the {report.unit}"
    marks, note = often_repeated(report), ""
    if marks:
        note = "A dashed line stands where a source begins its fifth pass."
    drawing = charts.lines("Shares over the run", lines, x_label="tokens", y_label=share, top=1, marks=marks)
    yield grid([figure("Shares over the run", drawing, note, charts.legend(list(map(_swatch, lines))))])
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
    configuration = _configuration(report, _packed_with(report))
    judgements = judge(report)
    if judgements:
        items = "".join(map(_judgement, judgements))
        yield f"<ul class='verdict judgement'>{items}</ul>"
    drawings = [_ledger_figure(report)]
    if report.lengths is not None:
        lengths = [bucket.sequence_length for bucket in report.buckets]
        drawings.append(_lengths_chart(report.lengths, lengths))
    if report.sample_rows:
        caption = (
            "A block is a piece of a document, its colour the length of that document in tokens; a notch marks where "
            "a document is cut."
        )
        title = f"Rows of {count(_tokens_in(report.sample_rows[0]))} tokens, evenly spread"
        drawings.append(figure(title, charts.row_picture(title, report.sample_rows), caption, charts.picture_legend()))
    inputs = list(map(section, tables.source_tables(report)))
    if len(report.sources) > 1 and "mix" in (report.choice or {}):
        drawings.append(_mixture_figure(report.sources))
    yield grid(drawings)
    if metrics is None:
        yield "<p>Document boundaries are not known (--no-segments), so there are no metrics.</p>"
        yield fold([*inputs, configuration])
        return
    rest = [section(tables.metrics_table(metrics, report))]
    if len(report.buckets) > 1:
        rest.append(section(tables.buckets_table(report.buckets)))
    rest.append(section(tables.mixing_table(report.mixing)))
    yield fold([*rest, *inputs, configuration])


def _mixture_figure(sources: Sequence[PackedSourceFigures]) -> str:
    """Chart the share of tokens that each store was to have, and the one that it has."""
    rows = [(tables.source_name(source), source.asked_share, source.token_share) for source in sources]
    note = "Share of the tokens packed. Small shares are drawn apart."
    return _two_shares("The mixture, asked and got", ("asked", "got"), rows, note)


def _two_shares(title: str, names: tuple[str, str], rows: Iterable[tuple[str, float, float]], note: str) -> str:
    """Chart two shares, of these names, for the label of each row."""
    first, second = (names[0], "c0"), (names[1], "c1")
    lines = []
    for label, one, other in rows:
        lines.append((label, [(*first, one), (*second, other)]))
    return figure(title, charts.dots(title, lines), note, charts.legend([first, second]))


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


def _ledger_figure(report: MeasuredReport) -> str:
    ledger = report.ledger
    lost = [("dropped", "dropped")]
    if ledger.untrained:
        lost.append(("untrained", "untrained"))
    text = _accounts(ledger, [("placed", "placed"), *lost])
    rows = [("input text", text), (f"output, {plural(ledger.rows, 'row')}", _accounts(ledger, _OUTPUT))]
    drawing = charts.stacked("Ledger from input to output", rows, "tokens")
    names = charts.legend([(name, key) for key, name in (*_OUTPUT, *lost)])
    return figure("Where every token went", drawing + names + html_table(tables.ledger_table(ledger, report.beyond)))


def _accounts(ledger: Ledger, accounts: Iterable[tuple[str, str]]) -> list[tuple[str, str, float]]:
    """Return the parts of a bar: name, style class and tokens of each account."""
    return [(name, key, getattr(ledger, key)) for key, name in accounts]


# Documents that are not packed: their lengths, and what strategies would make of them.


def _documents_sections(report: StoreReport) -> Iterator[str]:
    lengths, comparison = report.lengths, report.comparison
    if comparison and comparison.verdicts:
        yield _verdict_section(comparison.verdicts)
    yield tiles(
        [
            ("documents", short(lengths.documents)),
            ("tokens", short(lengths.total)),
            ("mean", number(lengths.mean)),
            ("median", short(lengths.p50)),
            ("longest", short(lengths.max)),
        ]
    )
    marks: set[int] = set()
    if comparison:
        marks.update(entry.sequence_length for entry in comparison.entries if entry.sequence_length is not None)
    drawn = _lengths_chart(lengths, sorted(marks))
    listed = [tables.stores_table(report.sources), *tables.document_tables(report)]
    inputs = list(map(section, listed))
    configuration = _configuration(report, _tried_on(report))
    if comparison:
        yield from _comparison_sections(comparison, drawn)
        rest = _rest_of_comparison(comparison)
        yield fold([*rest, grid([lengths_figure(lengths)]), *inputs, configuration])
    else:
        yield grid([drawn, lengths_figure(lengths)])
        yield "".join(inputs)
        yield fold([configuration])


def _lengths_chart(lengths: Lengths, marks: Sequence[int]) -> str:
    """Chart the length distribution with row lengths marked."""
    if not lengths.documents:
        return figure("Document length", "<p>No documents.</p>")
    total, documents = lengths.total or 1, lengths.documents
    caption = (
        f"{plural(documents, 'document')} with {plural(lengths.total, 'token')}; mean {number(lengths.mean)}, half "
        f"have at most {count(lengths.p50)}, 99% at most {count(lengths.p99)}; longest {count(lengths.max)}."
    )
    if len(marks) > _MARKS:
        marks = marks[-1:]
    drawing = charts.histogram(
        "Distribution of document lengths",
        [Bin(b.first, b.last, b.documents / documents) for b in lengths.histogram],
        label="tokens in a document, EOS included",
        unit="share of all",
        marks=marks,
        logarithmic=True,
        outline=[Bin(b.first, b.last, b.total / total) for b in lengths.histogram],
        write=percent,
        tick=charts.tick_percent,
    )
    legend = charts.legend([("documents", "bar-swatch"), ("tokens in them", "c1")])
    return figure("Document length", drawing, caption, legend)


def lengths_figure(lengths: Lengths) -> str:
    """List quantiles of the length distribution."""
    names = {"min": "shortest", "p50": "median", "max": "longest"}
    keys = ("min", "p01", "p10", "p25", "p50", "p75", "p90", "p99", "max")
    quantiles = [(names.get(key, key), short(getattr(lengths, key))) for key in keys]
    known = facts([*quantiles, ("mean", number(lengths.mean))])
    return figure("Lengths in tokens", known, "pNN: NN% have no more.")


def _verdict_section(verdicts: Sequence[Verdict]) -> str:
    """Present the recommendation for each row length, with its reasons."""
    items = []
    for verdict in verdicts:
        title = f"{name_of(verdict.sequence_length)}: <b>{escape(verdict.choice.strategy)}</b>"
        choices = _choice("", verdict.choice)
        for lead, other in with_leads(verdict.alternatives):
            choices += _choice(f"<b>{lead} {escape(other.strategy)}</b>, ", other)
        items.append(f"<div class='verdict'><p class='choice'>{title}</p>{choices}</div>")
    return f"<h2>Verdict</h2>{''.join(items)}"


def _choice(lead: str, choice: ChosenStrategy) -> str:
    # A browser would break the line inside of an option, after its hyphens.
    words = " ".join(f"<span>{escape(word)}</span>" for word in choice.command.split(" "))
    return f"<p>{lead}{escape(choice.reason)}</p><pre>{words}</pre>"


def _comparison_sections(comparison: Comparison, lengths: str) -> Iterator[str]:
    """Write what a comparison says first, except the verdict: its figures, and what answers most questions as charts.

    Args:
        lengths: chart of the documents' lengths.
    """
    yield section(tables.strategies_table(comparison))
    drawings = [lengths]
    for size, trials in by_length(comparison.entries).items():
        drawings.append(_losses(size, trials))
    pictures = [_picture(trial) for trial in _of_verdicts(comparison) if trial.sample_rows]
    yield grid(drawings)
    if pictures:
        yield f"<h2>Rows</h2>{_soft(_ROWS)}{charts.picture_legend()}{grid(pictures)}"


def _rest_of_comparison(comparison: Comparison) -> Iterator[str]:
    """Write the sections of a comparison that few look for."""
    yield section(tables.rest_table(comparison))
    yield from map(section, tables.bucket_tables(comparison.entries))
    if comparison.advice:
        yield "<h2>Advice</h2>" + _advice(comparison.advice)
    if comparison.verdicts:
        yield "<h2>What the verdict rests on</h2>" + _evidence(comparison.verdicts)
    shown = _of_verdicts(comparison)
    others = [entry for entry in comparison.entries if entry.sample_rows and entry not in shown]
    if others:
        yield "<h2>Rows of the other strategies</h2>" + grid(map(_picture, others))


def _of_verdicts(comparison: Comparison) -> list[Trial]:
    """Return the trials that verdicts choose or name second, in the order of the verdicts."""
    named = []
    for verdict in comparison.verdicts:
        named.append(verdict.choice.command)
        if verdict.runner_up is not None:
            named.append(verdict.runner_up.command)
    by_command = {entry.command: entry for entry in comparison.entries}
    return [by_command[command] for command in dict.fromkeys(named)]


def _evidence(verdicts: Sequence[Verdict]) -> str:
    """List the papers behind the strategies that are chosen, once each, and what these papers did not test."""
    sources = []
    for verdict in verdicts:
        sources += [choice.source for choice in (verdict.choice, *verdict.alternatives) if choice.source]
    return "".join(map(_soft, [*dict.fromkeys(sources), verdicts[0].limits]))


def _advice(advice: Sequence[Advice]) -> str:
    items = []
    for item in advice:
        source = f"<div class='source'>{escape(item.source)}. {escape(item.untested)}</div>"
        items.append(f"<li><strong>{escape(item.advice)}</strong>{escape(item.reason)}{source}</li>")
    return f"<ul class='advice'>{''.join(items)}</ul>"


def _losses(size: int | None, entries: Sequence[Trial]) -> str:
    """Chart what each strategy pads and cuts, one line a strategy."""
    rows = map(attrgetter("strategy", "metrics.padding_ratio", "metrics.cut_fitting_ratio"), entries)
    names = tables.FIGURES["padding_ratio"].title, tables.FIGURES["cut_fitting_ratio"].title
    note = "Shares of the tokens in rows, and of the documents that would fit in a row. Small shares are drawn apart."
    return _two_shares(f"Padding against cuts: {name_of(size).lower()}", names, rows, note)


def _picture(entry: Trial) -> str:
    """Draw a few rows of a strategy."""
    tokens = _tokens_in(entry.sample_rows[0])
    title = f"{entry.strategy}, rows of {count(tokens)}"
    longest = entry.sequence_length or tokens
    if longest != tokens:
        title += f" of at most {count(longest)}"
    return figure(title, charts.row_picture(title, entry.sample_rows))


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


def _head(column: TableColumn[Any], sorts: bool) -> str:
    title = escape(column.title)
    if sorts:
        title = f"<button>{title}</button>"
    tip = ""
    if column.meaning:
        tip = f" title='{escape(column.meaning, quote=True)}'"
    return f"<th scope='col'{_classes(words=column.words)}{tip}>{title}</th>"


def _row(columns: Sequence[TableColumn[Any]], cells: Sequence[Cell]) -> str:
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


def fold(parts: Iterable[str]) -> str:
    """Put sections that few look for behind one line to open."""
    return f"<details><summary>All other figures</summary>{''.join(parts)}</details>"


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
    return f"<dl class='facts'>{''.join(starmap(_term, known))}</dl>"


def _term(name: str, value: str) -> str:
    return f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>"
