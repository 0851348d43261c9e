"""Every table of a report as plain data: its columns, what they mean, and its rows. Terminal and page render it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from packtool.planning.metrics.ledger import Ledger
from packtool.planning.metrics.mixing import PairDistances, StoreShare
from packtool.planning.metrics.ratios import ratio
from packtool.planning.metrics.summary import Metrics
from packtool.report.choice_words import reason_in_words
from packtool.report.figures import UNKNOWN, count, number, percent, short, times, times_random
from packtool.report.types import (
    BucketFigures,
    Comparison,
    ListedDocument,
    MeasuredReport,
    PackedReport,
    PackedSourceFigures,
    SourceFigures,
    StoredSourceFigures,
    StoreReport,
    Trial,
)
from packtool.report.verdict import by_length, cuts_too_much, degenerate, keeps_text, pads_too_much
from packtool.support.sizes import plural

Item = TypeVar("Item")


@dataclass(frozen=True)
class TableColumn(Generic[Item]):
    """A column."""

    title: str  # the heading
    of: Callable[[Item], Any]  # what a row has in it: a number, words, or None where it is not known
    write: Callable[[Any], str] = str  # writes that as text; what is not known is a dash
    meaning: str = ""  # for a legend or tooltip; empty where the title says it
    better: int = 0  # -1 where less is better, 1 where more is, 0 where neither
    bad: Callable[[Item], bool] = lambda row: False  # whether what a row has is a reason not to take it
    rival: Callable[[Item], bool] = lambda row: True  # whether a row of the contest competes for the best figure
    words: bool = False  # whether it has words, not figures, and is aligned to the left
    short: str = ""  # the title where room is scarce; empty for the title itself
    brief: bool = True  # whether a terminal shows it without `--full`


@dataclass(frozen=True)
class Cell:
    """The entry of one row in one column."""

    text: str  # the text that is shown
    value: float | None  # to sort by; None to sort by the text
    best: bool  # whether it is marked as the best
    bad: bool = False  # whether it is marked as a reason not to take the row


@dataclass(frozen=True)
class Table(Generic[Item]):
    """A table."""

    title: str  # heading; empty for a table without one
    columns: Sequence[TableColumn[Item]]  # columns from left to right; the first names the rows
    groups: Sequence[tuple[str, Sequence[Item]]]  # rows under headings of their own; without headings, one group
    contest: Callable[[Item], bool] = lambda row: False  # whether rows of a group compete for a column's best figure
    notes: Sequence[str] = ()  # what else a reader should know
    facts: bool = False  # rows are facts, each with its own meaning: name, value, meaning

    @property
    def headed(self) -> bool:
        """Whether its groups have headings."""
        return any(heading for heading, _ in self.groups)

    def cells(self, columns: Sequence[TableColumn[Item]]) -> Iterator[tuple[str, list[list[Cell]]]]:
        """Yield the headings of the groups with the cells of their rows.

        >>> table = Table("", [TableColumn("n", len), TableColumn("word", str, words=True)], [("", ["a", "bb"])])
        >>> [[cell.text for cell in row] for _, rows in table.cells(table.columns) for row in rows]
        [['1', 'a'], ['2', 'bb']]
        """
        for heading, rows in self.groups:
            rivals = list(filter(self.contest, rows))
            best = [_best(column, rivals) for column in columns]
            cells = []
            for row in rows:
                to_mark = best if self.contest(row) else [None] * len(columns)
                cells.append([_cell(column, row, mark) for column, mark in zip(columns, to_mark, strict=True)])
            yield heading, cells


def table_of(title: str, columns: Sequence[TableColumn[Item]], rows: Sequence[Item], *notes: str) -> Table[Item]:
    """Make a table of one group without a heading."""
    return Table(title, columns, [("", rows)], notes=notes)


def _best(column: TableColumn[Item], rivals: Sequence[Item]) -> float | None:
    """Find the best figure of a column; None where figures are not better or worse, or all are equal."""
    known = [value for value in map(column.of, filter(column.rival, rivals)) if value is not None]
    if not column.better or not known or min(known) == max(known):
        return None
    best = max if column.better > 0 else min
    return float(best(known))


def _cell(column: TableColumn[Item], row: Item, best: float | None) -> Cell:
    value = column.of(row)
    if value is None:
        return Cell(UNKNOWN, None, False, column.bad(row))
    figure = value if isinstance(value, int | float) else None
    is_best = best is not None and value == best and column.rival(row)
    return Cell(column.write(value), figure, is_best, column.bad(row))


def _metric(
    key: str, title: str, write: Callable[[Any], str], meaning: str, better: int = 0, short: str = ""
) -> tuple[str, TableColumn[Metrics]]:
    return key, TableColumn(title, attrgetter(key), write, meaning, better, short=short)


_CUT = "documents that would fit in a row (of several lengths, the longest) but are cut / all that would fit"
_ALL_CUT = "documents that are cut, those longer than a row too / documents"
_CONTEXT = "tokens of its own document that a token has before it in its row, on average"
_BETWEEN = (
    "share of the variance of log length of segments that lies between rows; 100% where each row holds one length"
)
_EQUAL = "rows of more than two segments in which all lengths, or all but one, are equal / such rows"
_ABOVE = "rows above the fewest that the same tokens fill: the sum over row lengths of ceil((output - padding) / L)"
FIGURES = dict(
    [
        _metric("padding_ratio", "padding", percent, "padding / tokens in rows", -1),
        _metric("cut_fitting_ratio", "cut that would fit", percent, _CUT, -1, "cut that fit"),
        _metric("dropped_ratio", "dropped", percent, "tokens of the text in no row / tokens of the text", -1),
        _metric("repeated_ratio", "repeated", percent, "tokens that an earlier row has too / tokens in rows"),
        _metric("cut_of_all_ratio", "cut, of all", percent, _ALL_CUT, -1),
        _metric("concatenation_ratio", "concatenation", number, "documents / rows", -1, "docs"),
        _metric("mean_context", "context", number, _CONTEXT, 1),
        _metric("homogeneity.between_rows", "between rows", percent, _BETWEEN, -1),
        _metric("homogeneity.random_rows", "at random", percent, "the same if segments were put into rows at random"),
        _metric("homogeneity.equal_but_one", "equal but one", percent, _EQUAL, -1),
        _metric("rows", "rows", count, "training samples"),
        _metric("row_excess", "above bound", percent, _ABOVE, -1),
        _metric("steps_per_epoch", "steps", count, "batches in an epoch; the last may be smaller", -1),
    ]
)
"""The figures of a packing, by their names among the metrics; a dot leads into a part of them. See docs/glossary.md."""


_STAGES = {
    "overlapping": "of long documents, which begin with tokens of the row before",
    "whole": "of long documents, one after the other",
    "bins": "of short documents and of what is left of long ones",
    "joined": "of bins below a row, joined and cut",
    "filled": "as they are without --max-documents-per-row",
    "added": "of the shortest documents of rows that would hold more: what the limit costs",
}
"""The steps that make rows, by their names in reports."""
MARKS = "* the best of its column   ! cuts more than half, or pads more than a quarter"
"""What the marks of strategies mean in a terminal."""
ALIKE = "variance of log length between rows, times that of random rows; 1 is as mixed as random"


class Account(NamedTuple):
    """A line of the ledger: an amount, or a part of the amount above it."""

    name: str
    tokens: int
    whole: int | None  # the amount that it is a part of; None of what is an amount itself
    note: str = ""

    @property
    def share(self) -> str:
        """The part in words; empty for an amount, which is all of itself."""
        if self.whole is None:
            return ""
        return percent(ratio(self.tokens, self.whole))


class Fact(NamedTuple):
    """A figure with its name and meaning."""

    name: str
    value: str
    meaning: str = ""


class LeftOutLine(NamedTuple):
    """What was left out of a store for one reason."""

    store: str
    reason: str
    documents: int
    tokens: int


class StoreShareLine(NamedTuple):
    """How evenly batches of rows of one length hold a store."""

    store: str
    sequence_length: int
    mix: StoreShare


def _rounding(ledger: Ledger) -> str:
    """Say how much of the padding rounds documents up to a multiple."""
    if not ledger.rounding:
        return ""
    return f"{count(ledger.rounding)} round documents up"


def _beyond(tokens: int | msgspec.UnsetType) -> str:
    """Say how much of what was dropped is left out of long documents on request."""
    if not tokens:
        return ""
    return f"{count(tokens)} after the first tokens of long documents"


def ledger_table(ledger: Ledger, beyond: int | msgspec.UnsetType = msgspec.UNSET) -> Table[Account]:
    """Tabulate where every token went.

    Args:
        beyond: text tokens that were left out of long documents, where that was asked for.
    """
    stored, text, output = ledger.stored, ledger.input, ledger.output
    changes = {"inserted": ledger.eos_inserted, "left out": ledger.eos_omitted}
    eos = ", ".join(f"{count(tokens)} {what}" for what, tokens in changes.items() if tokens)
    groups = []
    if ledger.left_out or ledger.packed_again:
        accounts = [
            Account("text of the stores", stored, None),
            Account("  left out", ledger.left_out, stored),
            Account("  packed again", ledger.packed_again, stored, "in further epochs"),
        ]
        groups.append([account for account in accounts if account.tokens])
    groups.append(
        [
            Account("input text", text, None),
            Account("  placed", ledger.placed, text, "in rows"),
            Account("  dropped", ledger.dropped, text, _beyond(beyond)),
        ]
    )
    if ledger.untrained:
        why = "pieces of cut conversations in which nothing trains"
        groups[-1].append(Account("  untrained", ledger.untrained, text, why))
    accounts = [
        Account("output", output, None, plural(ledger.rows, "row")),
        Account("  placed", ledger.placed, output, "text"),
        Account("  repeated", ledger.repeated, output, "text that an earlier row has, too"),
        Account("  EOS", ledger.eos, output, eos),
        Account("  padding", ledger.padding, output, _rounding(ledger)),
    ]
    if not ledger.repeated:
        del accounts[2]
    groups.append(accounts)
    if ledger.trained_stored is not None:
        to_train = sum(ledger.trained_stored)
        groups.append(
            [
                Account("trained on", ledger.trained or 0, output),
                Account("masked, not padding", ledger.masked or 0, output),
                Account("would train, in no row", ledger.trained_dropped or 0, to_train, "text and EOS"),
            ]
        )
    columns: list[TableColumn[Account]] = [
        TableColumn("tokens", lambda line: line.name, words=True),
        TableColumn("", lambda line: line.tokens, count),
        TableColumn("share", lambda line: line.share),
        TableColumn("", lambda line: line.note, words=True),
    ]
    return Table("", columns, [("", group) for group in groups])


def metrics_table(metrics: Metrics, report: PackedReport) -> Table[Fact]:
    """Tabulate every metric with its meaning, and what else the report says of its rows."""
    facts = []
    for figure in FIGURES.values():
        value = figure.of(metrics)
        if value is not None:
            facts.append(Fact(figure.title, figure.write(value), figure.meaning))
    docs = metrics.documents_per_row
    spread = f"distinct documents in a row, mean; p50 {docs.p50}, p99 {docs.p99}, max {docs.max}"
    facts.append(Fact("documents per row", number(docs.mean), spread))
    if metrics.overlapping_documents:
        facts.append(Fact("overlapping", count(metrics.overlapping_documents), "documents with tokens in two rows"))
    if report.rows_without_target is not msgspec.UNSET:
        facts.append(
            Fact("rows without a target", count(report.rows_without_target), "rows of whose tokens none trains")
        )
    if report.sliding is not None:
        slid = report.sliding
        texts, tokens = count(slid.predicted_texts), count(slid.predicted_tokens)
        meaning = f"long texts in overlapping rows; equation 6 predicts {texts}"
        facts.append(Fact("texts that slide", count(slid.texts), meaning))
        facts.append(Fact("tokens left", count(slid.tokens), f"of other long texts; equation 7 predicts {tokens}"))
    for name, rows in (report.stages or {}).items():
        facts.append(Fact(f"{name} rows", count(rows), _STAGES[name]))
    masked = percent(ratio(metrics.attention_masked, metrics.attention_full))
    meaning = "query-key pairs if a token sees only its own document, of those of causal rows"
    facts.append(Fact("masked attention", masked, meaning))
    columns: list[TableColumn[Fact]] = [
        TableColumn("metric", lambda fact: fact.name, words=True),
        TableColumn("", lambda fact: fact.value),
        TableColumn("meaning", lambda fact: fact.meaning, words=True),
    ]
    return Table("Metrics", columns, [("", facts)], facts=True)


def buckets_table(buckets: Sequence[BucketFigures], title: str = "Row lengths") -> Table[BucketFigures]:
    """Tabulate rows and tokens of each row length."""
    columns: list[TableColumn[BucketFigures]] = [
        TableColumn("row length", lambda b: b.sequence_length, count, "tokens in a row"),
        TableColumn("rows", lambda b: b.rows, count),
        TableColumn("of rows", lambda b: b.row_share, percent),
        TableColumn("of tokens", lambda b: b.token_share, percent),
        TableColumn("padding", lambda b: b.padding_ratio, percent),
        TableColumn("docs/row", lambda b: b.mean_documents_per_row, number, "distinct documents in a row, mean"),
        TableColumn("context", lambda b: b.mean_context, number, "tokens of its own document before a token, mean"),
        TableColumn("alike", lambda b: times_random(b.homogeneity), times, ALIKE),
    ]
    return table_of(title, columns, buckets)


def mixing_table(mixing: Sequence[PairDistances]) -> Table[PairDistances]:
    """Tabulate how well mixed the rows are."""
    columns: list[TableColumn[PairDistances]] = [
        TableColumn("row length", lambda m: m.sequence_length, count),
        TableColumn("apart", lambda m: m.median_distance, short, "rows between neighbours, median"),
        TableColumn("mean", lambda m: m.mean_distance, short, "rows between neighbours, mean"),
        TableColumn("random", lambda m: m.expected_distance, short, "the same if rows were at random: a third of them"),
        TableColumn("in row", lambda m: m.same_row, percent, "neighbours that begin in one row"),
        TableColumn("in batch", lambda m: m.same_batch, percent, "neighbours that begin in one batch"),
        TableColumn("batch", lambda m: m.batch_size, short, "rows in a batch"),
        TableColumn("docs", lambda m: m.documents.mean, number, "distinct documents in a batch, mean"),
        TableColumn("sources", lambda m: m.sources.mean, number, "distinct input stores in a batch, mean"),
    ]
    note = (
        "Neighbours are documents that follow each other in the corpus; distances are of those that do not begin in "
        "one row."
    )
    return table_of("Mixing", columns, mixing, note)


def source_tables(report: MeasuredReport) -> list[Table[Any]]:
    """Tabulate the stores that were packed: their planned and actual shares, and how evenly batches mix them."""
    if not report.sources:
        return []
    tables: list[Table[Any]] = [_packed_table(report)]
    left_out = list(_left_out(report))
    if left_out:
        columns: list[TableColumn[LeftOutLine]] = [
            TableColumn("store", lambda line: line.store, words=True),
            TableColumn("left out", lambda line: line.reason, words=True),
            TableColumn("documents", lambda line: line.documents, count),
            TableColumn("tokens", lambda line: line.tokens, count),
        ]
        tables.append(table_of("Left out", columns, left_out))
    if report.mixing and len(report.sources) > 1:
        tables.append(_batches_table(report))
    return tables


def _left_out(report: MeasuredReport) -> Iterator[LeftOutLine]:
    """Yield what was left out of each store, by reason; nothing can be where each document was taken once."""
    for source in report.sources:
        for reason, removed in source.left_out.items():
            words = reason_in_words(reason, report.choice or {})
            yield LeftOutLine(source_name(source), words, removed.documents, removed.tokens)


def source_name(source: SourceFigures) -> str:
    """Return the recorded name of a store, else the beginning of its hash."""
    return source.name or source.digest[:12]


def _trained_columns(sources: Sequence[SourceFigures]) -> list[TableColumn[Any]]:
    """Make the column of the trained share of each input where it is known."""
    if any(source.trained_tokens is None for source in sources):
        return []
    return [
        TableColumn("trained", lambda source: ratio(source.trained_tokens, source.tokens), percent, "of its tokens")
    ]


def stores_table(sources: Sequence[StoredSourceFigures]) -> Table[StoredSourceFigures]:
    """Tabulate the stores that are measured."""
    columns: list[TableColumn[StoredSourceFigures]] = [
        TableColumn("store", source_name, words=True),
        TableColumn("documents", lambda s: s.documents, short),
        TableColumn("tokens", lambda s: s.tokens, short),
        TableColumn("share", lambda s: s.token_share, percent, "of all tokens"),
        *_trained_columns(sources),
        TableColumn("mean", lambda s: s.lengths.mean, number, "length of a document in tokens"),
        TableColumn("median", lambda s: s.lengths.p50, short),
        TableColumn("p99", lambda s: s.lengths.p99, short),
        TableColumn("longest", lambda s: s.lengths.max, short),
        TableColumn("copies", lambda s: s.duplicates, short, "documents whose text an earlier one has; – is not known"),
        TableColumn("xxh3-128", lambda s: s.digest, words=True, meaning="of the store's manifest", brief=False),
    ]
    return table_of("Inputs", columns, sources)


def document_tables(report: StoreReport) -> list[Table[Any]]:
    """Tabulate the documents that a report lists: the longest ones, and the most frequent texts."""
    listed: list[Table[Any]] = []
    columns: list[TableColumn[Any]] = [
        TableColumn("store", lambda d: d.store, words=True),
        TableColumn("document", lambda d: d.document),
        TableColumn("from", lambda d: d.origin, meaning="input file and line", words=True),
        TableColumn("tokens", lambda d: d.tokens, count, "EOS included"),
    ]
    named: list[ListedDocument] = [*(report.longest or ()), *(report.most_repeated or ())]
    if any(document.id is not None for document in named):
        columns.append(TableColumn("id", lambda d: d.id, words=True))
    if report.longest is not None:
        listed.append(table_of("Longest documents", columns, report.longest))
    if report.most_repeated is not None:
        times: TableColumn[Any] = TableColumn(
            "documents", lambda d: d.documents, count, "that have the same text; the first is named"
        )
        listed.append(table_of("Most repeated texts", [columns[0], times, *columns[1:]], report.most_repeated))
    return listed


def _packed_table(report: MeasuredReport) -> Table[PackedSourceFigures]:
    columns: list[TableColumn[PackedSourceFigures]] = [
        TableColumn("store", source_name, words=True),
        TableColumn("tokens", lambda s: s.tokens, short, "packed, EOS included"),
        TableColumn("share", lambda s: s.token_share, percent, "of all tokens packed"),
        *_trained_columns(report.sources),
    ]
    if "mix" in (report.choice or {}):
        columns += [
            TableColumn("asked", lambda s: s.asked_share, percent, "the share that it was to have"),
            TableColumn("epochs", lambda s: s.epochs, number, "tokens packed / tokens left to draw from"),
            TableColumn("asked", lambda s: s.asked_epochs, number, "how often it was to be packed"),
            TableColumn("packed again", lambda s: s.repeated_tokens, short, "tokens packed in further epochs"),
        ]
    columns += [
        TableColumn("documents", lambda s: s.documents, count, brief=False),
        TableColumn("xxh3-128", lambda s: s.digest, words=True, meaning="of the store's manifest", brief=False),
    ]
    return table_of("Inputs", columns, report.sources)


def _batches_table(report: MeasuredReport) -> Table[StoreShareLine]:
    rows = []
    for mixed in report.mixing:
        for source, mix in zip(report.sources, mixed.source_mix, strict=True):
            rows.append(StoreShareLine(source_name(source), mixed.sequence_length, mix))
    columns: list[TableColumn[StoreShareLine]] = [
        TableColumn("store", lambda line: line.store, words=True),
        TableColumn("row length", lambda line: line.sequence_length, count),
        TableColumn("tokens", lambda line: line.mix.tokens, short),
        TableColumn("share", lambda line: line.mix.share, percent, "of the tokens of all rows, padding not counted"),
        TableColumn("least", lambda line: line.mix.min, percent, "share in a whole batch"),
        TableColumn("most", lambda line: line.mix.max, percent, "share in a whole batch"),
        TableColumn(
            "deviation", lambda line: line.mix.deviation, percent, "standard deviation of the share over batches"
        ),
    ]
    return table_of("Sources in batches", columns, rows)


def strategies_table(comparison: Comparison) -> Table[Trial]:
    """Tabulate what strategies do to documents, by row length."""
    columns: list[TableColumn[Trial]] = [
        TableColumn("strategy", lambda entry: entry.strategy, words=True),
        replace(_trial_figure("padding_ratio"), bad=pads_too_much, rival=keeps_text),
        replace(_trial_figure("cut_fitting_ratio"), bad=cuts_too_much),
        *map(_trial_figure, ("dropped_ratio", "repeated_ratio", "mean_context")),
        TableColumn("rows", lambda entry: entry.metrics.rows, short, "training samples"),
    ]
    if comparison.entries[0].metrics.steps_per_epoch is not None:  # a batch size was given
        columns.append(_trial_figure("steps_per_epoch"))
    marked = (
        "Strategies that cut more than half of the documents that fit a row, or pad more than a quarter, are not "
        "recommended."
    )
    return Table(
        "Strategies",
        columns,
        _headed(comparison.entries),
        contest=lambda entry: not degenerate(entry),
        notes=[marked, *caveats(comparison)],
    )


def rest_table(comparison: Comparison) -> Table[Trial]:
    """Tabulate the other figures of strategies: how alike what shares a row is, and what attention to it costs."""
    base = count(comparison.attention_baseline)
    relative = f"pairs of tokens in rows, relative to the corpus as one stream in rows of {base} tokens"
    alike = ("homogeneity.between_rows", "homogeneity.random_rows", "homogeneity.equal_but_one")
    columns: list[TableColumn[Trial]] = [
        TableColumn("strategy", lambda entry: entry.strategy, words=True),
        TableColumn("alike", lambda entry: times_random(entry.metrics.homogeneity), times, ALIKE, better=-1),
        *map(_trial_figure, ("cut_of_all_ratio", "concatenation_ratio", *alike, "row_excess")),
        TableColumn("attention", lambda entry: entry.attention, number, relative),
        TableColumn("masked", lambda entry: entry.attention_masked, number, "the same within documents alone"),
    ]
    return Table("Other figures of the strategies", columns, _headed(comparison.entries))


def _trial_figure(key: str) -> TableColumn[Any]:
    """Make the column of a figure of trials."""
    return replace(FIGURES[key], of=attrgetter(f"metrics.{key}"))


def bucket_tables(entries: Sequence[Trial]) -> list[Table[BucketFigures]]:
    """Tabulate rows and tokens by row length, for strategies of several."""
    tables = []
    for entry in entries:
        if len(entry.buckets) > 1:
            title = entry.strategy
            if entry.sequence_length is not None:
                title += f" (L = {count(entry.sequence_length)})"
            tables.append(buckets_table(entry.buckets, f"{title} by row length"))
    return tables


def name_of(length: int | None) -> str:
    """Return the heading of a row length."""
    if length is None:
        return "Rows of several lengths"
    return f"Rows of {count(length)} tokens"


def caveats(comparison: Comparison) -> list[str]:
    """Say that figures are of a sample, and which conversations they leave out."""
    lines = []
    if comparison.sampled_documents is not None:
        lines.append(
            f"Planned on a sample of {count(comparison.sampled_documents)} documents, spread evenly over all: shares "
            "hold for all of them, rows and tokens are those of the sample. --exact plans all."
        )
    dropped = {e.sequence_length: e.dropped_conversations for e in comparison.entries if e.dropped_conversations}
    lines += [
        f"{plural(number, 'conversation')} longer than a row of {count(size or 0)} tokens: left out here, as with pack "
        "--too-long drop. --too-long cut keeps them, in pieces."
        for size, number in dropped.items()
    ]
    return lines


def _headed(trials: Sequence[Trial]) -> list[tuple[str, list[Trial]]]:
    return [(name_of(row_length), group) for row_length, group in by_length(trials).items()]
