"""The tables of a packed dataset, and of documents that are not packed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from msgspec import UnsetType

from packtool.metrics.ledger import Ledger
from packtool.metrics.mixing import Mixed, SourceMix
from packtool.metrics.ratios import ratio
from packtool.metrics.summary import TrainingCost
from packtool.report.figures import ALIKE, FIGURES, count, number, percent, short, times, times_random
from packtool.report.schema import (
    BucketFigures,
    Lengths,
    MeasuredReport,
    PackedReport,
    PackedSourceFigures,
    Report,
    SourceFigures,
    StoredSourceFigures,
    StoreReport,
)
from packtool.report.table import Column, Table, table_of
from packtool.shuffling.balance import Waiting
from packtool.sizes import plural

_BUCKETS: tuple[Column[BucketFigures], ...] = (
    Column("row length", lambda b: b.sequence_length, count, "tokens in a row"),
    Column("rows", lambda b: b.rows, count),
    Column("of rows", lambda b: b.row_share, percent),
    Column("of tokens", lambda b: b.token_share, percent),
    Column("padding", lambda b: b.padding_ratio, percent),
    Column("docs/row", lambda b: b.mean_documents_per_row, number, "distinct documents in a row, mean"),
    Column("context", lambda b: b.mean_context, number, "tokens of its own document before a token, mean"),
    Column("alike", lambda b: times_random(b.homogeneity), times, ALIKE),
)


class Account(NamedTuple):
    """A line of the ledger."""

    name: str
    tokens: int
    whole: int
    note: str = ""


class Fact(NamedTuple):
    """A figure with its name and meaning."""

    name: str
    value: str
    meaning: str = ""


def headline(report: PackedReport) -> tuple[str, str]:
    """Write strategy, row lengths and order. Slashes separate the lengths, whose digits have commas."""
    lengths = " / ".join(count(bucket.sequence_length) for bucket in report.buckets)
    order, shuffle = "corpus order", report.shuffle
    if shuffle is not None:
        atom = f" (A = {count(shuffle.atom_size)})" if shuffle.atom_size else ""
        epoch = f", epoch {shuffle.epoch}" if shuffle.epoch else ""
        order = f"{shuffle.method} shuffle{atom}, seed {shuffle.seed}{epoch}"
    return report.strategy, f"rows of {lengths} tokens · {order}" if lengths else order


def ledger_table(ledger: Ledger) -> Table[Account]:
    """Tabulate where every token went."""
    stored, text, output = ledger.stored, ledger.input, ledger.output
    changes = {"inserted": ledger.eos_inserted, "left out": ledger.eos_omitted}
    eos = ", ".join(f"{count(tokens)} {what}" for what, tokens in changes.items() if tokens)
    groups = [
        [
            Account("input text", text, text),
            Account("  placed", ledger.placed, text),
            Account("  dropped", ledger.dropped, text),
        ],
        [
            Account("output", output, output, plural(ledger.rows, "row")),
            Account("  text, once", ledger.placed, output),
            Account("  text, repeated", ledger.repeated, output),
            Account("  EOS", ledger.eos, output, eos),
            Account("  padding", ledger.padding, output),
        ],
    ]
    if not isinstance(ledger.trained_stored, UnsetType):
        stored_trained = sum(ledger.trained_stored)
        groups += [
            [
                Account("trained on", ledger.trained or 0, output),
                Account("masked, not padding", ledger.masked or 0, output),
                Account("to be trained on, dropped", ledger.trained_dropped or 0, stored_trained),
            ]
        ]
    if ledger.left_out or ledger.packed_again:
        chosen = {"left out": ledger.left_out, "packed again": ledger.packed_again}
        lines = [Account(f"  {name}", tokens, stored) for name, tokens in chosen.items()]
        groups.insert(0, [Account("text of the stores", stored, stored), *lines])
    columns: list[Column[Account]] = [
        Column("tokens", lambda line: line.name, words=True),
        Column("", lambda line: line.tokens, count),
        Column("share", lambda line: line.tokens / line.whole if line.whole else 0.0, percent),
        Column("", lambda line: line.note, words=True),
    ]
    return Table("", columns, [("", group) for group in groups])


def metrics_table(report: PackedReport) -> Table[Fact]:
    """Tabulate every metric with its meaning; empty if boundaries are not known."""
    metrics, slid = report.metrics, report.sliding
    if metrics is None:
        return facts_table("Metrics", [])
    facts = [Fact(f.title, f.write(f.of(metrics)), f.meaning) for f in FIGURES.values() if f.of(metrics) is not None]
    docs, full = metrics.documents_per_row, metrics.attention_full
    spread = f"distinct documents in a row, mean; p50 {docs.p50}, p99 {docs.p99}, max {docs.max}"
    facts.append(Fact("documents per row", number(docs.mean), spread))
    if metrics.overlapping_documents:
        facts.append(Fact("overlapping", count(metrics.overlapping_documents), "documents with tokens in two rows"))
    if slid is not None:
        texts, tokens = count(slid.predicted_texts), count(slid.predicted_tokens)
        meaning = f"long texts in overlapping rows; equation 6 predicts {texts}"
        facts.append(Fact("texts that slide", count(slid.texts), meaning))
        facts.append(Fact("tokens left", count(slid.tokens), f"of other long texts; equation 7 predicts {tokens}"))
    masked = percent(metrics.attention_masked / full if full else 0.0)
    meaning = "query-key pairs if a token sees only its own document, of those of causal rows"
    return facts_table("Metrics", [*facts, Fact("masked attention", masked, meaning)])


def facts_table(title: str, facts: Sequence[Fact]) -> Table[Fact]:
    """Tabulate facts: names, values and meanings."""
    columns: list[Column[Fact]] = [
        Column("metric", lambda fact: fact.name, words=True),
        Column("", lambda fact: fact.value),
        Column("meaning", lambda fact: fact.meaning, words=True),
    ]
    return Table(title, columns, [("", facts)], facts=True)


def training_table(cost: TrainingCost) -> Table[Fact]:
    """Tabulate the cost of an epoch."""
    shape = f"{short(cost.parameters)} parameters, {count(cost.layers)} layers of width {count(cost.width)}"
    operations = [
        ("linear layers", cost.linear, f"floating-point operations of an epoch of a decoder of {shape}"),
        ("attention", cost.attention, "the same, over whole rows"),
        ("masked attention", cost.attention_masked, "the same where a token sees only its own document"),
        ("all, masked", cost.linear + cost.attention_masked, "linear layers and masked attention"),
    ]
    return facts_table("Training cost", [Fact(name, f"{flops:.3e}", meaning) for name, flops, meaning in operations])


def buckets_table(buckets: Sequence[BucketFigures], title: str = "Row lengths") -> Table[BucketFigures]:
    """Tabulate rows and tokens of each row length."""
    return table_of(title, _BUCKETS, buckets)


def mixing_table(mixing: Sequence[Mixed]) -> Table[Mixed]:
    """Tabulate how well mixed the rows are."""
    columns: list[Column[Mixed]] = [
        Column("row length", lambda m: m.sequence_length, count),
        Column("apart", lambda m: m.median_distance, short, "rows between neighbours, median"),
        Column("mean", lambda m: m.mean_distance, short, "rows between neighbours, mean"),
        Column("random", lambda m: m.expected_distance, short, "the same if rows were at random: a third of them"),
        Column("in row", lambda m: m.same_row, percent, "neighbours that begin in one row"),
        Column("in batch", lambda m: m.same_batch, percent, "neighbours that begin in one batch"),
        Column("batch", lambda m: m.batch_size, short, "rows in a batch"),
        Column("docs", lambda m: m.documents.mean, number, "distinct documents in a batch, mean"),
        Column("sources", lambda m: m.sources.mean, number, "distinct input stores in a batch, mean"),
    ]
    note = (
        "Neighbours are documents that follow each other in the corpus; distances are of those that do not begin in "
        "one row."
    )
    return table_of("Mixing", columns, mixing, note)


def waiting_table(waiting: Sequence[Waiting]) -> Table[Waiting]:
    """Tabulate how long ranks wait for the slowest."""
    columns: list[Column[Waiting]] = [
        Column("row length", lambda w: w.sequence_length, count),
        Column("ranks", lambda w: w.ranks, count),
        Column("batch", lambda w: w.global_batch, count, "rows in a global batch"),
        Column("step", lambda w: w.dealt, percent, "waiting where ranks meet once a step, row i on rank i % ranks"),
        Column("balanced", lambda w: w.balanced, percent, "the same with rows dealt evenly"),
        Column("least", lambda w: w.least, percent, "no dealing waits less", brief=False),
        Column("turn", lambda w: w.turns_dealt, percent, "waiting where ranks meet after every row"),
        Column("balanced", lambda w: w.turns_balanced, percent, "the same with rows of like cost in one turn"),
    ]
    linear = waiting[0].token_cost if waiting else 0
    costs = f"attention, and {count(linear)} query-key pairs for each token" if linear else "attention alone"
    note = f"Share of the time that ranks wait for the slowest: 1 − mean / largest of their costs, which are {costs}."
    return table_of("Waiting", columns, waiting, note)


def source_tables(report: Report) -> list[Table[Any]]:
    """Tabulate the inputs: their contents, what was asked and taken of each, and how evenly batches mix them."""
    if isinstance(report, StoreReport) and report.sources:
        return [_stores(report.sources)]
    if not isinstance(report, MeasuredReport) or not report.sources:
        return []
    tables: list[Table[Any]] = [_packed(report.sources)]
    left_out = [
        (source_name(source), reason.replace("_", " "), each.documents, each.tokens)
        for source in report.sources
        for reason, each in source.left_out.items()
    ]
    if left_out:
        columns: list[Column[tuple[str, str, int, int]]] = [
            Column("store", lambda line: line[0], words=True),
            Column("left out as", lambda line: line[1], words=True),
            Column("documents", lambda line: line[2], count),
            Column("tokens", lambda line: line[3], count),
        ]
        tables.append(table_of("Left out", columns, left_out))
    if report.mixing and len(report.sources) > 1:
        tables.append(_batches(report))
    return tables


def source_name(source: SourceFigures) -> str:
    """Return the recorded name of a store, else the beginning of its hash."""
    return source.name or source.digest[:12]


def trained_share(source: SourceFigures) -> float | None:
    """Return the share of an input's tokens that train; None if it is not said."""
    return None if isinstance(source.trained_tokens, UnsetType) else ratio(source.trained_tokens, source.tokens)


