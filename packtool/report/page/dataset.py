"""A packed dataset on a page: where its tokens went, what its rows are like."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from packtool.metrics.ledger import Ledger
from packtool.metrics.summary import Metrics
from packtool.report import dataset_tables as tables
from packtool.report.figures import FIGURES, count, number, short
from packtool.report.judgement import judge
from packtool.report.page import charts
from packtool.report.page.charts import Bin
from packtool.report.page.elements import figure, grid, html_table, length_chart, section, tiles
from packtool.report.page.row_picture import picture_legend, row_picture
from packtool.report.schema import ContextPoint, DocumentsBin, MeasuredReport
from packtool.shuffling.balance import Waiting
from packtool.sizes import plural

OUTPUT = (("placed", "text, once"), ("repeated", "text, repeated"), ("eos", "EOS"), ("padding", "padding"))
"""What rows hold: names in the ledger, and in words."""
_TILES = ("padding_ratio", "truncation_ratio", "avoidable_truncation_ratio", "mean_context", "steps_per_epoch")


def dataset_sections(report: MeasuredReport) -> Iterator[str]:
    """Write the sections of the page between its head and its inputs."""
    metrics = report.metrics
    yield tiles(_packed_tiles(report))
    if judgements := judge(report):
        items = (f"<li class='{'good' if j.good else 'look'}'>{escape(j.words)}</li>" for j in judgements)
        yield f"<ul class='verdict judgement'>{''.join(items)}</ul>"
    drawings = [_ledger_chart(report.ledger)]
    if metrics is not None and report.lengths is not None:
        lengths = [bucket.sequence_length for bucket in report.buckets]
        drawings.append(length_chart(report.lengths, lengths))
        drawings.append(_documents_chart(report.documents_per_row, metrics))
        drawings.append(_context_chart(report.context, metrics))
    if report.sample_rows:
        tokens = sum(segment.length for segment in report.sample_rows[0].segments)
        caption = (
            "A block is a piece of a document, its colour the length of that document in tokens; a notch marks where "
            "a document is cut."
        )
        title = f"Rows of {count(tokens)} tokens, evenly spread"
        drawings.append(figure(title, row_picture(title, report.sample_rows), caption, picture_legend()))
    if report.waiting:
        drawings.append(_waiting_chart(report.waiting))
    yield grid(drawings)
    if metrics is None:
        yield "<p>Document boundaries are not known (--no-segments), so there are no metrics.</p>"
        return
    yield section(tables.metrics_table(report))
    if len(report.buckets) > 1:
        yield section(tables.buckets_table(report.buckets))
    yield section(tables.mixing_table(report.mixing))
    if report.waiting:
        yield section(tables.waiting_table(report.waiting))
    if report.training is not None:
        yield section(tables.training_table(report.training))


def _packed_tiles(report: MeasuredReport) -> list[tuple[str, str]]:
    ledger, metrics = report.ledger, report.metrics
    shown = [("rows", short(ledger.rows)), ("tokens", short(ledger.output))]
    if metrics is not None:
        known = [(FIGURES[key], FIGURES[key].of(metrics)) for key in _TILES]
        shown += [(figure.title, figure.write(value)) for figure, value in known if value is not None]
    return shown


def _ledger_chart(ledger: Ledger) -> str:
    rows = [
        ("input text", [("placed", "placed", ledger.placed), ("dropped", "dropped", ledger.dropped)]),
        (f"output, {plural(ledger.rows, 'row')}", [(name, key, getattr(ledger, key)) for key, name in OUTPUT]),
    ]
    names = [*((name, key) for key, name in OUTPUT), ("dropped", "dropped")]
    drawing = charts.stacked("Ledger from input to output", rows, "tokens")
    return figure("Where every token went", drawing + charts.legend(names) + html_table(tables.ledger_table(ledger)))


def _waiting_chart(waiting: Sequence[Waiting]) -> str:
    ways = [("as dealt", "dealt"), ("balanced", "balanced")]
    ways += [("every row a turn", "turns_dealt"), ("every row a turn, balanced", "turns_balanced")]
    rows = [
        (
            f"{count(each.sequence_length)} tokens, {name}",
            [("computing", "placed", 100 - 100 * getattr(each, key)), ("waiting", "padding", 100 * getattr(each, key))],
        )
        for each in waiting
        for name, key in ways
    ]
    drawing = charts.stacked("What ranks do while a step lasts", rows, "% of the time")
    names = [("computing", "placed"), ("waiting", "padding")]
    return figure(f"Waiting of {count(waiting[0].ranks)} ranks", drawing + charts.legend(names))


def _documents_chart(bins: Sequence[DocumentsBin], metrics: Metrics) -> str:
    if not bins:
        return figure("Documents per row", "<p>No rows.</p>")
    per_row = metrics.documents_per_row
    caption = (
        f"Mean {number(per_row.mean)}; half of the rows have at most {count(per_row.p50)}, 99% at most "
        f"{count(per_row.p99)}; most {count(per_row.max)}."
    )
    drawing = charts.histogram(
        "Documents per row",
        [Bin(b.first, b.last, b.rows) for b in bins],
        label="documents in a row",
        unit="rows",
    )
    return figure("Documents per row", drawing, caption)


def _context_chart(context: Sequence[ContextPoint], metrics: Metrics) -> str:
    if not context:
        return figure("Context available", "<p>No documents.</p>")
    drawing = charts.context([charts.Series("context", 0, [(point.tokens, point.share) for point in context])])
    caption = f"On average a token has {number(metrics.mean_context)} tokens of its own document before it in its row."
    return figure("Context available", drawing, caption)
