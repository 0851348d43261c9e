"""Print reports in a terminal of 80 columns or to a log file: the answer first, the rest with `--full`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import rich.table
from rich import box
from rich.bar import Bar
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.text import Text

from packtool.errors import visible
from packtool.formats.made_by import is_default
from packtool.report import tables
from packtool.report.blend_tables import largest, left_out, sources_table, stages_table, weight_bars
from packtool.report.blend_types import BlendReport, Report
from packtool.report.figures import count, number, order_in_words, short, texts_left_out
from packtool.report.tables import Cell, Table, TableColumn
from packtool.report.types import (
    Advice,
    ChosenStrategy,
    Comparison,
    Lengths,
    MeasuredReport,
    PackedReport,
    StoreReport,
    Verdict,
)
from packtool.report.verdict import judge, with_leads
from packtool.support.decoding import from_plain
from packtool.support.sizes import plural, show_bytes

AnyReport = TypeVar("AnyReport", bound=Report)
_WIDTH = 80
_WORDS = 30  # columns that a column of words has at least; what is longer is wrapped
_BAR_WIDTH = 30
_LINES = 14  # of a histogram, at most


def print_stats(report: Report, console: Console, *, full: bool = False, page: Path | str | None = None) -> None:
    """Print whatever `packtool.stats` reports: the answer, and the tables behind it.

    Args:
        full: everything that was measured.
        page: where its page was written, if it was.
    """
    report = _visible(report)
    if isinstance(report, BlendReport):
        _print_blend(report, console, full=full)
    elif isinstance(report, MeasuredReport):
        _print_packed(report, console, full=full)
    else:
        _print_documents(report, console, full=full)
    if page is not None:
        _print_written(page, console)
    elif not full:
        console.print("All figures: --full; charts: --html FILE; terms: the page Glossary.", highlight=False)


def print_answer(report: Report, console: Console, page: Path | str | None = None) -> None:
    """Print the answer alone: the verdict, whether a packed dataset is good, or what documents or sources there are."""
    report = _visible(report)
    if isinstance(report, BlendReport):
        _print_blend(report, console, full=False)
    elif isinstance(report, MeasuredReport):
        _print_headline(report, console)
        print_judgements(report, console)
    else:
        if report.comparison is None:
            console.print(_summary(report))
        else:
            for verdict in report.comparison.verdicts:
                _print_verdict(verdict, console)
        _print_listed(report, console)
    if page is not None:
        _print_written(page, console)


def _visible(report: AnyReport) -> AnyReport:
    """Return a report whose texts can't command a terminal: names of files and sources are whatever somebody chose."""
    return from_plain(_escaped(msgspec.to_builtins(report)), type(report))


def _escaped(value: Any) -> Any:
    """Escape every text in plain data."""
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, list):
        return list(map(_escaped, value))
    if isinstance(value, dict):
        return {_escaped(name): _escaped(item) for name, item in value.items()}
    return value


def _print_written(page: Path | str, console: Console) -> None:
    console.print(f"Wrote {visible(str(page))}.", highlight=False, markup=False, soft_wrap=True)


def print_ledger(report: PackedReport, console: Console) -> None:
    """Print a summary of a packed dataset, and where every token went."""
    _print_headline(report, console)
    console.print()
    print_table(tables.ledger_table(report.ledger, report.beyond), console)


def _print_headline(report: PackedReport, console: Console) -> None:
    """Print strategy, row lengths and order. Slashes separate the lengths, whose digits have commas."""
    rows = ""
    if report.buckets:
        lengths = " / ".join(count(bucket.sequence_length) for bucket in report.buckets)
        rows = f"rows of {lengths} tokens · "
    order = order_in_words(report.shuffle, report.options.get("order_by", ()))
    console.print(Text.assemble((report.strategy, "bold"), f" · {rows}{order}"))


def _print_blend(report: BlendReport, console: Console, *, full: bool) -> None:
    summary = (
        f"{count(report.samples)} {report.unit} of {count(report.sample_tokens)} tokens, {count(report.tokens)} in all"
    )
    console.print(Text.assemble((report.path, "bold"), f" · {summary}"))
    if report.left_out:
        console.print(left_out(report))
    if not full:
        report = largest(report)
    print_table(sources_table(report), console, full=full)
    print_table(stages_table(report), console, full=full)
    console.print(_heading("Shares over the run"))
    grid = rich.table.Table.grid(padding=(0, 1))
    for name, drawn in weight_bars(report):
        grid.add_row(Text(name), Text(f"│{drawn}│", "cyan"))
    console.print(grid)


def _print_packed(report: MeasuredReport, console: Console, *, full: bool) -> None:
    print_ledger(report, console)
    console.print()
    if report.metrics is None or report.lengths is None:
        console.print("Document boundaries are not known (--no-segments), so there are no metrics.")
        _print_made(report, console)
        return
    print_judgements(report, console)
    _print_made(report, console)
    if full:
        print_table(tables.metrics_table(report.metrics, report), console, full=True)
        if len(report.buckets) > 1:
            print_table(tables.buckets_table(report.buckets), console, full=True)
        _print_lengths(report.lengths, console)
        console.print(_heading("Documents per row"))
        console.print(bars([(b.first, b.last, b.rows) for b in report.documents_per_row], "row"))
        print_table(tables.mixing_table(report.mixing), console, full=True)
    if full or len(report.sources) > 1:
        for table in tables.source_tables(report):
            print_table(table, console, full=full)


