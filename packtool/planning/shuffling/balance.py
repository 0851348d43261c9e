"""Deal the rows of a global batch to ranks so that all are busy equally long.

With document masks a row costs the query-key pairs in its segments, and rows of one length differ in that: the slowest
rank decides how long a step takes. The rows of a global batch are known before training, so they are dealt out evenly.
The same rows are in every global batch as before, hence the same gradient; only the ranks differ. The linear part of
its tokens costs the same for all rows of one length: it changes how long ranks wait, not how rows are best dealt.

Costs come as (batches, rows) and are dealt batch by batch, many at a time since NumPy is quick with many.
"""

from __future__ import annotations

import numpy as np

from packtool.planning.plan import I64, INSERTED_EOS, PADDING, Segments, offsets_of

STEP = "step"
"""Ranks meet once a step: the sums of their rows are even."""
TURN = "turn"
"""Ranks meet at every micro-batch, as in FSDP: rows of like cost come in one turn."""
_CLOSE = 256  # a batch that takes one part in 256 longer than the least possible is done: there is little to gain
_CYCLES = 8  # most cycles of exchanges; in a cycle ranks meet others half of all ranks away, then a quarter, and so on
_CANDIDATES = 8  # rows of the other rank that each row is compared with at a time


def pairs_of(segments: Segments, multiple: int = 1) -> I64:
    """Count query-key pairs of each row under causal attention within documents.

    A run of padding is a separate sequence in `cu_seqlens` and document masks: it attends to itself, which takes as
    long as a document of that length. Padding that rounds a document up to a multiple is part of the document: devices
    among which documents are split take equal parts of both.

    Args:
        segments: of the rows, whose lengths are multiples themselves.
        multiple: pieces of documents begin at multiples of this many tokens.

    >>> rows = Segments(*(np.array(x) for x in ([0, 1, -1], [0, 0, 0], [3, 2, 4], [0, 0, 0], [0, 2, 3])))
    >>> pairs_of(rows).tolist()
    [9, 10]
    >>> pairs_of(Segments(*(np.array(x) for x in ([0, -1], [0, 0], [3, 5], [0, 0], [0, 2]))), multiple=4).tolist()
    [20]
    """
    # To attention, an EOS that the strategy inserted is the last token of the segment before it; so is padding that
    # follows padding.
    length = segments.length.copy()
    if multiple > 1:
        after = np.flatnonzero(segments.document == PADDING)
        # Padding begins where a piece ends, and is there before a piece begins. At a multiple it rounds nothing up.
        rounding = np.minimum(-offsets_of(length)[after] % multiple, length[after])
        length[after] -= rounding
        length[after - 1] += rounding
    begins = np.ones(len(segments), np.bool_)
    before, here = segments.document[:-1], segments.document[1:]
    begins[1:] = np.where(here == INSERTED_EOS, before == PADDING, (here != PADDING) | (before != PADDING))
    begins[segments.offsets[:-1][np.diff(segments.offsets) > 0]] = True
    sequences = np.flatnonzero(begins)
    if not len(sequences):
        return np.zeros(segments.groups, np.int64)
    tokens = np.add.reduceat(length, sequences)
    # Sequences before each row, since a row begins with one.
    first = np.searchsorted(sequences, segments.offsets)
    pairs = np.concatenate([[0], np.cumsum(tokens * (tokens + 1) // 2)])
    of_rows: I64 = pairs[first[1:]] - pairs[first[:-1]]
    return of_rows


def deal(costs: I64, ranks: int) -> I64:
    """Deal rows to ranks, the same number to every rank, so that the sums of their costs are even.

    Rows of similar cost are dealt in turns, one to each rank. Then ranks exchange rows in pairs, as long as that lowers
    the largest sum. Ties are broken by number, so the result follows from the costs alone.

    Args:
        costs: (batches, rows).
        ranks: divides the rows.

    Returns:
        (batches, ranks, rows of a rank): the numbers of the rows.

    >>> deal(np.array([[9, 1, 1, 1, 4, 4]]), 2).tolist()
    [[[0, 1, 3], [4, 5, 2]]]
    """
    dealt = deal_turns(costs, ranks)
    if min(dealt.shape[1:]) > 1:  # else an exchange changes nothing
        _exchange(costs, dealt)
    return dealt


def deal_turns(costs: I64, ranks: int, micro_batch: int = 1) -> I64:
    """Deal rows to ranks that meet at every micro-batch, so that they wait little.

    Rows are sorted by cost, and a turn takes the next ones: with one row for a rank, no other division into turns has a
    smaller sum of largest costs. Within a turn rows are dealt by `deal`, and the largest share goes to the rank with
    the smallest sum so far, so that the sums of ranks even out, too.

    Args:
        costs: (batches, rows).
        ranks: divides the rows.
        micro_batch: rows of a rank in a turn; the last turn may have fewer.

    Returns:
        (batches, ranks, rows of a rank): the numbers of the rows, turn by turn.

    >>> deal_turns(np.array([[9, 1, 1, 8]]), 2).tolist()
    [[[0, 2], [3, 1]]]
    """
    order = np.argsort(-costs, axis=1, kind="stable")
    load = np.zeros((len(costs), ranks), np.int64)
    turns = []
    # Ranks wait for the largest share of a turn, so rows that are alike belong in one turn.
    for rows in np.split(order, range(ranks * micro_batch, costs.shape[1], ranks * micro_batch), axis=1):
        shares = rows[:, :, None] if micro_batch == 1 else _take(rows, deal(_take(costs, rows), ranks))
        sums = _take(costs, shares).sum(axis=2)
        # Which rank has which share does not change how long the turn takes, but it evens out the step.
        least, largest = np.argsort(load, axis=1, kind="stable"), np.argsort(-sums, axis=1, kind="stable")
        mine = np.empty_like(largest)
        np.put_along_axis(mine, least, largest, axis=1)
        turns.append(_take(shares, mine))
        load += _take(sums, mine)
    return np.concatenate(turns, axis=2)


def _exchange(costs: I64, dealt: I64) -> None:
    """Exchange rows between ranks with much and ranks with less, while that lowers the largest sums.

    Dealing in turns leaves ranks apart by about as much as the rows of one turn differ, which is much where few rows
    are far longer than the others. One exchange swaps a row of a rank with much for a cheaper row of a rank with less.
    All batches exchange at once, in cycles:

        sums of 8 ranks, ascending      1  2  3  4  5  6  7  8
        4 apart: pairs                  8-1, 7-2, 6-3, 5-4
        2 apart, sorted anew: pairs     in each half of the ranks, 4-1, 3-2 and 8-5, 7-6
        1 apart, sorted anew: pairs     2-1, 4-3, 6-5, 8-7

    Args:
        costs: (batches, rows).
        dealt: (batches, ranks, rows of a rank); changes.
    """
    _, ranks, each = dealt.shape
    cost = _take(costs, dealt)
    load = cost.sum(axis=2)
    # No dealing takes less than the mean of ranks, nor less than the largest row with the smallest rows next to it. A
    # batch that has come down to about that is done. In integers, since floats may be rounded otherwise on another
    # processor, and ranks that deal differently would train rows twice.
    ordered = np.sort(costs, axis=1)
    beside_the_largest = ordered[:, : each - 1].sum(axis=1)
    least = np.maximum(costs.sum(axis=1) // ranks, ordered[:, -1] + beside_the_largest)
    enough = least + least // _CLOSE
    going = np.flatnonzero(load.max(axis=1) > enough)
    for cycle in range(_CYCLES):
        if not len(going):
            return
        before = load[going].max(axis=1)
        # Ranks that are far apart have most to exchange, so they go first; what they leave is evened out by nearer
        # ranks.
        apart = ranks // 2
        while apart:
            batch, high, low = _high_with_low(load, going, apart)
            # Nobody waits for a rank that has no more than enough: it need not be lowered.
            much = load[batch, high] > enough[batch]
            _swap(cost, dealt, load, (batch[much], high[much], low[much]), cycle)
            apart //= 2
        after = load[going].max(axis=1)
        # A cycle that lowered nothing is followed by others like it: give the batch up.
        going = going[(after > enough[going]) & (after < before)]


def _high_with_low(load: I64, batches: I64, apart: int) -> tuple[I64, I64, I64]:
    """Pair ranks by their load. A rank is in one pair at most, so all pairs can exchange rows at once.

    In blocks of twice `apart` ranks: the highest with the lowest, the second highest with the second lowest, and so on.

    Returns:
        Of each pair its batch, the rank with more, and the one with less.

    >>> _high_with_low(np.array([[5, 9, 1, 7]]), np.array([0]), 2)
    (array([0, 0]), array([3, 1]), array([0, 2]))
    """
    order = np.argsort(load[batches], axis=1, kind="stable")
    ranks = order.shape[1]
    # If the ranks are no whole number of blocks, the ranks with the least load are in no pair: nobody waits for them.
    left_over = ranks % (2 * apart)
    blocks = order[:, left_over:].reshape(len(order), ranks // (2 * apart), 2, apart)
    lower_half, upper_half = blocks[:, :, 0], blocks[:, :, 1]
    # Both halves ascend: one is turned around, so that the lowest meets the highest.
    low, high = lower_half[:, :, ::-1], upper_half
    pairs_of_a_batch = high[:1].size
    return np.repeat(batches, pairs_of_a_batch), high.reshape(-1), low.reshape(-1)


def _swap(cost: I64, dealt: I64, load: I64, pairs: tuple[I64, I64, I64], turn: int) -> None:
    """Swap in each pair of ranks the two rows that make the sums most alike, where that helps.

    A rank with 9 + 4 meets one with 6 + 1: the gap is 6, and a swap of 4 and 1 closes it, since it takes 3 from one sum
    and adds 3 to the other. So rows are looked for whose costs differ by half of the gap.

    Args:
        cost, dealt: (batches, ranks, rows of a rank): the costs of the rows, and their numbers; they change.
        load: (batches, ranks): the sums; they change.
        pairs: from `_high_with_low`.
        turn: which rows of the lower rank are looked at, if there are many.
    """
    batch, high, low = pairs
    gap = load[batch, high] - load[batch, low]
    # All rows with all others would take time that grows with the square of a rank's rows, for little more. So only
    # every step-th row of the lower rank is looked at, others in the next cycle.
    step = -(-cost.shape[2] // _CANDIDATES)
    begin = turn % step
    mine, theirs = cost[batch, high], cost[batch, low][:, begin::step]
    # The gap after each swap, |gap - 2 * (mine - theirs)|: pairs of ranks by rows of the one by rows of the other. Its
    # rows and columns are laid end to end, so that one argmin finds the best; of equals, the first by number.
    left = (2 * mine - gap[:, None])[:, :, None] - 2 * theirs[:, None, :]
    left = np.abs(left, out=left).reshape(len(batch), mine.shape[1] * theirs.shape[1])
    best = left.argmin(axis=1)
    gap_left = left[np.arange(len(best)), best]
    helps = np.flatnonzero(gap_left < gap)
    batch, high, low = batch[helps], high[helps], low[helps]
    given, taken = np.divmod(best[helps], theirs.shape[1])  # its row and column again
    here, there = (batch, high, given), (batch, low, begin + step * taken)
    moved = cost[here] - cost[there]
    # No rank is in two pairs, so no place is written twice.
    load[batch, high] -= moved
    load[batch, low] += moved
    for rows in (cost, dealt):
        rows[here], rows[there] = rows[there], rows[here]


def as_they_come(costs: I64, ranks: int) -> I64:
    """Deal row i of each batch to rank ``i % ranks``, as without balancing: (batches, ranks, rows of a rank)."""
    plain = np.arange(costs.shape[1]).reshape(-1, ranks).T
    return np.broadcast_to(plain, (len(costs), *plain.shape))


def dealt_in(way: str, costs: I64, ranks: int, micro_batch: int | None = None) -> I64:
    """Deal as `deal` or `deal_turns` does, or leave a batch as it is where that takes no longer.

    Args:
        way: `STEP` or `TURN`.
        costs, ranks: see `deal`.
        micro_batch: rows of a rank in a turn; by default all.
    """
    micro = micro_batch or costs.shape[1] // ranks
    plain = as_they_come(costs, ranks)
    dealt = deal(costs, ranks) if way == STEP else deal_turns(costs, ranks, micro)
    # Exchanging two rows at a time ends before the best: rows may come in an order that is better by chance, and rows
    # that are all alike need not move.
    better = time_taken(costs, dealt, way, micro) < time_taken(costs, plain, way, micro)
    return np.where(better[:, None, None], dealt, plain)


def time_taken(costs: I64, dealt: I64, way: str = STEP, micro_batch: int = 1) -> I64:
    """Add up the time of each batch if ranks wait for the slowest whenever they meet.

    Args:
        costs: (batches, rows).
        dealt: (batches, ranks, rows of a rank).
        way: `STEP`: the largest sum of a rank. `TURN`: the sum over turns of the largest share.
        micro_batch: rows of a turn.

    >>> time_taken(np.array([[3, 1]]), np.array([[[0], [1]]])).tolist()
    [3]
    """
    shares = _take(costs, dealt)
    meetings = [0] if way == STEP else range(0, shares.shape[2], micro_batch)
    taken: I64 = np.add.reduceat(shares, meetings, axis=2).max(axis=1).sum(axis=1)
    return taken


def _take(values: I64, which: I64) -> I64:
    """Take the values of these rows from each batch, in their shape."""
    taken: I64 = values[np.arange(len(values)).reshape(-1, *[1] * (which.ndim - 1)), which]
    return taken
