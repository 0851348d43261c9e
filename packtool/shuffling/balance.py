"""Deal the rows of a global batch to ranks so that all are busy equally long.

With document masks a row costs the query-key pairs in its segments, and rows of one length differ in that: the slowest
rank decides how long a step takes. The rows of a global batch are known before training, so they are dealt out evenly.
The same rows are in every global batch as before, hence the same gradient; only the ranks differ. Beside its pairs a
row costs the linear part of each of its tokens, which is the same for all rows of one length: it changes how long ranks
wait, not how rows are best dealt.

Costs come as (batches, rows) and are dealt batch by batch, many at a time since NumPy is quick with many.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from packtool.errors import UsageError
from packtool.plan import I64, INSERTED_EOS, PADDING, Segments

STEP = "step"
"""Ranks meet once a step: the sums of their rows are even."""
TURN = "turn"
"""Ranks meet at every micro-batch, as FSDP makes them: rows of like cost come in one turn."""

PER_HIDDEN = 5
"""Pairs that the linear part of a token costs, for each of the hidden size h: 72 h² operations a token and layer of a
dense decoder, forwards and backwards, against 14 h a pair, whose score is computed again backwards."""
CLOSE = 2.0**-10
"""Waiting share at which exchanging stops."""
_BATCHES = 64  # whose waiting is measured, spread evenly over the rows
_DEALT = 1 << 15  # rows of an order that are dealt at once
_EXCHANGES = 64  # rounds for each rank, at most
_COMPARED = 1 << 18  # pairs of rows that are compared at once, which bounds the memory
_OTHERS = 3  # ranks that a highly loaded one chooses from, at most, unless nothing helps

Packed: TypeAlias = npt.NDArray[np.signedinteger[Any]]
"""Rows as numbers that sort by cost, and sums of their costs."""


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
    of_rows: I64 = ends[segments.offsets[1:]] - ends[segments.offsets[:-1]]
    return of_rows


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
    [[[0, 3, 1], [5, 4, 2]]]
    """
    rows, bits = _packed(costs, ranks)
    rows.sort(axis=1)
    turns, load = _in_turns(rows[:, ::-1].reshape(len(costs), -1, ranks), bits)
    _exchange(turns, load, bits)
    return _numbers(turns, bits)


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
    [[[0, 1], [3, 2]]]
    """
    rows, bits = _packed(costs, ranks)
    rows.sort(axis=1)
    rows = rows[:, ::-1]
    if micro_batch == 1:
        return _numbers(_in_turns(rows.reshape(len(costs), -1, ranks), bits)[0], bits)
    which = rows & (1 << bits) - 1
    cuts = range(ranks * micro_batch, costs.shape[1], ranks * micro_batch)
    shares = [_take(here, deal(_take(costs, here), ranks)) for here in np.split(which, cuts, axis=1)]
    sums = np.concatenate([_take(costs, share).sum(axis=2) for share in shares], axis=1)
    every, bits = _packed(sums, ranks)
    every = np.sort(every.reshape(len(costs), -1, ranks), axis=2)[:, :, ::-1]
    chosen = _numbers(_in_turns(every, bits)[0], bits) % ranks
    return np.concatenate([_take(share, chosen[:, :, turn]) for turn, share in enumerate(shares)], axis=2)


def dealt_in(way: str, costs: I64, ranks: int, micro_batch: int | None = None) -> I64:
    """Deal as `deal` or `deal_turns`, by the name of the way; for any other name, row i to rank ``i % ranks``."""
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
    dealt_costs = _take(costs, dealt)
    if way == STEP:
        shares = dealt_costs.sum(axis=2, keepdims=True)
    else:
        shares = np.add.reduceat(dealt_costs, np.arange(0, dealt_costs.shape[2], micro_batch), axis=2)
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


def _packed(costs: I64, ranks: int) -> tuple[Packed, int]:
    """Pack each row into one number that sorts by cost: the leading bits of its cost, and below them its own number.

    What exchanging computes then fits into 32 bits, which are several times as fast to sort and compare as 64. They
    hold 18 bits of the largest cost or more; else 64 are taken. The largest sum is no less than the largest cost, so
    what is cut off is next to nothing of it.

    Returns:
        (batches, rows); and how many bits the row's number has.
    """
    each, rank = ((count - 1).bit_length() for count in (costs.shape[1] // ranks, ranks))
    # Below a cost lies the row's number; or, in `_swap`, the numbers of two rows of a rank, where sums of all rows of a
    # rank need that many bits above it, too.
    beside = max(each + rank, 3 * each + 4)
    kind, wide = (np.int32, 31) if 31 - beside >= 18 else (np.int64, 63)
    spare = np.frexp(costs.max(axis=1, initial=0, keepdims=True).astype(np.float64))[1] - (wide - beside)
    packed = (costs >> np.maximum(spare, 0)).astype(kind)
    packed <<= each + rank
    packed |= np.arange(costs.shape[1], dtype=kind)
    return packed, each + rank


def _numbers(turns: Packed, bits: int) -> I64:
    """Return the numbers of packed rows as (batches, ranks, turns)."""
    return (turns & (1 << bits) - 1).transpose(1, 2, 0).astype(np.int64)


def _in_turns(rows: Packed, bits: int) -> tuple[Packed, Packed]:
    """Deal one row a turn to each rank, the largest of the turn to the rank with the least so far.

    Args:
        rows: (batches, turns, ranks), packed; each turn sorted, the largest first.

    Returns:
        (turns, batches, ranks): packed rows; and the sums of the ranks.
    """
    turns = np.ascontiguousarray(rows.transpose(1, 0, 2))
    load = turns[0] >> bits
    for number, turn in enumerate(turns[1:], 1):
        turn.reshape(-1)[_least_first(load)] = rows[:, number]
        load += turn >> bits
    return turns, load


def _exchange(turns: Packed, load: Packed, bits: int) -> None:
    """Exchange rows between ranks above the mean and those with the least, while that lowers the larger sum."""
    _, batches, ranks = turns.shape
    near = (load.sum(axis=1, dtype=np.int64) / ranks / (1 - CLOSE)).astype(load.dtype)
    going = np.arange(batches)
    for number in range(_EXCHANGES * ranks):
        now = load.take(going, axis=0)
        above = np.minimum((now > near.take(going)[:, None]).sum(axis=1), ranks // 2)
        now, going, above = now[above > 0], going[above > 0], above[above > 0]
        if not len(going):
            return
        # No rank is in two exchanges of a round. The fewer are left, the more others each may choose from.
        order = _least_first(now, going)
        batch, place = np.nonzero(np.arange(ranks // 2) < above[:, None])
        first = batch * ranks
        low = place[:, None]
        if number > 1:
            apart = above.take(batch)[:, None]
            low = low + apart * np.arange(min(1 + number // 2, _OTHERS))
            low = np.where(low < ranks - apart, low, place[:, None])
        high, low = order.take(first + ranks - 1 - place), order.take(first[:, None] + low)
        helped = np.logical_or.reduceat(_swap(turns, load, bits, high, low), np.cumsum(above) - above)
        # Where none of a batch's exchanges helped, its highest rank tries all others; if none helps then, it is done.
        stuck = np.flatnonzero(~helped)
        if len(stuck):
            order = _least_first(load.take(going.take(stuck), axis=0), going.take(stuck))
            helped[stuck] = _swap(turns, load, bits, order[:, -1], order[:, :-1])
        going = going[helped]


def _swap(turns: Packed, load: Packed, bits: int, high: I64, low: I64) -> npt.NDArray[np.bool_]:
    """Swap one row of each highly loaded rank for that of another which makes the larger of their sums least.

    Args:
        turns, load: change.
        high: ranks, numbered through all batches.
        low: (highly loaded ranks, others to choose from).

    Returns:
        (highly loaded ranks): whether there was such a row.
    """
    each, total = len(turns), load.size
    rows, load = turns.reshape(each, total), load.reshape(total)
    before, less = load.take(high)[:, None], load.take(low)
    # Of a + b that become a - d and b + d the larger is half of (a + b) + |2d - (a - b)|. The bits below say which two
    # rows make d: their number above 0, and what is left of it to the next power of two below 0.
    shift = (each - 1).bit_length()
    below, mask = 2 * shift + 1, (1 << shift) - 1
    one = np.arange(each, dtype=rows.dtype)[:, None]
    mine = rows.take(high, axis=1)
    mine >>= bits
    mine <<= below + 1
    mine += one << shift
    mine = mine[:, :, None] - ((before - less) << below)
    theirs = rows.take(low, axis=1)
    theirs >>= bits
    theirs <<= below + 1
    theirs -= one[:, :, None]
    least = np.empty(low.shape, rows.dtype)
    step = max(1, _COMPARED // (each * each * low.shape[1]))
    for first in range(0, len(high), step):
        larger = mine[:, None, first : first + step] - theirs[:, first : first + step]
        np.abs(larger, out=larger)
        least[first : first + step] = larger.reshape(each * each, -1, low.shape[1]).min(axis=0)
    chosen = np.arange(len(high)) * low.shape[1]
    if low.shape[1] > 1:
        chosen += ((least >> below) + (before + less)).argmin(axis=1)
    other, least = low.take(chosen), least.take(chosen)
    least &= (1 << below) - 1
    least = np.minimum(least, (1 << below) - least)
    a, b = (least >> shift) * total + high, (least & mask) * total + other
    moved = (rows.take(a) >> bits) - (rows.take(b) >> bits)
    helped: npt.NDArray[np.bool_] = np.maximum(load.take(high) - moved, load.take(other) + moved) < before[:, 0]
    a, b, high, other, moved = (values[helped] for values in (a, b, high, other, moved))
    flat = rows.reshape(-1)
    flat[a], flat[b] = flat[b], flat[a]
    load[high] -= moved
    load[other] += moved
    return helped


def _least_first(load: Packed, batches: I64 | None = None) -> I64:
    """Order the ranks of each batch, the least loaded first, numbered through all batches.

    Args:
        load: (some batches, ranks).
        batches: which they are, if not all.
    """
    count, ranks = load.shape
    bits = (ranks - 1).bit_length()
    order = load << bits | np.arange(ranks, dtype=load.dtype)
    order.sort(axis=1)
    ranked: I64 = (order & (1 << bits) - 1) + ranks * (np.arange(count) if batches is None else batches)[:, None]
    return ranked


def _take(values: I64, which: I64) -> I64:
    """Take the values of these rows from each batch, in their shape."""
    taken: I64 = values[np.arange(len(values)).reshape(-1, *[1] * (which.ndim - 1)), which]
    return taken


def _share(mean: npt.NDArray[Any], largest: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    share: npt.NDArray[np.float64] = 1 - mean / np.maximum(largest, 1e-300)
    return np.where(largest > 0, share, 0.0)
