"""Compute how long ranks wait for the slowest, where rows of one length differ in the cost of attention."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from packtool.errors import UsageError
from packtool.plan import Segments
from packtool.shuffling.balance import (
    PER_HIDDEN,
    TURN,
    deal,
    deal_turns,
    dealt_in,
    least_waiting,
    pairs_of,
    waiting,
)

_BATCHES = 64  # that are dealt, spread evenly over the rows


@dataclass(frozen=True, slots=True)
class Waiting:
    """Shares of the time that ranks wait: one minus the mean over the largest cost, averaged over global batches.

    Attributes:
        sequence_length: tokens in a row.
        ranks: that share a global batch.
        global_batch: rows.
        token_cost: of the linear part of each token, in query-key pairs; 0 for attention alone.
        batches: that were dealt, spread evenly over the rows.
        dealt: where ranks meet once a step, with row i of a batch on rank i % ranks.
        balanced: the same, with rows dealt evenly.
        least: no dealing of equally many rows waits less, by a bound on the largest row.
        turns_dealt: where ranks meet after every row, with row i of a batch on rank i % ranks.
        turns_balanced: the same, with rows of like cost in one turn, which is the least.
    """

    sequence_length: int
    ranks: int
    global_batch: int
    token_cost: int
    batches: int
    dealt: float
    balanced: float
    least: float
    turns_dealt: float
    turns_balanced: float


def token_cost(hidden_size: int | None, pairs: int | None) -> int:
    """Return the linear cost of a token in query-key pairs: as given, or derived from the hidden size.

    >>> token_cost(4096, None), token_cost(None, 11_000), token_cost(None, None)
    (20480, 11000, 0)
    """
    return pairs or PER_HIDDEN * (hidden_size or 0)


def waiting_of(
    segments: Callable[[int, int], Segments],
    rows: int,
    sequence_length: int,
    ranks: int,
    batch: int,
    token_cost: int,
) -> Waiting:
    """Measure how long ranks wait for each other, in the order in which rows come.

    Args:
        segments: of the rows from one to before another.
        rows: how many there are.
        ranks: divides `batch`.
        batch: rows in a global batch.
        token_cost: of the linear part of each token, in pairs; 0 for attention alone.

    Raises:
        UsageError: there is no whole global batch.
    """
    if rows < batch:
        what = f"{batch} rows, but there are {rows} of {sequence_length} tokens, so there is no global batch"
        raise UsageError("bad-option", what, remedy="give a smaller one", where="--global-batch")
    whole = rows // batch
    chosen = np.unique(np.linspace(0, whole - 1, min(whole, _BATCHES)).astype(np.int64))
    pairs = np.stack([pairs_of(segments(number * batch, (number + 1) * batch)) for number in chosen.tolist()])
    costs = pairs + token_cost * sequence_length
    plain, even, turns = dealt_in("", pairs, ranks), deal(pairs, ranks), deal_turns(pairs, ranks)
    return Waiting(
        sequence_length=sequence_length,
        ranks=ranks,
        global_batch=batch,
        token_cost=token_cost,
        batches=len(chosen),
        dealt=float(waiting(costs, plain).mean()),
        balanced=float(waiting(costs, even).mean()),
        least=float(least_waiting(costs, ranks).mean()),
        turns_dealt=float(waiting(costs, plain, TURN).mean()),
        turns_balanced=float(waiting(costs, turns, TURN).mean()),
    )
