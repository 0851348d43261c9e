"""Strategies compared on document lengths alone: plan, lay out, count. No token is touched.

lengths ─every strategy × sequence length─▶ plans ─Layout─▶ rows ─Tally─▶ ledger and metrics
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from packtool import packing
from packtool.errors import UsageError
from packtool.metrics import Ledger, Tally, balance
from packtool.packing import STRATEGIES, PackOptions
from packtool.packing.options import check
from packtool.plan import Ints
from packtool.writing.layout import Layout

ALL = "all"


@dataclass(frozen=True)
class Candidate:
    """A strategy and the options it is tried with.

    Attributes:
        strategy: its registered name.
        options: the sequence length for strategies that take one, else the buckets.
    """

    strategy: str
    options: PackOptions


@dataclass(frozen=True)
class Outcome:
    """What a candidate would make of a corpus.

    Attributes:
        candidate: what was tried.
        tallies: one for each row length.
        ledger: where every token goes.
        planning_seconds: CPU seconds from lengths to plans.
        seconds: CPU seconds from lengths to figures.
    """

    candidate: Candidate
    tallies: list[Tally]
    ledger: Ledger
    planning_seconds: float
    seconds: float


def candidates(
    names: Sequence[str], sequence_lengths: Sequence[int], buckets: Sequence[int] | None = None
) -> list[Candidate]:
    """Every strategy with every sequence length, and those of several row lengths once.

    Args:
        names: strategies, or ``all`` among them for every one.
        sequence_lengths: for the strategies that take one.
        buckets: row lengths for the strategies that take those; None for their default.

    Raises:
        UsageError: an unknown strategy, or a sequence length is missing or makes no sense.
    """
    chosen = list(STRATEGIES) if ALL in names else list(dict.fromkeys(names))
    found = []
    for name in chosen:
        if name not in STRATEGIES:
            raise UsageError(
                "unknown-strategy",
                f"there is no strategy {name!r}",
                remedy=f"choose from {', '.join(STRATEGIES)}, or all",
                where="--compare",
            )
        strategy = STRATEGIES[name]
        base = PackOptions()
        if buckets is not None and "buckets" in strategy.accepts:
            base = replace(base, buckets=tuple(buckets))
        if "sequence_length" not in strategy.accepts:
            found.append(Candidate(name, base))
            continue
        if not sequence_lengths:
            raise UsageError(
                "missing-option",
                f"the strategy {name} needs the length of a row",
                remedy="give --sequence-length, such as 2048 or 2048,8192",
                where="--sequence-length",
            )
        found.extend(Candidate(name, replace(base, sequence_length=size)) for size in dict.fromkeys(sequence_lengths))
    for candidate in found:
        check(STRATEGIES[candidate.strategy], candidate.options)
    return found


def compare(
    lengths: Ints, tried: Sequence[Candidate], advance: Callable[[int], object] = lambda done: None
) -> Iterator[Outcome]:
    """Try each candidate on documents of these lengths, EOS included.

    The figures are those that packing and then measuring gives, for any seed: atoms are rows or hold whole rows, so
    a shuffle changes the order of rows but no row.

    >>> import numpy as np
    >>> [found] = compare(np.array([5, 4]), candidates(["concat"], [4]))
    >>> found.ledger.rows, found.ledger.padding
    (3, 3)
    """
    for candidate in tried:
        yield _try(lengths, candidate)
        advance(1)


def _try(lengths: Ints, candidate: Candidate) -> Outcome:
    begin = time.process_time()
    plans = packing.plan(candidate.strategy, lengths, candidate.options)
    planned = time.process_time()
    tallies = []
    for layout in map(Layout, plans):
        tally = Tally(lengths, layout.plan.sequence_length)
        for first, last in layout.batches(0, layout.rows):
            tally.add(layout.segments(first, last))
        tallies.append(tally)
    tokens = int(lengths.sum(dtype=np.int64))
    ledger = balance(tokens, len(lengths), plans, [tally.accounts() for tally in tallies])
    return Outcome(candidate, tallies, ledger, planned - begin, time.process_time() - begin)
