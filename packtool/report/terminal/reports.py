"""Reports in the terminal: which tables, in which order."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from packtool.report.schema import MeasuredReport, PackedReport, Report, StoreReport
from packtool.report.terminal.comparison_tables import print_comparison
from packtool.report.terminal.tables import (
    bars,
    buckets_table,
    counts_line,
    heading,
    ledger_table,
    lengths_view,
    metrics_table,
    mixing_table,
    source_mix_table,
    sources_table,
    span,
    stores_table,
    title,
)
from packtool.report.terminal.verdict_view import print_figures, print_verdict


def print_report(report: PackedReport, console: Console) -> None:
    """Print the report of a packed dataset (`packtool.report.packed.report_of_rows`)."""
    console.print(title(report))
    console.print()
    console.print(ledger_table(report.ledger))
    console.print()
    if report.metrics is None or report.lengths is None:
        console.print("Document boundaries are not known (--no-segments), so there are no metrics.")
        return
    console.print(metrics_table(report.metrics, report.sliding))
    if len(report.buckets) > 1:
        console.print()
        console.print(buckets_table(report.buckets))
    console.print(lengths_view(report.lengths))
    console.print(heading("Documents per row"))
    console.print(bars([(span(b.first, b.last), b.rows) for b in report.documents_per_row], "row"))


def print_stats(report: Report, console: Console, *, full: bool = False, page: Path | str | None = None) -> None:
    """Print whatever `packtool.stats` reports.

    Args:
        full: of a comparison, all that is known; else the verdict and a table.
        page: where its page was written, if it was.
    """
    _print_stats(report, console, full=full, page=page)
    if page is not None:
        console.print(f"Wrote {page}.", highlight=False, markup=False, soft_wrap=True)


def _print_stats(report: Report, console: Console, *, full: bool, page: Path | str | None) -> None:
    if isinstance(report, MeasuredReport):
        print_report(report, console)
        if report.sources:
            console.print()
            console.print(sources_table(report.sources))
        if report.mixing:
            console.print()
            console.print(mixing_table(report.mixing))
        if report.mixing and len(report.sources) > 1:
            names = [source.name or source.digest[:12] for source in report.sources]
            console.print(source_mix_table(report.mixing, names))
        return
    comparison = report.comparison
    if comparison is not None:
        print_verdict(comparison, console)
        console.print()
    console.print(counts_line(report))
    if comparison is None or full:
        console.print(lengths_view(report.lengths))
        if isinstance(report, StoreReport) and len(report.sources) > 1:
            console.print()
            console.print(stores_table(report.sources))
    if comparison is not None:
        print_figures(comparison, console)
        if full:
            print_comparison(comparison, console)
        else:
            more = "" if page is not None else "; charts: --html FILE"
            console.print(f"Costs, buckets, sliding windows, advice: --full{more}.", highlight=False)