def _trained(sources: Sequence[SourceFigures]) -> list[Column[Any]]:
    """Return the trained share of each input where it is known."""
    known = any(trained_share(source) is not None for source in sources)
    return [Column("trained", trained_share, percent, "of its tokens")] if known else []


def quantiles(lengths: Lengths) -> list[tuple[str, str]]:
    """Return names and values of the length distribution."""
    names = {"min": "shortest", "p50": "median", "max": "longest"}
    keys = ("min", "p01", "p10", "p25", "p50", "p75", "p90", "p99", "max")
    known = [(names.get(key, key), short(getattr(lengths, key))) for key in keys]
    return [*known, ("mean", number(lengths.mean))]


def _stores(sources: Sequence[StoredSourceFigures]) -> Table[StoredSourceFigures]:
    columns: list[Column[StoredSourceFigures]] = [
        Column("store", source_name, words=True),
        Column("documents", lambda s: s.documents, short),
        Column("tokens", lambda s: s.tokens, short),
        Column("share", lambda s: s.token_share, percent, "of all tokens"),
        *_trained(sources),
        Column("mean", lambda s: s.lengths.mean, number, "length of a document in tokens"),
        Column("median", lambda s: s.lengths.p50, short),
        Column("p99", lambda s: s.lengths.p99, short),
        Column("longest", lambda s: s.lengths.max, short),
        Column("copies", lambda s: s.duplicates, short, "documents whose text an earlier one has; – is not known"),
        Column("xxh3-128", lambda s: s.digest, words=True, meaning="of the store's manifest", brief=False),
    ]
    return table_of("Inputs", columns, sources)


