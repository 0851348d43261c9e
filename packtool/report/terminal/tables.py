"""Tables and small histograms of reports, for terminals of 80 columns."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from packtool.metrics import Ledger, Metrics, Mixed, Sliding
from packtool.report.figures import FIGURES, count, number, percent, short, times_random
from packtool.report.schema import (
    BucketFigures,
    CorpusReport,
    DocumentsReport,
    Lengths,
    PackedReport,
    PackedSourceFigures,
    StoredSourceFigures,
)
from packtool.sizes import plural

_BAR = "▏▎▍▌▋▊▉█"
_BAR_WIDTH = 30
_LINES = 14  # of a histogram, at most


def counts_line(report: DocumentsReport) -> RenderableType:
    """What a store or a corpus holds and what was left out."""
    counts = dict(report.counts)
    left_out = {name: counts.pop(name, 0) for name in ("empty", "filtered", "rejected")}
    figures = [plural(counts[name], name[:-1]) for name in ("files", "documents", "tokens") if name in counts]
    if isinstance(report, CorpusReport):
        figures += [f"{count(lengths.total)} {lengths.unit}" for lengths in (report.words, report.characters)]
    figures += [f"{count(value)} {name}" for name, value in left_out.items() if value]
    return Text.assemble((report.path, "bold"), f" · {', '.join(figures)}")


def title(report: PackedReport) -> RenderableType:
    """Strategy, sequence lengths and order, in a line. Slashes stand between lengths, whose digits have commas."""
    sizes = " / ".join(count(b.sequence_length) for b in report.buckets)
    shuffle = report.shuffle
    order = "corpus order"
    if shuffle is not None:
        atom = f" (A = {count(shuffle.atom_size)})" if shuffle.atom_size else ""
        order = f"{shuffle.method} shuffle{atom}, seed {shuffle.seed}"
        order += f", epoch {shuffle.epoch}" if shuffle.epoch else ""
    return Text.assemble((report.strategy, "bold"), f" · rows of {sizes} tokens" if sizes else "", f" · {order}")


def heading(text: str, note: str = "") -> RenderableType:
    """A heading with room above it."""
    return Padding(Text.assemble((text, "bold"), (f"  {note}" if note else "", "dim")), (1, 0, 0, 0))


def plain_table(*columns: str) -> Table:
    """A table whose first column is text and whose others are figures."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    for index, column in enumerate(columns):
        table.add_column(column, justify="left" if index == 0 else "right", overflow="fold")
    return table


def ledger_table(ledger: Ledger) -> RenderableType:
    """Where every token went."""
    table = plain_table("tokens", "", "share", "")
    text, output = ledger.input, ledger.output

    def line(name: str, value: int, whole: int, note: str = "", style: str = "") -> None:
        table.add_row(name, count(value), percent(value / whole if whole else 0.0), Text(note, "dim"), style=style)

    if ledger.left_out or ledger.packed_again:
        line("text of the stores", ledger.stored, ledger.stored)
        line("  left out", ledger.left_out, ledger.stored)
        line("  packed again", ledger.packed_again, ledger.stored)
        table.add_section()
    line("input text", text, text)
    line("  placed", ledger.placed, text)
    line("  dropped", ledger.dropped, text, style="yellow" if ledger.dropped else "")
    table.add_section()
    inserted = f"{count(ledger.eos_inserted)} inserted" if ledger.eos_inserted else ""
    omitted = f"{count(ledger.eos_omitted)} left out" if ledger.eos_omitted else ""
    line("output", output, output, plural(ledger.rows, "row"))
    line("  text, once", ledger.placed, output)
    line("  text, repeated", ledger.repeated, output)
    line("  EOS", ledger.eos, output, ", ".join(filter(None, [inserted, omitted])))
    line("  padding", ledger.padding, output)
    return table


def metrics_table(metrics: Metrics, slid: Sliding | None) -> RenderableType:
    """Every metric with its meaning."""
    table = plain_table("metric", "")
    table.add_column("meaning", style="dim", overflow="fold")
    for figure in FIGURES:
        if figure.of(metrics) is not None:
            table.add_row(figure.label, figure.write(figure.of(metrics)), figure.meaning)
    per_row = metrics.documents_per_row
    table.add_row(
        "documents per row",
        number(per_row.mean),
        f"distinct documents in a row, mean; p50 {per_row.p50}, p99 {per_row.p99}, max {per_row.max}",
    )
    if metrics.overlapping_documents:
        table.add_row("overlapping", count(metrics.overlapping_documents), "documents with tokens repeated in a row")
    if slid is not None:
        texts, tokens = count(slid.predicted_texts), count(slid.predicted_tokens)
        table.add_row("  slide", count(slid.texts), f"long texts in overlapping rows; equation 6 predicts {texts}")
        table.add_row("  tokens left", count(slid.tokens), f"of the other long texts; equation 7 predicts {tokens}")
    full, masked = metrics.attention_full, metrics.attention_masked
    table.add_row(
        "masked attention",
        percent(masked / full if full else 0.0),
        "query-key pairs if a token sees only its own document, of those of plain causal rows",
    )
    return table