def _print_made(report: MeasuredReport, console: Console) -> None:
    """Print the command that makes the dataset again, on one line, to be copied."""
    if report.command is not None:
        console.print(Text(f"made by: {report.command}"), soft_wrap=True)


def _print_documents(report: StoreReport, console: Console, *, full: bool) -> None:
    comparison = report.comparison
    if comparison is not None:
        for verdict in comparison.verdicts:
            _print_verdict(verdict, console, full=full)
            console.print()
    console.print(_summary(report))
    if comparison is not None and not full:
        for note in tables.caveats(comparison):
            console.print(Text(note))
    if comparison is None or full:
        _print_lengths(report.lengths, console)
        if full or len(report.sources) > 1:
            print_table(tables.stores_table(report.sources), console, full=full)
    _print_listed(report, console, full=full)
    if comparison is not None:
        for table in _comparison_tables(comparison, full=full):
            print_table(table, console, full=full)
        console.print(Text(tables.MARKS, "dim"))
        if full and comparison.advice:
            _print_advice(comparison.advice, console)


def _print_listed(report: StoreReport, console: Console, *, full: bool = False) -> None:
    """Print the documents that a report lists."""
    for table in tables.document_tables(report):
        print_table(table, console, full=full)
    if report.most_repeated == []:
        console.print("No two documents have the same text.")


def _print_advice(advice: Sequence[Advice], console: Console) -> None:
    console.print(_heading("Advice"))
    for item in advice:
        console.print(Text(f"• {item.advice}"))
        console.print(Padding(Text(item.reason), (0, 0, 0, 2)))
        console.print(Padding(Text(f"{item.source}. {item.untested}", "dim"), (0, 0, 0, 2)))


def _comparison_tables(comparison: Comparison, *, full: bool) -> Iterator[Table[Any]]:
    strategies = tables.strategies_table(comparison)
    if not full:  # only what the verdicts chose from: strategies of one row length, if there are any
        one_length = [group for group in strategies.groups if group[1][0].sequence_length is not None]
        yield replace(strategies, groups=one_length or strategies.groups)
        return
    yield strategies
    yield tables.rest_table(comparison)
    yield from tables.bucket_tables(comparison.entries)


def _print_verdict(verdict: Verdict, console: Console, *, full: bool = False) -> None:
    title = f"Verdict for {tables.name_of(verdict.sequence_length).lower()}: "
    console.print(Text.assemble((title, "bold"), (verdict.choice.strategy, "bold green")))
    _print_choice(verdict.choice, console, full=full)
    for lead, other in with_leads(verdict.alternatives):
        _print_choice(other, console, lead=f"{lead} {other.strategy}, ", full=full)
        if not full:
            return
    if full:
        console.print(Text(verdict.limits, "dim"))


def print_judgements(report: PackedReport, console: Console, indent: int = 0) -> None:
    """Print what the figures of a packed dataset mean: what is wasted, which documents are cut, how rows are mixed."""
    for judgement in judge(report):
        mark = Text("!", "bold yellow")
        if judgement.good:
            mark = Text("✓", "green")
        grid = rich.table.Table.grid(padding=(0, 1))
        grid.add_row(mark, Text(judgement.words))
        console.print(Padding(grid, (0, 0, 0, indent)))


def _print_choice(choice: ChosenStrategy, console: Console, lead: str = "", *, full: bool = False) -> None:
    console.print(Padding(Text(lead + choice.reason), (0, 0, 0, 2)))
    if full and choice.source is not None:
        console.print(Padding(Text(choice.source, "dim"), (0, 0, 0, 2)))
    # Never wrapped: it is there to be pasted.
    console.print(Text(f"    {choice.command}", "cyan"), soft_wrap=True)


def _summary(report: StoreReport) -> RenderableType:
    """Summarise the contents of stores or text files, and what was left out."""
    counts = report.counts
    figures = [plural(counts["documents"], "document"), plural(counts["tokens"], "token")]
    if is_default(report.tokenizer):
        figures[-1] += " of packtool's small tokenizer"
    left_out = texts_left_out(counts)
    if left_out:
        figures.append(left_out)
    took = ""
    if report.temporary_bytes is not None:
        took = f"; took {show_bytes(report.temporary_bytes)} of temporary room"
    return Text.assemble((report.path, "bold"), f" · {', '.join(figures)}{took}")


def _print_lengths(lengths: Lengths, console: Console) -> None:
    """Print the length distribution: figures and a histogram."""
    summary = f"{plural(lengths.documents, 'document')}, {plural(lengths.total, 'token')}"
    console.print(_heading("Document length in tokens", f"{summary}; mean {number(lengths.mean)}"))
    ranks = "  ".join(f"{name} {short(getattr(lengths, name))}" for name in ("min", "p10", "p50", "p90", "p99", "max"))
    console.print(Text(ranks, "dim"))
    console.print(bars([(b.first, b.last, b.documents) for b in lengths.histogram], "document"))


