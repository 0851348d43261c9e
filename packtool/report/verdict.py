"""The verdict: one strategy for a corpus and a row length, by a written rule. See docs/choosing.md.

Whole documents, if they cost at most 2 % of the tokens and save at least one document in a hundred from being cut;
else one stream.
"""

from __future__ import annotations

from collections.abc import Sequence

from packtool.metrics import LengthCounts
from packtool.report.figures import count, number, percent, times, times_random
from packtool.report.schema import ChosenStrategy, Trial, Verdict

WASTE = 0.02
"""Share of tokens that whole documents may cost: padding, repeats and what is dropped."""
NOTABLE = 0.01
"""Documents cut needlessly, as a share of all: fewer are not worth a change."""
SAME = 0.001
"""Shares that differ by less are alike."""
WIDE = 8
"""Lengths spread widely where one document in a hundred is this many times the median."""
MUCH = 0.25
"""Share of tokens in documents longer than a row from which sliding windows matter."""
DEGENERATE_CUT, DEGENERATE_PADDING = 0.5, 0.25
"""What no figure is worth: more than half of the documents that fit cut, a quarter of the output padding."""

_SIMPLEST_FIRST = ("concat", "bfd", "ffd", "first-fit-shuffle", "bfd-extra", "seamless", "padding")
_WHOLE = ("bfd", "ffd", "first-fit-shuffle")
_LIMITS = (
    "What whole documents are worth was measured in continual pre-training, not from scratch, and not on code; "
    "the limits of 2 % and 1 % are a judgement. See docs/choosing.md."
)


def verdicts(entries: Sequence[Trial], counts: LengthCounts) -> list[Verdict]:
    """A verdict for each row length that was tried; of strategies of several lengths alone, one for all of these.

    Args:
        entries: what the strategies make of the documents.
        counts: the documents' lengths.
    """
    if not counts.documents:
        return []
    several = [e for e in entries if e.sequence_length is None]
    sizes = list(dict.fromkeys(e.sequence_length for e in entries if e.sequence_length is not None))
    if not sizes:
        return [_judge(None, several, [], counts)]
    return [_judge(size, [e for e in entries if e.sequence_length == size], several, counts) for size in sizes]


def waste(entry: Trial) -> float:
    """Tokens that train nothing new or are lost: padding and repeats of the output, what is dropped of the text."""
    return entry.metrics.padding_ratio + entry.metrics.repeated_ratio + entry.metrics.dropped_ratio


def needless(entry: Trial) -> float:
    """Documents that would fit a row but are cut, as a share of all documents."""
    documents = entry.metrics.documents
    return entry.metrics.avoidably_truncated_documents / documents if documents else 0.0


def degenerate(entry: Trial) -> bool:
    """Whether an entry buys its good figures at a price that nobody pays, so that none of them is worth marking."""
    metrics = entry.metrics
    return metrics.avoidable_truncation_ratio > DEGENERATE_CUT or metrics.padding_ratio > DEGENERATE_PADDING


def _judge(size: int | None, entries: Sequence[Trial], several: Sequence[Trial], counts: LengthCounts) -> Verdict:
    winner, reason = _winner(entries)
    return Verdict(
        sequence_length=size,
        choice=ChosenStrategy(strategy=winner.label, reason=reason, command=winner.command),
        runner_up=_runner_up(winner, [*entries, *several], size, counts),
        limits=_LIMITS,
    )


def _winner(entries: Sequence[Trial]) -> tuple[Trial, str]:
    """The choice among entries of one row length, and why."""
    affordable = [e for e in entries if waste(e) <= WASTE] or [min(entries, key=waste)]
    least = min(map(needless, affordable))
    whole = min((e for e in affordable if needless(e) <= least + SAME), key=_order)
    plain = next((e for e in affordable if e.strategy == "concat"), whole)
    if needless(plain) - needless(whole) >= NOTABLE:
        return whole, f"It cuts {_cuts(whole)}, where {plain.label} cuts {_cuts(plain)}. {_cost(whole)}"
    costly = [e for e in entries if waste(e) > WASTE and needless(plain) - needless(e) >= NOTABLE]
    if costly:
        closest = min(costly, key=_order)
        return plain, (
            f"Keeping documents whole would cost {percent(waste(closest))} of the tokens ({closest.label}), more than "
            f"the {percent(WASTE)} it is taken to be worth; {plain.label} cuts {_cuts(plain)}. {_cost(plain)}"
        )
    if len(entries) == 1:
        return plain, f"The only one compared. It cuts {_cuts(plain)}. {_cost(plain)}"
    return plain, (
        f"It cuts {_cuts(plain)}; no other strategy keeps one document in a hundred more whole. {_cost(plain)}"
    )


