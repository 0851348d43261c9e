"""A report as one self-contained page: style and drawings inline, no scripts, nothing fetched."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from importlib import resources
from typing import Any

import msgspec

from packtool.report.figures import count, number, short
from packtool.report.page.comparison_sections import comparison_sections
from packtool.report.page.dataset_sections import dataset_sections
from packtool.report.page.elements import facts, grid, length_chart, lengths_figure, tiles
from packtool.report.schema import Lengths, MeasuredReport, Options, Report, Trial


def page(report: Report) -> str:
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


def _title(report: Report) -> str:
    if isinstance(report, MeasuredReport):
        return f"{report.strategy}: {report.path}"
    return f"Packing report: {report.path}" if report.comparison else f"Documents: {report.path}"


def _subtitle(report: Report) -> str:
    kinds = {"packed": "Packed dataset", "store": "Token store", "corpus": "Corpus"}
    return f"{kinds[report.kind]}, measured by packtool {report.packtool_version}"


def _sections(report: Report) -> Iterable[str]:
    if isinstance(report, MeasuredReport):
        yield from dataset_sections(report)
    else:
        lengths, comparison = report.lengths, report.comparison
        yield tiles(_length_tiles(lengths))
        entries = comparison.entries if comparison else []
        marks = sorted({e.sequence_length for e in entries if e.sequence_length is not None})
        drawings = [length_chart(lengths, marks), lengths_figure(lengths)]
        if comparison:
            yield from comparison_sections(comparison, drawings)
        else:
            yield grid(drawings)
    yield "<h2>Configuration</h2>" + facts(_configuration(report))


def _length_tiles(lengths: Lengths) -> list[tuple[str, str]]:
    return [
        ("documents", short(lengths.documents)),
        (lengths.unit, short(lengths.total)),
        ("mean", number(lengths.mean)),
        ("median", short(lengths.p50)),
        ("p99", short(lengths.p99)),
        ("longest", short(lengths.max)),
    ]


def _configuration(report: Report) -> list[tuple[str, str]]:
    known = [("path", report.path)]
    if isinstance(report, MeasuredReport):
        known.append(("strategy", report.strategy))
        known += [(name.replace("_", " "), _plain(value)) for name, value in report.options.items()]
        known.append(
            ("shuffle", _listed(msgspec.to_builtins(report.shuffle) if report.shuffle else {"method": "none"}))
        )
    else:
        known += [(name.replace("_", " "), count(value)) for name, value in report.counts.items()]
        known += _tried(report.comparison.entries) if report.comparison else []
        tokenizer = msgspec.to_builtins(report.tokenizer) if report.tokenizer else {}
        known += [
            (f"tokenizer {name}".replace("_", " "), _plain(value))
            for name, value in tokenizer.items()
            if name != "added_tokens"
        ]
    if report.batch_size is not None:
        known.append(("batch size", count(report.batch_size)))
    return [*known, ("packtool", report.packtool_version), ("report schema", str(report.schema_version))]


def _tried(entries: Sequence[Trial]) -> list[tuple[str, str]]:
    """The options that strategies were tried with, but the row length; once where they do not depend on it."""
    found = []
    for entry in entries:
        options = {k: v for k, v in entry.options.items() if k not in ("sequence_length", "atom_size")}
        found.append((entry.strategy, _listed(options)))
    return list(dict.fromkeys(found))


def _listed(options: Options) -> str:
    given = {name: value for name, value in options.items() if value is not None and value is not False}
    return ", ".join(f"{name.replace('_', ' ')} {_plain(value)}" for name, value in given.items())


def _plain(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, list | tuple):
        return " ".join(map(_plain, value))
    return str(value)
