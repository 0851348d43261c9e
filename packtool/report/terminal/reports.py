"""Reports in the terminal: the answer first, the rest with `--full`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.text import Text

from packtool.report import comparison_tables, dataset_tables
from packtool.report.dataset_tables import headline
from packtool.report.figures import count, number, short
from packtool.report.schema import (
    Advice,
    ChosenStrategy,
    Comparison,
    CorpusReport,
    DocumentsReport,
    Lengths,
    MeasuredReport,
    PackedReport,
    Report,
    Verdict,
)
from packtool.report.table import Table
from packtool.report.terminal.tables import bars, heading, print_table, span
from packtool.sizes import plural


def print_stats(report: Report, console: Console, *, full: bool = False, page: Path | str | None = None) -> None:
    """Print whatever `packtool.stats` reports.

    Args:
        full: all that is known; else the answer.
        page: where its page was written, if it was.
    """
    if isinstance(report, MeasuredReport):
        _print_measured(report, console, full=full)
    else:
        _print_documents(report, console, full=full, page=page)
    if page is not None:
        console.print(f"Wrote {page}.", highlight=False, markup=False, soft_wrap=True)


def print_report(report: PackedReport, console: Console) -> None:
    """Print the report of a packed dataset (`packtool.report.packed.report_of_rows`)."""
    print_ledger(report, console)
    if report.metrics is None or report.lengths is None:
        console.print("\nDocument boundaries are not known (--no-segments), so there are no metrics.")
        return
    print_table(dataset_tables.metrics_table(report), console)
    if len(report.buckets) > 1:
        print_table(dataset_tables.buckets_table(report.buckets), console)
    _print_lengths(report.lengths, console)
    console.print(heading("Documents per row"))
    console.print(bars([(span(b.first, b.last), b.rows) for b in report.documents_per_row], "row"))


def print_ledger(report: PackedReport, console: Console) -> None:
    """Print what a packed dataset is, and where every token went."""
    strategy, order = headline(report)
    console.print(Text.assemble((strategy, "bold"), f" · {order}"))
    console.print()
    print_table(dataset_tables.ledger_table(report.ledger), console)


def _print_measured(report: MeasuredReport, console: Console, *, full: bool) -> None:
    print_report(report, console)
    if report.mixing:
        print_table(dataset_tables.mixing_table(report.mixing), console, full=full)
    for table in dataset_tables.source_tables(report):
        print_table(table, console, full=full)


def _print_documents(report: DocumentsReport, console: Console, *, full: bool, page: Path | str | None) -> None:
    comparison = report.comparison
    if comparison is not None:
        for verdict in comparison.verdicts:
            _print_verdict(verdict, console)
        if comparison.verdicts:
            console.print(Text(comparison.verdicts[0].limits, "dim"))
        console.print()
    console.print(_held(report))
    if comparison is None or full:
        _print_lengths(report.lengths, console)
        for table in dataset_tables.source_tables(report):
            print_table(table, console, full=full)
    if comparison is None:
        return
    for table in _comparison(comparison) if full else [comparison_tables.strategies_table(comparison)]:
        print_table(table, console, full=full)
    if full:
        _print_advice(comparison.advice, console)
    else:
        more = "" if page is not None else "; charts: --html FILE"
        console.print(f"Costs, row lengths, sliding windows, advice: --full{more}.", highlight=False)


def _comparison(comparison: Comparison) -> Iterator[Table[Any]]:
    yield comparison_tables.strategies_table(comparison)
    yield comparison_tables.costs_table(comparison)
    yield from comparison_tables.bucket_tables(comparison.entries)
    yield from (comparison_tables.sliding_table(each) for each in comparison.sliding if each.longer_texts)


def _print_verdict(verdict: Verdict, console: Console) -> None:
    size = verdict.sequence_length
    rows = "rows of several lengths" if size is None else f"rows of {count(size)} tokens"
    console.print(Text.assemble((f"Verdict for {rows}: ", "bold"), (verdict.choice.strategy, "bold green")))
    _print_choice(verdict.choice, console)
    if verdict.runner_up is not None:
        _print_choice(verdict.runner_up, console, lead=f"Runner-up: {verdict.runner_up.strategy}, ")
    console.print()


def _print_choice(choice: ChosenStrategy, console: Console, lead: str = "") -> None:
    console.print(Padding(Text(lead + choice.reason), (0, 0, 0, 2)))
    # Never wrapped: it is there to be pasted.
    console.print(Text(f"    {choice.command}", "cyan"), soft_wrap=True)


def _held(report: DocumentsReport) -> RenderableType:
    """What a store or a corpus holds and what was left out."""
    counts = dict(report.counts)
    left_out = {name: counts.pop(name, 0) for name in ("empty", "filtered", "rejected")}
    figures = [plural(counts[name], name[:-1]) for name in ("files", "documents", "tokens") if name in counts]
    if isinstance(report, CorpusReport):
        figures += [f"{count(lengths.total)} {lengths.unit}" for lengths in (report.words, report.characters)]
    figures += [f"{count(value)} {name}" for name, value in left_out.items() if value]
    return Text.assemble((report.path, "bold"), f" · {', '.join(figures)}")


def _print_lengths(lengths: Lengths, console: Console) -> None:
    """The length distribution: figures and a histogram."""
    held = f"{plural(lengths.documents, 'document')}, {plural(lengths.total, lengths.unit[:-1])}"
    console.print(heading(f"Document length in {lengths.unit}", f"{held}; mean {number(lengths.mean)}"))
    ranks = "  ".join(f"{name} {short(getattr(lengths, name))}" for name in ("min", "p10", "p50", "p90", "p99", "max"))
    console.print(Text(ranks, "dim"))
    console.print(bars([(span(b.first, b.last), b.documents) for b in lengths.histogram], "document"))


def _print_advice(advice: Sequence[Advice], console: Console) -> None:
    if advice:
        console.print(heading("Advice"))
    for item in advice:
        console.print(Text(f"• {item.advice}"))
        console.print(Padding(Text(item.reason), (0, 0, 0, 2)))
        console.print(Padding(Text(f"{item.source}. {item.untested}", "dim"), (0, 0, 0, 2)))