def print_table(table: Table[Any], console: Console, *, full: bool = False) -> None:
    """Print a table; columns beyond the terminal's width, or 80 characters, continue below.

    Args:
        full: all columns, with their meanings and notes; otherwise only the most important columns.
    """
    columns = [column for column in table.columns if full or column.brief]
    groups = [group for group in table.cells(columns) if group[1]]
    if not groups:
        return
    if table.headed:
        for heading, rows in groups:
            console.print(_heading(heading, table.title.lower()))
            _print_columns(columns, [rows], console)
    else:
        if table.title:
            console.print(_heading(table.title))
        _print_columns(columns, [rows for _, rows in groups], console)
    if full:
        _print_meanings(columns, console)
        for note in table.notes:
            console.print(Text(note, "dim"))


def _print_columns(columns: Sequence[TableColumn[Any]], sections: Sequence[list[list[Cell]]], console: Console) -> None:
    """Print the rows of some sections under their columns, as many columns at a time as fit."""
    rows = list(chain.from_iterable(sections))
    for below, shown in enumerate(_side_by_side(columns, rows, min(_WIDTH, console.width))):
        if below:
            console.print()
        console.print(_rich_table(columns, shown, sections))


def _print_meanings(columns: Sequence[TableColumn[Any]], console: Console) -> None:
    meanings = rich.table.Table.grid(padding=(0, 2))
    for column in columns:
        if column.meaning:
            meanings.add_row(Text(_title(column), "dim"), Text(column.meaning, "dim"))
    if meanings.row_count:
        console.print()
        console.print(meanings)


def _heading(text: str, note: str = "") -> RenderableType:
    """Make a heading with room above it."""
    return Padding(Text.assemble((text, "bold"), (note and f"  {note}", "dim")), (1, 0, 0, 0))


def bars(bins: Sequence[tuple[int, int, int]], unit: str) -> RenderableType:
    """Make a histogram of horizontal bars; join neighbouring bins if there are too many.

    Args:
        bins: first value, last value and count of each bin.
        unit: of the counts.
    """
    joined = []
    together = max(1, -(-len(bins) // _LINES))
    for start in range(0, len(bins), together):
        part = bins[start : start + together]
        joined.append((part[0][0], part[-1][1], sum(counted for _, _, counted in part)))
    most = max((counted for _, _, counted in joined), default=0)
    table = rich.table.Table.grid(padding=(0, 1))
    table.add_column(justify="right", no_wrap=True)
    table.add_column(no_wrap=True, width=_BAR_WIDTH)
    table.add_column(justify="right", no_wrap=True)
    for first, last, counted in joined:
        label = short(first)
        if last != first:
            label += f"–{short(last)}"
        length: float = counted
        if counted:  # anything above zero shows: an eighth of a character at least
            length = max(counted, most / 8 / _BAR_WIDTH)
        shown = Bar(most, 0, length, width=_BAR_WIDTH, color="cyan")
        table.add_row(label, shown, Text(f"{short(counted)} {unit if counted == 1 else f'{unit}s'}", "dim"))
    return table


def _side_by_side(
    columns: Sequence[TableColumn[Any]], rows: Sequence[Sequence[Cell]], width: int
) -> Iterator[list[int]]:
    """Yield the numbers of columns that fit side by side into a width; the first is repeated."""
    widths = [_width(column, cells) for column, cells in zip(columns, zip(*rows, strict=True), strict=True)]
    shown = [0]
    for place in range(1, len(columns)):
        if sum(widths[i] + 2 for i in [*shown, place]) - 1 > width and len(shown) > 1:
            yield shown
            shown = [0]
        shown.append(place)
    yield shown


def _width(column: TableColumn[Any], cells: Sequence[Cell]) -> int:
    widest = max(len(cell.text) for cell in cells)
    if column.words:  # the rest is wrapped
        widest = min(_WORDS, widest)
    return max(len(_title(column)), widest)


def _title(column: TableColumn[Any]) -> str:
    return column.short or column.title


def _rich_table(
    columns: Sequence[TableColumn[Any]], shown: Sequence[int], sections: Iterable[Sequence[Sequence[Cell]]]
) -> rich.table.Table:
    """Make a table of the columns with these numbers."""
    table = rich.table.Table(
        box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold"
    )
    for place in shown:
        column = columns[place]
        style = "dim" if column.words and place else ""
        table.add_column(_title(column), justify="left" if column.words else "right", overflow="fold", style=style)
    for rows in sections:
        for row in rows:
            table.add_row(*(_text(row[place]) for place in shown))
        table.add_section()
    return table


def _text(cell: Cell) -> Text:
    marked = "*" * cell.best + "!" * cell.bad + cell.text
    if cell.best:
        return Text(marked, "bold")
    return Text(marked, "yellow" if cell.bad else "")
