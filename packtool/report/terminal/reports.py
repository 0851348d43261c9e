"""Print reports in the terminal: the answer first, the rest with `--full`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import rich.table
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.text import Text

from packtool.report import comparison_tables, dataset_tables
from packtool.report.dataset_tables import headline
from packtool.report.figures import count, number, short
from packtool.report.judgement import judge
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
    """Print whatever `packtool.stats` reports: the answer, and the tables behind it.

    Args:
        full: all that is known.
        page: where its page was written, if it was.
    """
    if isinstance(report, MeasuredReport):
        _print_packed(report, console, full=full)
    else:
        _print_documents(report, console, full=full)
    if page is not None:
        console.print(f"Wrote {page}.", highlight=False, markup=False, soft_wrap=True)
    elif not full:
        console.print("All figures: --full; charts: --html FILE; terms: docs/glossary.md.", highlight=False)


def print_answer(report: Report, console: Console, page: Path | str | None = None) -> None:
    """Print the answer alone: the verdict, whether a packed dataset is good, or what documents there are."""
    if isinstance(report, MeasuredReport):
        _print_headline(report, console)
        _print_judgements(report, console)
    elif report.comparison is not None:
        for verdict in report.comparison.verdicts:
            _print_verdict(verdict, console)
    else:
        console.print(_held(report))
    if page is not None:
        console.print(f"Wrote {page}.", highlight=False, markup=False, soft_wrap=True)


def print_ledger(report: PackedReport, console: Console) -> None:
    """Print a summary of a packed dataset, and where every token went."""
    _print_headline(report, console)
    console.print()
    print_table(dataset_tables.ledger_table(report.ledger), console)


def _print_headline(report: PackedReport, console: Console) -> None:
    strategy, order = headline(report)
    console.print(Text.assemble((strategy, "bold"), f" · {order}"))


def _print_packed(report: MeasuredReport, console: Console, *, full: bool) -> None:
    print_ledger(report, console)
    console.print()
    if report.metrics is None or report.lengths is None:
        console.print("Document boundaries are not known (--no-segments), so there are no metrics.")
        return
    _print_judgements(report, console)
    if report.waiting:
        print_table(dataset_tables.waiting_table(report.waiting), console, full=full)
    sources = dataset_tables.source_tables(report)
    if not full:
        for table in sources if len(report.sources) > 1 else []:
            print_table(table, console)
        return
    print_table(dataset_tables.metrics_table(report), console, full=True)
    if len(report.buckets) > 1:
        print_table(dataset_tables.buckets_table(report.buckets), console, full=True)
    _print_lengths(report.lengths, console)
    console.print(heading("Documents per row"))
    console.print(bars([(span(b.first, b.last), b.rows) for b in report.documents_per_row], "row"))
    for table in [dataset_tables.mixing_table(report.mixing), *sources]:
        print_table(table, console, full=True)


def _print_documents(report: DocumentsReport, console: Console, *, full: bool) -> None:
    comparison = report.comparison
    for verdict in comparison.verdicts if comparison is not None else ():
        _print_verdict(verdict, console, full=full)
        console.print()
    console.print(_held(report))
    if comparison is None or full:
        _print_lengths(report.lengths, console)
        sources = dataset_tables.source_tables(report)
        for table in sources if full or len(getattr(report, "sources", ())) > 1 else []:
            print_table(table, console, full=full)
    if comparison is not None:
        tables = _comparison(comparison) if full else [_contest(comparison)]
        waits = [comparison_tables.waits_table(comparison)] if any(e.waiting for e in comparison.entries) else []
        for table in [*tables, *waits]:
            print_table(table, console, full=full)
        if full:
            _print_advice(comparison.advice, console)


def _contest(comparison: Comparison) -> Table[Any]:
    """List the strategies that the verdicts chose from: those of one row length, if there are any."""
    table = comparison_tables.strategies_table(comparison)
    one_length = [group for group in table.groups if group[1][0].sequence_length is not None]
    return replace(table, groups=one_length or table.groups)


def _comparison(comparison: Comparison) -> Iterator[Table[Any]]:
    yield comparison_tables.strategies_table(comparison)
    yield comparison_tables.costs_table(comparison)
    yield from comparison_tables.bucket_tables(comparison.entries)
    yield from (comparison_tables.sliding_table(each) for each in comparison.sliding if each.longer_texts)


def _print_verdict(verdict: Verdict, console: Console, *, full: bool = False) -> None:
    title = f"Verdict for {comparison_tables.name_of(verdict.sequence_length).lower()}: "
    console.print(Text.assemble((title, "bold"), (verdict.choice.strategy, "bold green")))
    _print_choice(verdict.choice, console, full=full)
    for further, other in enumerate(verdict.alternatives if full else verdict.alternatives[:1]):
        lead = "Or" if further else "Runner-up:"
        _print_choice(other, console, lead=f"{lead} {other.strategy}, ", full=full)
    if full:
        console.print(Text(verdict.limits, "dim"))


def _print_judgements(report: PackedReport, console: Console) -> None:
    for judgement in judge(report):
        mark, style = ("✓", "green") if judgement.good else ("!", "bold yellow")
        grid = rich.table.Table.grid(padding=(0, 1))
        grid.add_row(Text(mark, style), Text(judgement.words))
        console.print(grid)


def _print_choice(choice: ChosenStrategy, console: Console, lead: str = "", *, full: bool = False) -> None:
    console.print(Padding(Text(lead + choice.reason), (0, 0, 0, 2)))
    if full and choice.source is not None:
        console.print(Padding(Text(choice.source, "dim"), (0, 0, 0, 2)))
    # Never wrapped: it is there to be pasted.
    console.print(Text(f"    {choice.command}", "cyan"), soft_wrap=True)


def _held(report: DocumentsReport) -> RenderableType:
    """Summarise the contents of a store or corpus, and what was left out."""
    counts = dict(report.counts)
    left_out = {name: counts.pop(name, 0) for name in ("empty", "filtered", "rejected")}
    figures = [plural(counts[name], name[:-1]) for name in ("files", "documents", "tokens") if name in counts]
    if isinstance(report, CorpusReport):
        figures += [f"{count(lengths.total)} {lengths.unit}" for lengths in (report.words, report.characters)]
    figures += [f"{count(value)} {name}" for name, value in left_out.items() if value]
    return Text.assemble((report.path, "bold"), f" · {', '.join(figures)}")


def _print_lengths(lengths: Lengths, console: Console) -> None:
    """Print the length distribution: figures and a histogram."""
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
