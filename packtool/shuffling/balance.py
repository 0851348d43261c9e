"""Which rank gets which rows of a global batch, so that all are busy equally long.

With document masks a row costs the query-key pairs in its segments, and rows of one length differ in that: the slowest
rank decides how long a step takes. The rows of a global batch are known before training, so they are dealt out evenly.
The same rows are in every global batch as before, hence the same gradient; only the ranks differ. Beside its pairs a
row costs the linear part of each of its tokens, which is the same for all rows of one length: it changes how long ranks
wait, not how rows are best dealt.

Costs come as (batches, rows) and are dealt batch by batch, many at a time since NumPy is quick with many.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from packtool.plan import I64, INSERTED_EOS, PADDING, Segments

STEP = "step"
"""Ranks meet once a step: the sums of their rows are even."""
TURN = "turn"
"""Ranks meet at every micro-batch, as FSDP makes them: rows of like cost come in one turn."""

PER_HIDDEN = 12
"""Pairs that the linear part of a token costs, for each of the hidden size h: 24 h² operations a token and layer of a
dense decoder, against 2 h a pair."""
CLOSE = 2.0**-10
"""Waiting share at which exchanging stops."""
_DEALT = 1 << 15  # rows of an order that are dealt at once
_EXCHANGES = 64  # rounds for each rank, at most
_OTHERS = (8, 1 << 30)  # ranks that the most loaded exchanges with where its pair does not help: the least loaded


def pairs_of(segments: Segments) -> I64:
    """Count query-key pairs of each row under causal attention within documents; padding counts as none.

    >>> rows = Segments(*(np.array(x) for x in ([0, 1, -1], [0, 0, 0], [3, 2, 4], [0, 0, 0], [0, 2, 3])))
    >>> pairs_of(rows).tolist()
    [9, 0]
    """
    # An EOS that the strategy inserted is the last token of the segment before it, which is what attention sees.
    length = segments.length.copy()
    joined = np.flatnonzero(segments.document == INSERTED_EOS)
    joined = joined[~np.isin(joined, segments.offsets[:-1])]
    joined = joined[segments.document[joined - 1] != PADDING]
    length[joined - 1] += length[joined]
    length[joined] = 0
    pairs = np.where(segments.document == PADDING, 0, length * (length + 1) // 2)
    ends = np.concatenate([[0], np.cumsum(pairs)])
    found: I64 = ends[segments.offsets[1:]] - ends[segments.offsets[:-1]]
    return found


def deal(costs: I64, ranks: int) -> I64:
    """Deal rows out so that the sums of ranks are even: equally many rows each.

    Rows go out in turns of one a rank, longest first: the longest of a turn to the rank with the least so far. Then
    ranks with more than the mean exchange rows with those that have less, all at once, while the largest sum falls.
    Numbers decide between equal ones, so the result follows from the costs alone.

    Args:
        costs: (batches, rows).
        ranks: divides the rows.

    Returns:
        (batches, ranks, rows of a rank): the numbers of the rows.

    >>> deal(np.array([[9, 1, 1, 1, 4, 4]]), 2).tolist()
    [[[0, 1, 3], [4, 5, 2]]]
    """
    dealt = deal_turns(costs, ranks)
    _exchange(costs, dealt)
    return dealt


def deal_turns(costs: I64, ranks: int, micro_batch: int = 1) -> I64:
    """Deal rows out so that ranks which meet at every micro-batch wait little.

    Rows sorted by cost, as many as a turn takes at a time to one turn: with one row each, no other turns have a smaller
    sum of largest costs. Within a turn rows are dealt by `deal`, and the largest share goes to the rank that has had
    least so far, so that sums even out too.

    Args:
        costs: (batches, rows).
        ranks: divides the rows.
        micro_batch: rows of a rank in a turn; the last turn may have fewer.

    Returns:
        (batches, ranks, rows of a rank): the numbers of the rows, turn by turn.

    >>> deal_turns(np.array([[9, 1, 1, 8]]), 2).tolist()
    [[[0, 2], [3, 1]]]
    """
    batches, rows = costs.shape
    which = _order(costs.max(initial=0) - costs)
    every = np.arange(batches)[:, None]
    load = np.zeros((batches, ranks), np.int64)
    turns = []
    for first in range(0, rows, ranks * micro_batch):
        here = which[:, first : first + ranks * micro_batch]
        if here.shape[1] == ranks:
            shares = here[:, :, None]  # the largest first, as they are sorted
            sums = _take(costs, here)
        else:
            shares = _take(here, deal(_take(costs, here), ranks))
            sums = _take(costs, shares).sum(axis=2)
            largest = _order(sums.max(initial=0) - sums)
            shares, sums = shares[every, largest], sums[every, largest]
        least = _order(load) if first else np.broadcast_to(np.arange(ranks), load.shape)
        turn = np.empty_like(shares)
        turn[every, least] = shares
        load[every, least] += sums
        turns.append(turn)
    return np.concatenate(turns, axis=2)


def dealt_in(way: str, costs: I64, ranks: int, micro_batch: int | None = None) -> I64:
    """Deal as `deal` or `deal_turns` by the name of the way; for any other without balance, row i to rank ``i %
    ranks``."""
    if way == STEP:
        return deal(costs, ranks)
    each = costs.shape[1] // ranks
    if way == TURN:
        return deal_turns(costs, ranks, micro_batch or each)
    plain = np.arange(costs.shape[1]).reshape(each, ranks).T
    return np.broadcast_to(plain, (len(costs), *plain.shape))


def dealt_order(parts: Iterable[I64], pairs: Callable[[I64], I64], ranks: int, batch: int) -> Iterator[I64]:
    """Order rows so that those of each global batch are dealt: row i of a batch is for rank ``i % ranks``.

    Args:
        parts: of the order, one after the other.
        pairs: of some rows.
        ranks: divides `batch`.
        batch: rows in a global batch; what fills none at the end stays as it is.

    >>> costs = np.array([9, 1, 8, 2])
    >>> [part.tolist() for part in dealt_order([np.array([0, 2, 1, 3])], lambda rows: costs[rows], 2, 4)]
    [[0, 2, 1, 3], []]
    """
    rest = np.empty(0, np.int64)
    for part in parts:
        rest = np.concatenate([rest, part])
        while len(rest) >= batch:
            some = max(1, min(len(rest), _DEALT) // batch) * batch
            rows, rest = rest[:some].reshape(-1, batch), rest[some:]
            dealt = deal(pairs(rows.reshape(-1)).reshape(rows.shape), ranks)
            yield _take(rows, dealt.transpose(0, 2, 1)).reshape(-1)
    yield rest


def waiting(costs: I64, dealt: I64, way: str = STEP, micro_batch: int = 1) -> npt.NDArray[np.float64]:
    """Return the share of each batch's time that ranks wait for the slowest.

    Args:
        costs: (batches, rows).
        dealt: (batches, ranks, rows of a rank).
        way: `STEP`: one minus the mean over the largest sum. `TURN`: the same, of sums over turns.
        micro_batch: rows of a turn.

    >>> waiting(np.array([[3, 1]]), np.array([[[0], [1]]])).tolist()
    [0.33333333333333337]
    """
    found = _take(costs, dealt)
    if way == STEP:
        shares = found.sum(axis=2, keepdims=True)
    else:
        shares = np.add.reduceat(found, np.arange(0, found.shape[2], micro_batch), axis=2)
    return _share(shares.mean(axis=1).sum(axis=1), shares.max(axis=1).sum(axis=1))


def least_waiting(costs: I64, ranks: int) -> npt.NDArray[np.float64]:
    """Return a bound for ranks that meet once a step: no dealing of equally many rows has a smaller share.

    The rank with the largest row has that, and at least the smallest others; and no rank that has most has less than
    the mean.
    """
    each = costs.shape[1] // ranks
    ordered = np.sort(costs, axis=1)
    mean = ordered.sum(axis=1) / ranks
    most = ordered[:, -1] + ordered[:, : each - 1].sum(axis=1)
    return _share(mean, np.maximum(mean, most))


def _exchange(costs: I64, dealt: I64) -> None:
    theirs = _take(costs, dealt)
    load = theirs.sum(axis=2)
    ranks = dealt.shape[1]
    half = ranks // 2
    mean = load.sum(axis=1) / ranks
    going = np.arange(len(dealt) if half else 0)
    for number in range(_EXCHANGES * ranks):
        going = going[~_near(load[going].max(axis=1), mean[going])]
        if not len(going):
            return
        # The most loaded rank with the least loaded, the next with the next: no rank is in two pairs. In later rounds
        # partners are others, since exchanging again with the same one seldom helps.
        order = _order(load[going])
        high, low = order[:, : -half - 1 : -1], np.roll(order[:, :half], number, axis=1)
        batch, pair = np.nonzero(~_near(load[going[:, None], high], mean[going, None]))
        helped = np.zeros(high.shape, np.bool_)
        helped[batch, pair] = _swap(theirs, dealt, load, going[batch], high[batch, pair], low[batch, pair, None])
        fell = helped[:, 0]
        for others in sorted({min(most, ranks - 1) for most in _OTHERS}):
            stuck = np.flatnonzero(~fell)
            if len(stuck):
                now = load[going[stuck]]
                least = _order(now)[:, :others]
                fell[stuck] = _swap(theirs, dealt, load, going[stuck], now.argmax(axis=1), least)
        going = going[fell]


def _near(load: I64, mean: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
    """Return whether the rank with this load makes others wait so little that it may stay."""
    near: npt.NDArray[np.bool_] = load * (1 - CLOSE) <= mean
    return near


def _swap(theirs: I64, dealt: I64, load: I64, batches: I64, high: I64, others: I64) -> npt.NDArray[np.bool_]:
    """Swap, in each batch, the row of the most loaded rank for that of another which lowers the larger sum most.

    Args:
        theirs: (batches, ranks, rows of a rank): costs of the rows dealt; they change places with the rows.
        others: (batches, ranks that may give a row).

    Returns:
        (batches): whether one did.
    """
    every = np.arange(len(batches))
    before = load[batches, high]
    less = load[batches[:, None], others]
    # Of a + b that become a - d and b + d the larger is half of (a + b) + |2d - (a - b)|.
    gap = before[:, None] - less
    high_rows = 2 * theirs[batches, high][:, None, :] - gap[:, :, None]
    twice = high_rows[:, :, :, None] - 2 * theirs[batches[:, None], others][:, :, None, :]
    np.abs(twice, out=twice)
    if others.shape[1] > 1:
        twice += (before[:, None] + less)[:, :, None, None]
    best = twice.reshape(len(batches), -1).argmin(axis=1)
    other, a, b = np.unravel_index(best, twice.shape[1:])
    other = others[every, other]
    moved = theirs[batches, high, a] - theirs[batches, other, b]
    helped: npt.NDArray[np.bool_] = np.maximum(before - moved, load[batches, other] + moved) < before
    of, high, other, a, b = (each[helped] for each in (batches, high, other, a, b))
    load[of, high] -= moved[helped]
    load[of, other] += moved[helped]
    for values in (dealt, theirs):
        values[of, high, a], values[of, other, b] = values[of, other, b], values[of, high, a]
    return helped


def _order(values: I64) -> I64:
    """Return the numbers of the values of each batch, the smallest first, equal ones in order.

    Packed numbers, each a value and its index, are sorted several times as fast as indices.

    >>> _order(np.array([[3, 1, 3, 0]])).tolist(), _order(np.array([[1 << 62, 1]])).tolist()
    ([[3, 1, 0, 2]], [[1, 0]])
    """
    bits = (values.shape[1] - 1).bit_length()
    if int(values.max(initial=0)) >> 63 - bits:
        return np.argsort(values, axis=1, kind="stable")
    packed: I64 = values << bits | np.arange(values.shape[1])
    packed.sort(axis=1)
    packed &= (1 << bits) - 1
    return packed


def _take(values: I64, which: I64) -> I64:
    """Take, from each batch, the values of these rows, in their shape."""
    found: I64 = values[np.arange(len(values)).reshape(-1, *[1] * (which.ndim - 1)), which]
    return found


def _share(mean: npt.NDArray[Any], largest: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    found: npt.NDArray[np.float64] = 1 - mean / np.maximum(largest, 1e-300)
    return np.where(largest > 0, found, 0.0)