def _order(entry: Trial) -> tuple[float, float, int]:
    """Least waste first, then the rows that differ least from each other, then the simplest strategy."""
    known = entry.strategy in _SIMPLEST_FIRST
    return (
        round(waste(entry) / SAME) * SAME,
        # No better than random: what lies below it is chance.
        max(0.0, round(entry.metrics.homogeneity.between_rows - entry.metrics.homogeneity.random_rows, 2)),
        _SIMPLEST_FIRST.index(entry.strategy) if known else len(_SIMPLEST_FIRST),
    )


def _runner_up(winner: Trial, rivals: Sequence[Trial], size: int | None, counts: LengthCounts) -> ChosenStrategy | None:
    """The strategy that another aim or another trainer would choose, and when."""
    found = {e.strategy: e for e in sorted(rivals, key=_order, reverse=True) if e is not winner}
    others = {name: e for name, e in found.items() if name != winner.strategy}
    longer = counts.tokens_over(size) / counts.tokens if size is not None else 0.0
    spread = counts.quantile(0.99) / max(1, counts.quantile(0.5))

    def choice(name: str, reason: str) -> ChosenStrategy:
        return ChosenStrategy(strategy=others[name].label, reason=reason, command=others[name].command)

    if "seamless" in others and longer >= MUCH and winner.strategy in (*_WHOLE, "concat"):
        metrics = others["seamless"].metrics
        return choice(
            "seamless",
            f"if you continue the pre-training of an existing model and long documents matter: {percent(longer)} of "
            f"the tokens lie in documents longer than a row. It repeats {percent(metrics.repeated_ratio)} of the "
            f"output and drops {percent(metrics.dropped_ratio)} of the text.",
        )
    if "buckets" in others and spread >= WIDE and size is not None:
        metrics = others["buckets"].metrics
        return choice(
            "buckets",
            "if your trainer takes batches of several row lengths: lengths spread widely (one document in a hundred is "
            f"{number(spread)} times the median), and it puts {number(metrics.concatenation_ratio)} documents in a row "
            f"at {percent(metrics.padding_ratio)} padding.",
        )
    if winner.strategy == "concat" and "padding" in others and size is not None and counts.mean > size:
        more = others["padding"].metrics.rows / max(1, winner.metrics.rows) - 1
        return choice(
            "padding",
            f"if data is scarce and time is not: it takes {percent(more)} more rows, and documents are longer than a "
            "row, where that ended in lower perplexity.",
        )
    if winner.strategy == "concat":
        whole = next((name for name in _WHOLE if name in others), None)
        if whole is not None:
            return choice(whole, f"if no document that fits may be cut: {_cost(others[whole])[:-1].lower()}.")
    if "concat" in others:
        return choice(
            "concat",
            f"if every token of every row must be text: it cuts {_cuts(others['concat'])}.",
        )
    rest = sorted(others.values(), key=_order)
    return choice(rest[0].strategy, f"next by the same rule. {_cost(rest[0])}") if rest else None


def _cost(entry: Trial) -> str:
    """What an entry costs, in a sentence."""
    metrics = entry.metrics
    shares = [
        (metrics.padding_ratio, "of the output is padding"),
        (metrics.repeated_ratio, "repeats"),
        (metrics.dropped_ratio, "of the text is dropped"),
    ]
    found = [f"{percent(share)} {what}" for share, what in shares if share]
    rows = f"{count(metrics.rows)} rows, {times(times_random(metrics.homogeneity))} as alike inside as random ones"
    return f"{_sentence(', '.join(found))}; {rows}." if found else f"No padding, nothing dropped or repeated; {rows}."


def _cuts(entry: Trial) -> str:
    """The documents that an entry cuts though they would fit a row."""
    share = entry.metrics.avoidable_truncation_ratio
    if not share:
        return "no document that fits a row"
    return f"{percent(share)} of the documents that fit a row ({percent(needless(entry))} of all)"


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]
