"""What to mind, whichever strategy the verdict takes: each piece of advice with its reason, source and limits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from packtool.metrics import LengthCounts
from packtool.report.figures import count, number, percent
from packtool.report.schema import Advice, Trial

OPTIMIZING = "Optimizing Packing and Shuffling Strategies"

_FAR = 1.75
"""Rows this many times as long as the mean document are far above it: in the paper 256 tokens and more, against 143."""
_ALIKE = 0.5
"""Share of rows of equal lengths but one from which rows are better mixed."""


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
