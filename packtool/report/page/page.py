"""Assemble a report page: style, drawings and the script that sorts tables inline, nothing fetched."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from typing import Any

import msgspec

from packtool.report.dataset_tables import source_tables
from packtool.report.figures import count, number, short
from packtool.report.page.comparison import comparison_sections, verdict_section
from packtool.report.page.dataset import dataset_sections
from packtool.report.page.elements import facts, grid, length_chart, lengths_figure, section, tiles
from packtool.report.schema import Lengths, MeasuredReport, Options, Report, Trial
from packtool.sizes import plural


def page(report: Report) -> str:
    """Write the page of whatever `packtool.stats` reports."""
    assets = Path(__file__).parents[2] / "assets"
    style, script = ((assets / name).read_text("utf-8") for name in ("report.css", "report.js"))
    if isinstance(report, MeasuredReport):
        title = f"{report.strategy}: {report.path}"
    else:
        title = f"Packing report: {report.path}" if report.comparison else f"Documents: {report.path}"
    kinds = {"packed": "Packed dataset", "store": "Token store", "corpus": "Corpus"}
    subtitle = f"{kinds[report.kind]}, measured by packtool {report.packtool_version}"
    return (
        "<!DOCTYPE html>\n"
        '<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{style}</style></head>\n"
        f"<body><main><h1>{escape(title)}</h1><p class='soft'>{escape(subtitle)}</p>\n"
        + "\n".join(_sections(report))
        + f"</main><script>{script}</script></body></html>\n"
    )


def _sections(report: Report) -> Iterable[str]:
    if isinstance(report, MeasuredReport):
        yield from dataset_sections(report)
    else:
        lengths, comparison = report.lengths, report.comparison
        if comparison and comparison.verdicts:
            yield verdict_section(comparison.verdicts)
        yield tiles(_length_tiles(lengths))
        entries = comparison.entries if comparison else []
        marks = sorted({e.sequence_length for e in entries if e.sequence_length is not None})
        drawings = [length_chart(lengths, marks), lengths_figure(lengths)]
        if comparison:
            yield from comparison_sections(comparison, drawings)
        else:
            yield grid(drawings)
    yield from map(section, source_tables(report))
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
    """Describe the measurement and its options."""
    known = [("measured", report.path)]
    if isinstance(report, MeasuredReport):
        known.append(("packed with", f"{report.strategy}: {_listed(report.options)}"))
        shuffle = msgspec.to_builtins(report.shuffle) if report.shuffle else None
        known.append(("order", _listed(shuffle) if shuffle else "that of the corpus"))
    else:
        held = ", ".join(f"{count(value)} {name.replace('_', ' ')}" for name, value in report.counts.items())
        known.append(("holds", held))
        known += _tried(report.comparison.entries) if report.comparison else []
        if report.tokenizer is not None:
            said = report.tokenizer
            known.append(
                (
                    "tokenizer",
                    f"{count(said.vocab_size)} ids, documents end with {said.eos_token!r} (id {said.eos_id}); "
                    f"sha256 of its file {said.sha256}",
                )
            )
    if report.batch_size is not None:
        known.append(("a batch", plural(report.batch_size, "row")))
    return [*known, ("by", f"packtool {report.packtool_version}, report schema {report.schema_version}")]


def _tried(entries: Sequence[Trial]) -> list[tuple[str, str]]:
    """List the options that strategies were tried with, except the row length; once if they do not depend on it."""
    rows = []
    for entry in entries:
        options = {k: v for k, v in entry.options.items() if k not in ("sequence_length", "atom_size")}
        rows.append((f"{entry.strategy} tried with", _listed(options) or "no other option"))
    return list(dict.fromkeys(rows))


def _listed(options: Options) -> str:
    """List options in words.

    >>> _listed({"sequence_length": 2048, "mix_rows": True, "segments": False, "max_repetition": None})
    'sequence length 2,048, mix rows: yes, segments: no'
    """
    words = []
    for name, value in options.items():
        what = name.replace("_", " ")
        if value is not None:
            said = f": {'yes' if value else 'no'}" if isinstance(value, bool) else f" {_plain(value)}"
            words.append(what + said)
    return ", ".join(words)


def _plain(value: Any) -> str:
    if isinstance(value, list | tuple):
        return " / ".join(map(_plain, value))
    return count(value) if isinstance(value, int) else str(value)
