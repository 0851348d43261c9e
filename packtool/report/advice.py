"""Which packing a corpus asks for, in words: each piece of advice with its reason, its source, and its limits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from packtool.metrics import LengthCounts
from packtool.report.figures import count, number, percent
from packtool.report.schema import Advice, Trial

OPTIMIZING = "Optimizing Packing and Shuffling Strategies"
SEAMLESS = "Seamless Data Packing"
BUCKETS = "Bucket Pre-training"

_FAR = 1.75
"""Rows this many times as long as the mean document are far above it: in the paper 256 tokens and more, against 143."""
_WIDE = 8
"""Lengths spread widely where one document in a hundred is this many times the median."""
_NOTABLE = 0.01
"""Truncation below this share is not worth a change."""
_ALIKE = 0.5
"""Share of rows of equal lengths but one from which rows are better mixed."""
_MUCH = 0.25
"""Share of tokens in texts longer than a row from which sliding windows matter."""


def advise(counts: LengthCounts, entries: Sequence[Trial]) -> list[Advice]:
    """Advice for documents of these lengths.

    Args:
        counts: document lengths in tokens.
        entries: what strategies make of them (the comparison's entries); each rule uses those it finds.
    """
    if not counts.documents:
        return []
    sizes = sorted({e.sequence_length for e in entries if e.sequence_length})
    return [
        *_atoms(counts, sizes),
        *_padding(counts, entries, sizes),
        *_truncation(counts, entries),
        *_spread(counts, entries),
        *_alike(entries),
    ]


def _atoms(counts: LengthCounts, sizes: Sequence[int]) -> Iterator[Advice]:
    below = [size for size in sizes if size < counts.mean]
    if below:
        yield Advice(
            f"Keep the atom size at the sequence length (the default) for rows of {_list(below)}.",
            f"Documents average {number(counts.mean)} tokens, more than a row. There, atoms shorter or longer than a "
            "row gave higher perplexity, for concat and for padding.",
            f"{OPTIMIZING}, sections 3.1 and 3.2",
            "Tested with GPT-2 124M on WikiText, rows of 32 to 128 tokens.",
        )


def _padding(counts: LengthCounts, entries: Sequence[Trial], sizes: Sequence[int]) -> Iterator[Advice]:
    far = [size for size in sizes if size >= _FAR * counts.mean]
    if far:
        wasted = _figures(entries, "padding", "padding_ratio", far)
        yield Advice(
            f"Do not use padding for rows of {_list(far)}.",
            f"That is {number(far[0] / counts.mean)} times the mean document of {number(counts.mean)} tokens"
            + (" or more" if len(far) > 1 else "")
            + (f", so that {wasted} of the output would be padding." if wasted else "."),
            f"{OPTIMIZING}, sections 3.4 and 4",
            "Tested with GPT-2 XL on WikiText, rows of 256 to 1024 tokens, documents of 143 on average.",
        )
    for size in (size for size in sizes if size < counts.mean):
        concat, padding = _entry(entries, "concat", size), _entry(entries, "padding", size)
        if concat and padding and concat.metrics.rows:
            more = padding.metrics.rows / concat.metrics.rows - 1
            yield Advice(
                f"Rows of {count(size)}: padding if data is scarce, concat if time is.",
                "Documents are longer than a row. There, padding ended 4.2 to 19.4% lower in perplexity for 13 to 46% "
                f"more steps; on this corpus it takes {percent(more)} more rows.",
                f"{OPTIMIZING}, section 3.3 and Table 3",
                "Tested with GPT-2 124M on WikiText, rows of 32 to 128 tokens, two epochs.",
            )


def _truncation(counts: LengthCounts, entries: Sequence[Trial]) -> Iterator[Advice]:
    cut = [
        entry.sequence_length
        for entry in entries
        if entry.strategy == "concat" and entry.sequence_length and entry.metrics.avoidable_truncation_ratio >= _NOTABLE
    ]
    if not cut:
        return
    shares = _figures(entries, "concat", "avoidable_truncation_ratio", cut)
    padded = _figures(entries, "bfd", "padding_ratio", cut)
    yield Advice(
        f"If truncation hurts, use bfd or ffd for rows of {_list(cut)}.",
        f"concat cuts {shares} of the documents that would fit in a row. Best fit and first fit cut none of them"
        + (f", for {padded} of padding." if padded else "."),
        f"{SEAMLESS}, Tables 1, 2 and 7",
        "Tested in continual pre-training of models of 0.5 to 3 billion parameters: mostly lower perplexity than "
        "concat, but behind it on 2 to 4 of 8 downstream tasks. Not tested: training from scratch, code.",
    )
    for size in (size for size in cut if counts.tokens_over(size) >= _MUCH * counts.tokens):
        seamless = _entry(entries, "seamless", size)
        if seamless is None:
            continue
        metrics = seamless.metrics
        yield Advice(
            f"Rows of {count(size)}: seamless if context in long documents matters more than exact counts.",
            f"Documents longer than a row hold {percent(counts.tokens_over(size) / counts.tokens)} of the tokens. "
            f"Overlap repeats {percent(metrics.repeated_ratio)} of the output; bins drop up to c_extra tokens each, "
            f"{percent(metrics.dropped_ratio)} of the text. Of the documents that would fit, "
            f"{percent(metrics.avoidable_truncation_ratio)} lose their end or are split.",
            f"{SEAMLESS}, sections 3 and 4, Table 1",
            "Tested in continual pre-training, rows of 512 to 2048 tokens: ahead of BFD and concat in nearly "
            "all settings, by about one point. Not tested: training from scratch, code.",
        )


def _spread(counts: LengthCounts, entries: Sequence[Trial]) -> Iterator[Advice]:
    median, long = counts.quantile(0.5), counts.quantile(0.99)
    if long >= _WIDE * median:
        tried = next((e.metrics for e in entries if e.strategy == "buckets"), None)
        yield Advice(
            "Consider buckets, so that short documents need not share long rows and long ones are not cut.",
            f"Lengths spread widely: one document in a hundred has {count(long)} tokens or more, "
            f"{number(long / median)} times the median of {count(median)}."
            + (
                f" Algorithm 1 would cut {percent(tried.truncation_ratio)} of the documents, for "
                f"{percent(tried.padding_ratio)} of padding."
                if tried
                else ""
            ),
            f"{BUCKETS}, Tables 1 and 2",
            "Tested for speed and training loss of one 13-billion-parameter model. Not tested: downstream tasks, other "
            "bucket sizes.",
        )


def _alike(entries: Sequence[Trial]) -> Iterator[Advice]:
    alike = [e for e in entries if e.metrics.homogeneity.equal_but_one > _ALIKE and e.options.get("mix_rows") is False]
    if alike:
        worst = max(alike, key=lambda e: e.metrics.homogeneity.equal_but_one)
        found = worst.metrics.homogeneity
        yield Advice(
            f"Mix the rows of {worst.label}: --mix-rows.",
            f"Of its rows with more than two pieces, {percent(found.equal_but_one)} hold equal lengths but for one; "
            f"{percent(found.between_rows)} of the variance of log length lies between rows, "
            f"{percent(found.random_rows)} if rows were random. Mixing leaves padding, truncation and the number of "
            "rows as they are.",
            "Counted on this corpus; no paper behind these strategies measured it",
            "Not tested: what such rows do to a model.",
        )


def _entry(entries: Sequence[Trial], strategy: str, size: int) -> Trial | None:
    return next((e for e in entries if e.strategy == strategy and e.sequence_length == size), None)


def _figures(entries: Sequence[Trial], strategy: str, key: str, sizes: Sequence[int]) -> str:
    """The shares of one strategy at each of these sequence lengths, in words; empty where none was tried."""
    found = [(size, _entry(entries, strategy, size)) for size in sizes]
    known = [(size, getattr(entry.metrics, key)) for size, entry in found if entry is not None]
    if len(known) == 1:
        return percent(known[0][1])
    return _join([f"{percent(value)} ({count(size)})" for size, value in known])


def _list(sizes: Sequence[int]) -> str:
    return _join([count(size) for size in sizes]) + " tokens"


def _join(parts: Sequence[str]) -> str:
    return " and ".join([", ".join(parts[:-1]), parts[-1]]) if len(parts) > 1 else "".join(parts)
