"""The inputs on a page: what they hold, what was asked of each and what came of it, how evenly batches hold them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from packtool.report.figures import count, number, percent
from packtool.report.page.elements import table
from packtool.report.schema import MeasuredReport, PackedSourceFigures, Report, StoredSourceFigures, StoreReport


def source_sections(report: Report) -> Iterator[str]:
    """A table of the inputs, where they are known."""
    if isinstance(report, StoreReport) and report.sources:
        yield "<h2>Inputs</h2>" + _stores(report.sources)
    if isinstance(report, MeasuredReport) and report.sources:
        yield "<h2>Inputs</h2>" + _packed(report.sources) + _left_out(report.sources)
        if report.mixing and len(report.sources) > 1:
            yield "<h2>Sources in batches</h2>" + _mix(report)


def _stores(sources: Sequence[StoredSourceFigures]) -> str:
    head = ("store", "documents", "of all", "tokens", "of all", "mean", "median", "longest", "copies", "xxh3-128")
    rows = [
        (
            source.name or "",
            count(source.documents),
            percent(source.document_share),
            count(source.tokens),
            percent(source.token_share),
            number(source.lengths.mean),
            count(source.lengths.p50),
            count(source.lengths.max),
            "not known" if source.duplicates is None else count(source.duplicates),
            source.digest,
        )
        for source in sources
    ]
    note = (
        "<p class='soft'>Copies are documents whose text an earlier one has; the hash is of the store's manifest.</p>"
    )
    return table(head, rows) + note


def _packed(sources: Sequence[PackedSourceFigures]) -> str:
    head = ("store", "documents", "tokens", "of all", "asked", "epochs", "asked", "repeated tokens", "xxh3-128")
    rows = [
        (
            source.name or "",
            count(source.documents),
            count(source.tokens),
            percent(source.token_share),
            percent(source.asked_share),
            number(source.epochs),
            number(source.asked_epochs),
            count(source.repeated_tokens),
            source.digest,
        )
        for source in sources
    ]
    return table(head, rows)


def _left_out(sources: Sequence[PackedSourceFigures]) -> str:
    rows = [
        (source.name or "", reason.replace("_", " "), count(left_out.documents), count(left_out.tokens))
        for source in sources
        for reason, left_out in source.left_out.items()
    ]
    return table(("store", "left out", "documents", "tokens"), rows) if rows else ""


def _mix(report: MeasuredReport) -> str:
    head = ("store", "rows of", "tokens", "of all", "least in a batch", "most", "standard deviation")
    rows = [
        (
            source.name or "",
            count(mixed.sequence_length),
            count(mix.tokens),
            percent(mix.share),
            percent(mix.min),
            percent(mix.max),
            percent(mix.deviation),
        )
        for mixed in report.mixing
        for source, mix in zip(report.sources, mixed.source_mix, strict=True)
    ]
    note = "<p class='soft'>Shares of the tokens of whole batches, padding not counted.</p>"
    return table(head, rows) + note