def buckets_table(buckets: Sequence[BucketFigures]) -> RenderableType:
    """Share of rows and tokens of each bucket, and how alike its rows are inside, random rows being 1."""
    table = plain_table("bucket", "rows", "of rows", "of tokens", "padding", "docs/row", "context", "alike")
    for bucket in buckets:
        table.add_row(
            count(bucket.sequence_length),
            count(bucket.rows),
            percent(bucket.row_share),
            percent(bucket.token_share),
            percent(bucket.padding_ratio),
            number(bucket.mean_documents_per_row),
            number(bucket.mean_context),
            times_random(bucket.homogeneity),
        )
    return table


def mixing_table(mixing: Sequence[Mixed]) -> RenderableType:
    """How well mixed the rows of each bucket are."""
    table = plain_table("mixing", "apart", "mean", "random", "in row", "in batch", "batch", "docs", "sources")
    for m in mixing:
        table.add_row(
            count(m.sequence_length),
            short(m.median_distance),
            short(m.mean_distance),
            short(m.expected_distance),
            percent(m.same_row),
            percent(m.same_batch),
            short(m.batch_size),
            number(m.documents.mean),
            number(m.sources.mean),
        )
    note = (
        "apart: rows between corpus neighbours (documents that follow each other) that are not in one row, median; "
        "mean: their mean, and what it is at random; in row, in batch: neighbours that begin in the same one; batch: "
        "rows in a batch; docs, sources: distinct documents and input stores in a batch, mean."
    )
    return Group(table, Text(note, "dim"))


def sources_table(sources: Sequence[PackedSourceFigures]) -> RenderableType:
    """What was asked of each store, and what came of it."""
    table = plain_table("source", "tokens", "share", "asked", "epochs", "asked", "repeated", "left out")
    for source in sources:
        table.add_row(
            source.name or source.digest[:12],
            short(source.tokens),
            percent(source.token_share),
            percent(source.asked_share),
            number(source.epochs),
            number(source.asked_epochs),
            short(source.repeated_tokens),
            short(sum(each.tokens for each in source.left_out.values())),
        )
    return table


def stores_table(sources: Sequence[StoredSourceFigures]) -> RenderableType:
    """The stores that are measured, one by one."""
    table = plain_table("store", "documents", "tokens", "share", "mean", "p50", "p99", "longest", "copies")
    for source in sources:
        lengths = source.lengths
        table.add_row(
            source.name or source.digest[:12],
            short(source.documents),
            short(source.tokens),
            percent(source.token_share),
            number(lengths.mean),
            short(lengths.p50),
            short(lengths.p99),
            short(lengths.max),
            "?" if source.duplicates is None else short(source.duplicates),
        )
    return Group(table, Text("copies: documents whose text an earlier one has.", "dim"))


def source_mix_table(mixing: Sequence[Mixed], names: Sequence[str]) -> RenderableType:
    """How evenly batches hold each store."""
    table = plain_table("in batches", "rows of", "share", "least", "most", "deviation")
    for m in mixing:
        for name, mix in zip(names, m.source_mix, strict=False):
            figures = (percent(each) for each in (mix.share, mix.min, mix.max, mix.deviation))
            table.add_row(name, count(m.sequence_length), *figures)
    return table


def lengths_view(lengths: Lengths) -> RenderableType:
    """The length distribution: figures and a histogram."""
    held = f"{plural(lengths.documents, 'document')}, {plural(lengths.total, lengths.unit[:-1])}"
    note = f"{held}; mean {number(lengths.mean)}"
    ranks = "  ".join(f"{name} {short(getattr(lengths, name))}" for name in ("min", "p10", "p50", "p90", "p99", "max"))
    return Group(
        heading(f"Document length in {lengths.unit}", note),
        Text(ranks, "dim"),
        bars([(span(b.first, b.last), b.documents) for b in lengths.histogram], "document"),
    )


def span(first: int, last: int) -> str:
    """The label of a bin."""
    return short(first) if first == last else f"{short(first)}–{short(last)}"


def bars(bins: Sequence[tuple[str, int]], unit: str) -> RenderableType:
    """A histogram of horizontal bars, counted in a unit; neighbouring bins are joined where there are too many."""
    group = -(-len(bins) // _LINES) if bins else 1
    joined = [
        (_join_labels(bins[i][0], bins[min(i + group, len(bins)) - 1][0]), sum(n for _, n in bins[i : i + group]))
        for i in range(0, len(bins), group)
    ]
    most = max((n for _, n in joined), default=0)
    table = Table.grid(padding=(0, 1))
    table.add_column(justify="right", no_wrap=True)
    table.add_column(no_wrap=True, width=_BAR_WIDTH)
    table.add_column(justify="right", no_wrap=True)
    for label, value in joined:
        table.add_row(
            label, Text(bar(value, most), "cyan"), Text(f"{short(value)} {unit if value == 1 else f'{unit}s'}", "dim")
        )
    return table


def bar(value: int, most: int, width: int = _BAR_WIDTH) -> str:
    """A bar of eighths of a character; anything above zero shows.

    >>> bar(5, 10, width=4), bar(1, 10_000, width=4), bar(0, 10)
    ('██', '▏', '')
    """
    eighths = round(8 * width * value / most) if most else 0
    if value and not eighths:
        eighths = 1
    return "█" * (eighths // 8) + (_BAR[eighths % 8 - 1] if eighths % 8 else "")


def _join_labels(first: str, last: str) -> str:
    return first if first == last else f"{first.split('–', maxsplit=1)[0]}–{last.rsplit('–', maxsplit=1)[-1]}"