def _packed(sources: Sequence[PackedSourceFigures]) -> Table[PackedSourceFigures]:
    columns: list[Column[PackedSourceFigures]] = [
        Column("store", source_name, words=True),
        Column("tokens", lambda s: s.tokens, short, "packed, EOS included"),
        Column("share", lambda s: s.token_share, percent, "of all tokens packed"),
        *_trained(sources),
        Column("asked", lambda s: s.asked_share, percent, "the share that it was to have"),
        Column("epochs", lambda s: s.epochs, number, "tokens packed / tokens left to draw from"),
        Column("asked", lambda s: s.asked_epochs, number, "how often it was to be packed"),
        Column("repeated", lambda s: s.repeated_tokens, short, "tokens of documents that an earlier pass has"),
        Column("left out", lambda s: sum(each.tokens for each in s.left_out.values()), short, "tokens not packed"),
        Column("documents", lambda s: s.documents, count, brief=False),
        Column("xxh3-128", lambda s: s.digest, words=True, meaning="of the store's manifest", brief=False),
    ]
    return table_of("Inputs", columns, sources)


def _batches(report: MeasuredReport) -> Table[tuple[str, int, SourceMix]]:
    rows = [
        (source_name(source), mixed.sequence_length, mix)
        for mixed in report.mixing
        for source, mix in zip(report.sources, mixed.source_mix, strict=True)
    ]
    columns: list[Column[tuple[str, int, SourceMix]]] = [
        Column("store", lambda row: row[0], words=True),
        Column("row length", lambda row: row[1], count),
        Column("tokens", lambda row: row[2].tokens, short),
        Column("share", lambda row: row[2].share, percent, "of the tokens of all rows, padding not counted"),
        Column("least", lambda row: row[2].min, percent, "share in a whole batch"),
        Column("most", lambda row: row[2].max, percent, "share in a whole batch"),
        Column("deviation", lambda row: row[2].deviation, percent, "standard deviation of the share over batches"),
    ]
    return table_of("Sources in batches", columns, rows)
