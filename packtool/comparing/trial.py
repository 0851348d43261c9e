"""One candidate tried: plan, lay out, count.

lengths ─plan─▶ plans ─Layout─▶ rows ─Tally─▶ ledger and metrics
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from packtool import packing
from packtool.comparing.candidates import Candidate
from packtool.comparing.sample import sample_rows
from packtool.metrics import Ledger, Tally, balance
from packtool.plan import Ints, Segments
from packtool.writing.layout import Layout


@dataclass(frozen=True)
class Outcome:
    """What a candidate would make of a corpus.

    Attributes:
        candidate: what was tried.
        tallies: one for each row length.
        ledger: where every token goes.
        sample: a few rows of the first documents, packed alone.
        planning_seconds: CPU seconds from lengths to plans.
        seconds: CPU seconds from lengths to figures.
    """

    candidate: Candidate
    tallies: list[Tally]
    ledger: Ledger
    sample: Segments
    planning_seconds: float
    seconds: float


def compare(
    lengths: Ints, tried: Sequence[Candidate], advance: Callable[[int], object] = lambda done: None
) -> Iterator[Outcome]:
    """Try each candidate on documents of these lengths, EOS included.

    The figures are those that packing and then measuring gives, for any seed: atoms are rows or hold whole rows, so
    a shuffle changes the order of rows but no row.

    >>> import numpy as np
    >>> from packtool.comparing import candidates
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
    sample = sample_rows(lengths, candidate)
    return Outcome(candidate, tallies, ledger, sample, planned - begin, time.process_time() - begin)
