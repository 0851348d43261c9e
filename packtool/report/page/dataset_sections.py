"""A packed dataset on a page: where its tokens went, what its rows are like."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from packtool.metrics import Ledger, Metrics, Mixed, Sliding
from packtool.metrics.training import TrainingCost
from packtool.report.figures import FIGURES, count, number, percent, short
from packtool.report.page import charts
from packtool.report.page.charts import Bin
from packtool.report.page.elements import buckets_table, facts, figure, grid, length_chart, table, tiles
from packtool.report.page.row_picture import picture_legend, row_picture
from packtool.report.schema import ContextPoint, DocumentsBin, MeasuredReport

_LEDGER = (("placed", "text, once"), ("repeated", "text, repeated"), ("eos", "EOS"), ("padding", "padding"))


def dataset_sections(report: MeasuredReport) -> Iterator[str]:
    metrics = report.metrics
    yield tiles(_packed_tiles(report))
    drawings = [_ledger_chart(report.ledger)]
    if metrics is not None and report.lengths is not None:
        sizes = [bucket.sequence_length for bucket in report.buckets]
        drawings.append(length_chart(report.lengths, sizes))
        drawings.append(_documents_chart(report.documents_per_row, metrics))
        drawings.append(_context_chart(report.context, metrics))
    if report.pictured:
        tokens = sum(segment.length for segment in report.pictured[0].segments)
        caption = (
            "A block is a piece of a document, its colour the length of that document in tokens; a notch marks a cut."
        )
        title = f"Rows of {count(tokens)} tokens, evenly spread"
        drawings.append(figure(title, row_picture(title, report.pictured), caption, picture_legend()))
    yield grid(drawings)
    if metrics is None:
        yield "<p>Document boundaries are not known (--no-segments), so there are no metrics.</p>"
        return
    yield "<h2>Metrics</h2>" + metrics_table(metrics, report.sliding)
    if len(report.buckets) > 1:
        yield "<h2>Buckets</h2>" + buckets_table(report.buckets)
    if report.mixing:
        yield "<h2>Mixing</h2>" + _mixing_table(report.mixing)
    if report.training is not None:
        yield "<h2>Training cost</h2>" + _training(report.training)


def metrics_table(metrics: Metrics, slid: Sliding | None) -> str:
    """Every metric with its meaning."""
    rows = [
        (f.label, f.write(f.of(metrics)), f.meaning[:1].upper() + f.meaning[1:] + ".")
        for f in FIGURES
        if f.of(metrics) is not None
    ]
    per_row = metrics.documents_per_row
    spread = f"p50 {per_row.p50}, p99 {per_row.p99}, max {per_row.max}"
    rows.append(("documents per row", number(per_row.mean), f"Distinct documents in a row, mean; {spread}."))
    rows.append(("overlapping documents", count(metrics.overlapping_documents), "Documents with repeated tokens."))
    if slid is not None:
        texts, tokens = count(slid.predicted_texts), count(slid.predicted_tokens)
        rows.append(("texts that slide", count(slid.texts), f"Equation 6 of the paper predicts {texts}."))
        rows.append(("tokens left over", count(slid.tokens), f"Of other long texts; equation 7 predicts {tokens}."))
    full = metrics.attention_full
    masked = percent(metrics.attention_masked / full if full else 0.0)
    rows.append(
        ("masked attention", masked, "Query-key pairs if a token sees only its own document, of those of causal rows.")
    )
    body = "".join(
        f"<tr><td>{escape(label)}</td><td>{escape(value)}</td><td class='words'>{escape(meaning)}</td></tr>"
        for label, value, meaning in rows
    )
    return f"<table class='meanings'><tbody>{body}</tbody></table>"


def _packed_tiles(report: MeasuredReport) -> list[tuple[str, str]]:
    ledger, metrics = report.ledger, report.metrics
    shown = [("rows", short(ledger.rows)), ("tokens", short(ledger.output))]
    if metrics is not None:
        shown += [
            (f.label, f.write(f.of(metrics)))
            for f in FIGURES
            if f.key in ("padding_ratio", "truncation_ratio", "concatenation_ratio", "mean_context", "steps_per_epoch")
            and f.of(metrics) is not None
        ]
    return shown


def _ledger_chart(ledger: Ledger) -> str:
    rows = [
        ("input text", [("placed", "placed", ledger.placed), ("dropped", "dropped", ledger.dropped)]),
        (f"output, {count(ledger.rows)} rows", [(name, key, getattr(ledger, key)) for key, name in _LEDGER]),
    ]
    whole, text = ledger.output or 1, ledger.input or 1
    parts = ", ".join(
        f"{name} {percent(getattr(ledger, key) / whole)}" for key, name in _LEDGER if getattr(ledger, key)
    )
    caption = f"Placed {percent(ledger.placed / text)} of the input text, dropped {percent(ledger.dropped / text)}."
    caption += f" Output: {parts}." if parts else ""
    if ledger.eos_inserted or ledger.eos_omitted:
        caption += f" EOS: {count(ledger.eos_inserted)} inserted, {count(ledger.eos_omitted)} left out."
    names = [*((name, key) for key, name in _LEDGER), ("dropped", "dropped")]
    drawing = charts.stacked("Ledger from input to output", rows, "tokens")
    lines = [("dropped", ledger.dropped, text, "of the input text")]
    if ledger.left_out or ledger.packed_again:
        stored = ledger.stored or 1
        chosen = (("left out", ledger.left_out), ("packed again", ledger.packed_again))
        lines = [*((name, held, stored, "of the text of the stores") for name, held in chosen), *lines]
    lines += [(name, getattr(ledger, key), whole, "of the output") for key, name in _LEDGER]
    exact = table(
        ("", "tokens", "share", ""), [(name, count(held), percent(held / of), what) for name, held, of, what in lines]
    )
    return figure("Where every token went", drawing + charts.legend(names), caption, exact)


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
    line = charts.Series("context", 0, [(point.tokens, point.share) for point in context])
    drawing = charts.lines(
        "Share of tokens with at least so much context",
        [line],
        x_label="tokens of its own document before a token",
        y_label="share of tokens with at least as many",
        top=1,
    )
    caption = f"On average a token has {number(metrics.mean_context)} tokens of its own document before it in its row."
    return figure("Context available", drawing, caption)


def _training(cost: TrainingCost) -> str:
    shape = f"{short(cost.parameters)} parameters, {count(cost.layers)} layers of width {count(cost.width)}"
    known = [
        ("linear layers", f"{cost.linear:.3e} floating-point operations"),
        ("attention", f"{cost.attention:.3e}, over whole rows"),
        ("masked attention", f"{cost.attention_masked:.3e}, where a token sees only its own document"),
        ("all, masked", f"{cost.linear + cost.attention_masked:.3e}"),
    ]
    return facts(known) + f"<p class='soft'>One epoch, forward and backward, of a decoder of {escape(shape)}.</p>"


def _mixing_table(mixing: Sequence[Mixed]) -> str:
    head = (
        "rows of",
        "neighbours apart (median rows)",
        "mean",
        "at random",
        "in the same row",
        "in the same batch",
        "batch size",
        "documents per batch",
        "sources per batch",
    )
    rows = [
        (
            count(m.sequence_length),
            count(m.median_distance),
            number(m.mean_distance),
            number(m.expected_distance),
            percent(m.same_row),
            percent(m.same_batch),
            count(m.batch_size),
            number(m.documents.mean),
            number(m.sources.mean),
        )
        for m in mixing
    ]
    note = (
        "<p class='soft'>Neighbours are documents that follow each other in the corpus. Distances are between those "
        "that do not begin in the same row; at random their mean would be a third of the rows.</p>"
    )
    return table(head, rows) + note
