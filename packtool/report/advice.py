"""Advice that holds whatever strategy the verdict names, each piece with its reason, source and limits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from packtool.metrics.lengths import LengthCounts
from packtool.report.figures import count, number, percent
from packtool.report.schema import Advice, Trial

OPTIMIZING = "Optimizing Packing and Shuffling Strategies"

_FAR = 1.75
"""Rows this many times as long as the mean document are far above it: in the paper 256 tokens and more, against 143."""
_ALIKE = 0.5
"""Share of rows of equal lengths but one from which rows are better mixed."""


def advise(counts: LengthCounts, entries: Sequence[Trial]) -> list[Advice]:
    """Give advice for documents of these lengths.

    Args:
        counts: document lengths in tokens.
        entries: what strategies make of them (the comparison's entries); each rule uses those it finds.
    """
    if not counts.documents:
        return []
    sizes = sorted({e.sequence_length for e in entries if e.sequence_length})
    return [*_atoms(counts, sizes), *_padding(counts, entries, sizes), *_alike(entries)]


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
        padded = [e.metrics.padding_ratio for e in entries if e.strategy == "padding" and e.sequence_length in far]
        more = " or more" if len(far) > 1 else ""
        yield Advice(
            f"Do not use padding for rows of {_list(far)}.",
            f"That is {number(far[0] / counts.mean)} times the mean document of {number(counts.mean)} tokens{more}"
            + (f", so that {percent(min(padded))} of the output{more} would be padding." if padded else "."),
            f"{OPTIMIZING}, sections 3.4 and 4",
            "Tested with GPT-2 XL on WikiText, rows of 256 to 1024 tokens, documents of 143 on average.",
        )


def _alike(entries: Sequence[Trial]) -> Iterator[Advice]:
    alike = [e for e in entries if e.metrics.homogeneity.equal_but_one > _ALIKE and e.options.get("mix_rows") is False]
    if alike:
        worst = max(alike, key=lambda e: e.metrics.homogeneity.equal_but_one)
        mixing = worst.metrics.homogeneity
        yield Advice(
            f"Mix the rows of {worst.label}: --mix-rows.",
            f"Of its rows with more than two pieces, {percent(mixing.equal_but_one)} hold equal lengths but for one; "
            f"{percent(mixing.between_rows)} of the variance of log length lies between rows, "
            f"{percent(mixing.random_rows)} if rows were random. Mixing leaves padding, truncation and the number of "
            "rows as they are.",
            "Counted on this corpus; no paper behind these strategies measured it",
            "Not tested: what such rows do to a model.",
        )


def _list(sizes: Sequence[int]) -> str:
    *first, last = map(count, sizes)
    return f"{', '.join(first)} and {last} tokens" if first else f"{last} tokens"
