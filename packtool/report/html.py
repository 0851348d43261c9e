"""A report as one self-contained page: style and drawings inline, no scripts, nothing fetched."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from importlib import resources
from typing import Any

from packtool.report import charts
from packtool.report.charts import Bin
from packtool.report.comparison_html import comparison_sections
from packtool.report.definitions import FIGURES, count, number, percent, short
from packtool.report.parts import buckets_table, facts, figure, grid, length_chart, lengths_figure, table, tiles

Json = dict[str, Any]

_LEDGER = (("placed", "text, once"), ("repeated", "text, repeated"), ("eos", "EOS"), ("padding", "padding"))


def page(report: Json) -> str:
    """The page of whatever `packtool.stats` reports."""
    style = resources.files("packtool").joinpath("assets", "report.css").read_text("utf-8")
    title = _title(report)
    return (
        "<!DOCTYPE html>\n"
        '<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{style}</style></head>\n"
        f"<body><main><h1>{escape(title)}</h1><p class='soft'>{escape(_subtitle(report))}</p>\n"
        + "\n".join(_sections(report))
        + "</main></body></html>\n"
    )


def _title(report: Json) -> str:
    if report["kind"] == "packed":
        return f"{report['strategy']}: {report['path']}"
    return f"Packing report: {report['path']}" if report["comparison"] else f"Documents: {report['path']}"


def _subtitle(report: Json) -> str:
    kinds = {"packed": "Packed dataset", "store": "Token store", "corpus": "Corpus"}
    return f"{kinds[report['kind']]}, measured by packtool {report['packtool_version']}"


def _sections(report: Json) -> Iterable[str]:
    if report["kind"] == "packed":
        yield from _packed_sections(report)
    else:
        lengths, comparison = report["lengths"], report["comparison"]
        yield tiles(_length_tiles(lengths))
        marks = sorted({e["sequence_length"] for e in comparison["entries"]} - {None}) if comparison else []
        drawings = [length_chart(lengths, marks), lengths_figure(lengths)]
        if comparison:
            yield from comparison_sections(comparison, drawings)
        else:
            yield grid(drawings)
    yield "<h2>Configuration</h2>" + facts(_configuration(report))


def _packed_sections(report: Json) -> Iterable[str]:
    metrics = report["metrics"]
    yield tiles(_packed_tiles(report))
    drawings = [_ledger_chart(report["ledger"])]
    if metrics is not None:
        sizes = [bucket["sequence_length"] for bucket in report["buckets"]]
        drawings.append(length_chart(report["lengths"], sizes))
        drawings.append(_documents_chart(report["documents_per_row"], metrics))
        drawings.append(_context_chart(report["context"], metrics))
    yield grid(drawings)
    if metrics is None:
        yield "<p>Document boundaries are not known (--no-segments), so there are no metrics.</p>"
        return
    yield "<h2>Metrics</h2>" + metrics_table(metrics, report["sliding"])
    if len(report["buckets"]) > 1:
        yield "<h2>Buckets</h2>" + buckets_table(report["buckets"])
    if report["mixing"]:
        yield "<h2>Mixing</h2>" + _mixing_table(report["mixing"])


def metrics_table(metrics: Json, slid: Json | None) -> str:
    """Every metric with its meaning."""
    rows = [
        (f.label, f.write(f.of(metrics)), f.meaning[:1].upper() + f.meaning[1:] + ".")
        for f in FIGURES
        if f.of(metrics) is not None
    ]
    per_row = metrics["documents_per_row"]
    spread = f"p50 {per_row['p50']}, p99 {per_row['p99']}, max {per_row['max']}"
    rows.append(("documents per row", number(per_row["mean"]), f"Distinct documents in a row, mean; {spread}."))
    rows.append(("overlapping documents", count(metrics["overlapping_documents"]), "Documents with repeated tokens."))
    if slid is not None:
        texts, tokens = count(slid["predicted_texts"]), count(slid["predicted_tokens"])
        rows.append(("texts that slide", count(slid["texts"]), f"Equation 6 of the paper predicts {texts}."))
        rows.append(("tokens left over", count(slid["tokens"]), f"Of other long texts; equation 7 predicts {tokens}."))
    full = metrics["attention_full"]
    masked = percent(metrics["attention_masked"] / full if full else 0.0)
    rows.append(
        ("masked attention", masked, "Query-key pairs if a token sees only its own document, of those of causal rows.")
    )
    body = "".join(
        f"<tr><td>{escape(label)}</td><td>{escape(value)}</td><td class='words'>{escape(meaning)}</td></tr>"
        for label, value, meaning in rows
    )
    return f"<table class='meanings'><tbody>{body}</tbody></table>"


def _length_tiles(lengths: Json) -> list[tuple[str, str]]:
    return [
        ("documents", short(lengths["documents"])),
        (lengths["unit"], short(lengths["total"])),
        ("mean", number(lengths["mean"])),
        ("median", short(lengths["p50"])),
        ("p99", short(lengths["p99"])),
        ("longest", short(lengths["max"])),
    ]


def _packed_tiles(report: Json) -> list[tuple[str, str]]:
    ledger, metrics = report["ledger"], report["metrics"]
    shown = [("rows", short(ledger["rows"])), ("tokens", short(ledger["output"]))]
    if metrics is not None:
        shown += [
            (f.label, f.write(f.of(metrics)))
            for f in FIGURES
            if f.key in ("padding_ratio", "truncation_ratio", "concatenation_ratio", "mean_context", "steps_per_epoch")
            and f.of(metrics) is not None
        ]
    return shown


def _ledger_chart(ledger: Json) -> str:
    rows = [
        ("input text", [("placed", "placed", ledger["placed"]), ("dropped", "dropped", ledger["dropped"])]),
        (f"output, {count(ledger['rows'])} rows", [(name, key, ledger[key]) for key, name in _LEDGER]),
    ]
    whole, text = ledger["output"] or 1, ledger["input"] or 1
    parts = ", ".join(f"{name} {percent(ledger[key] / whole)}" for key, name in _LEDGER if ledger[key])
    caption = (
        f"Placed {percent(ledger['placed'] / text)} of the input text, dropped {percent(ledger['dropped'] / text)}."
    )
    caption += f" Output: {parts}." if parts else ""
    if ledger["eos_inserted"] or ledger["eos_omitted"]:
        caption += f" EOS: {count(ledger['eos_inserted'])} inserted, {count(ledger['eos_omitted'])} left out."
    names = [*((name, key) for key, name in _LEDGER), ("dropped", "dropped")]
    drawing = charts.stacked("Ledger from input to output", rows, "tokens")
    return figure("Where every token went", drawing, caption, charts.legend(names))


def _documents_chart(bins: Sequence[Json], metrics: Json) -> str:
    if not bins:
        return figure("Documents per row", "<p>No rows.</p>")
    per_row = metrics["documents_per_row"]
    caption = (
        f"Mean {number(per_row['mean'])}; half of the rows have at most {count(per_row['p50'])}, 99% at most "
        f"{count(per_row['p99'])}; most {count(per_row['max'])}."
    )
    drawing = charts.histogram(
        "Documents per row",
        [Bin(b["from"], b["to"], b["rows"]) for b in bins],
        label="documents in a row",
        unit="rows",
    )
    return figure("Documents per row", drawing, caption)


def _context_chart(context: Sequence[Json], metrics: Json) -> str:
    if not context:
        return figure("Context available", "<p>No documents.</p>")
    line = charts.Series("context", 0, [(point["tokens"], point["share"]) for point in context])
    drawing = charts.lines(
        "Share of tokens with at least so much context",
        [line],
        x_label="tokens of its own document before a token",
        y_label="share of tokens with at least as many",
        top=1,
    )
    caption = (
        f"On average a token has {number(metrics['mean_context'])} tokens of its own document before it in its row."
    )
    return figure("Context available", drawing, caption)


def _mixing_table(mixing: Sequence[Json]) -> str:
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
            count(m["sequence_length"]),
            count(m["median_distance"]),
            number(m["mean_distance"]),
            number(m["expected_distance"]),
            percent(m["same_row"]),
            percent(m["same_batch"]),
            count(m["batch_size"]),
            number(m["documents"]["mean"]),
            number(m["sources"]["mean"]),
        )
        for m in mixing
    ]
    note = (
        "<p class='soft'>Neighbours are documents that follow each other in the corpus. Distances are between those "
        "that do not begin in the same row; at random their mean would be a third of the rows.</p>"
    )
    return table(head, rows) + note


def _configuration(report: Json) -> list[tuple[str, str]]:
    known = [("path", report["path"])]
    if report["kind"] == "packed":
        known.append(("strategy", report["strategy"]))
        known += [(name.replace("_", " "), _plain(value)) for name, value in report["options"].items()]
        shuffle = report["shuffle"] or {"method": "none"}
        known.append(("shuffle", _listed(shuffle)))
    else:
        known += [(name.replace("_", " "), count(value)) for name, value in report.get("counts", {}).items()]
    if report.get("comparison"):
        known += _tried(report["comparison"]["entries"])
    if report["batch_size"] is not None:
        known.append(("batch size", count(report["batch_size"])))
    for name, value in (report.get("tokenizer") or {}).items():
        if name != "added_tokens":
            known.append((f"tokenizer {name}".replace("_", " "), _plain(value)))
    return [*known, ("packtool", report["packtool_version"]), ("report schema", str(report["schema_version"]))]


def _tried(entries: Sequence[Json]) -> list[tuple[str, str]]:
    """The options that strategies were tried with, but the row length; once where they do not depend on it."""
    found = []
    for entry in entries:
        options = {k: v for k, v in entry["options"].items() if k not in ("sequence_length", "atom_size")}
        found.append((entry["strategy"], _listed(options)))
    return list(dict.fromkeys(found))


def _listed(options: Json) -> str:
    given = {name: value for name, value in options.items() if value is not None and value is not False}
    return ", ".join(f"{name.replace('_', ' ')} {_plain(value)}" for name, value in given.items())


def _plain(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, list | tuple):
        return " ".join(map(_plain, value))
    return str(value)
