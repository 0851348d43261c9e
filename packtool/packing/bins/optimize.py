"""Near-optimal bins, and a proof of how near: column generation on the histogram of lengths.

A pattern is a bin's worth of lengths. The linear program that covers all items with the least (fractional) number of
patterns needs few of all patterns; each round adds those that its dual prices show to be missing. Prices prove a lower
bound for any packing. Rounding the solution down leaves few items, which are packed best fit.

Source: Gilmore and Gomory, A linear programming approach to the cutting-stock problem (1961); the bound is Farley's.
Needs scipy (HiGHS), an extra. The result depends on the version of scipy.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from packtool.errors import UsageError
from packtool.installing import how_to_install
from packtool.packing.bins.greedy import best_fit
from packtool.packing.bins.runs import Entry, Runs
from packtool.plan import I64

_GAIN = 1000  # bins within 1 / _GAIN of the trivial bound are left as they are
_ROUNDS = 200
_STEADY = 0.8  # weight of the best prices so far in those that are tried: single solutions jump about
_EPSILON = 1e-7

F64: TypeAlias = npt.NDArray[np.float64]
Pattern: TypeAlias = tuple[int, ...]
"""Indices of the lengths in a bin, ascending, each as often as it occurs."""


def near_optimal(counts: I64, capacity: int, greedy: Callable[[I64, int], Runs] = best_fit) -> tuple[Runs, int]:
    """Fill bins, and prove a number of bins that no packing goes below.

    Args:
        counts: number of items of each length, from length 0, of which there are none.
        capacity: tokens in a bin.
        greedy: the packing to better.

    Raises:
        UsageError: scipy is not installed.

    >>> counts = np.array([0, 0, 0, 12, 12, 0, 12])
    >>> runs, bound = near_optimal(counts, 13)
    >>> int(runs.bins.sum()), bound
    (12, 12)
    """
    solve = load_solver()
    start = greedy(counts, capacity)
    bins = int(start.bins.sum())
    lengths = np.flatnonzero(counts)
    bound = -(-int(counts @ np.arange(len(counts))) // capacity)
    if (bins - bound) * _GAIN <= bins:
        return start, bound
    patterns, used, proven = _generate(solve, lengths, counts[lengths], capacity, _patterns(start, lengths))
    bound = max(bound, proven)
    rounded = _round(patterns, used, lengths, counts, capacity)
    return (rounded if int(rounded.bins.sum()) < bins else start), bound


def load_solver() -> Callable[[list[Pattern], I64], tuple[F64, F64]]:
    """Return the solver of the linear program: how often each pattern is used, and the price of each length."""
    try:
        from scipy.optimize import linprog
        from scipy.sparse import csc_array
    except ImportError:
        raise UsageError(
            "missing-extra",
            "optimising needs scipy, which is not installed",
            remedy=f"install it: {how_to_install('scipy')}",
            where="--optimize",
        ) from None

    def solve(patterns: list[Pattern], demand: I64) -> tuple[F64, F64]:
        sizes = [len(pattern) for pattern in patterns]
        rows = np.concatenate([np.array(pattern) for pattern in patterns])
        columns = np.repeat(np.arange(len(patterns)), sizes)
        cover = csc_array((np.ones(len(rows)), (rows, columns)), shape=(len(demand), len(patterns)))
        solution: Any = linprog(np.ones(len(patterns)), A_ub=-cover, b_ub=-demand, method="highs-ipm")
        if solution.status:
            raise ArithmeticError(solution.message)
        return solution.x, np.maximum(-solution.ineqlin.marginals, 0)

    return solve


def _patterns(runs: Runs, lengths: I64) -> list[Pattern]:
    """List the patterns of bins, and one of each length alone, so that any demand can be met."""
    index = np.zeros(int(lengths[-1]) + 1, np.int64)
    index[lengths] = np.arange(len(lengths))
    patterns: dict[Pattern, None] = {(i,): None for i in range(len(lengths))}
    for first, last in zip(runs.offsets, runs.offsets[1:], strict=False):
        bin = np.repeat(index[runs.length[first:last]], runs.count[first:last])
        patterns[tuple(sorted(bin.tolist()))] = None
    return list(patterns)


def _generate(
    solve: Callable[[list[Pattern], I64], tuple[F64, F64]],
    lengths: I64,
    demand: I64,
    capacity: int,
    patterns: list[Pattern],
) -> tuple[list[Pattern], F64, int]:
    """Add patterns until none is missing; returns them, how often each is used, and the bound."""
    known = set(patterns)
    steady, best = lengths / capacity, 0.0
    for _ in range(_ROUNDS):
        used, prices = solve(patterns, demand)
        added: list[Pattern] = []
        for tried in (_STEADY * steady + (1 - _STEADY) * prices, prices):
            worth, last = _knapsack(lengths, tried, capacity)
            # A bin is worth at most worth[-1], so these prices, scaled, pay for no bin too much.
            bound = float(demand @ tried) / max(worth[-1], 1.0)
            if bound > best:
                steady, best = tried / max(worth[-1], 1.0), bound
            for item in np.flatnonzero(tried + worth[capacity - lengths] > 1 + _EPSILON).tolist():
                pattern = _pattern(lengths, last, capacity, item)
                if pattern not in known and prices[list(pattern)].sum() > 1 + _EPSILON:
                    known.add(pattern)
                    added.append(pattern)
            if added:
                break
        if not added or _whole(float(used.sum())) <= _whole(best):
            break
        patterns += added
    used = np.append(used, np.zeros(len(patterns) - len(used)))
    return patterns, used, _whole(best)


def _whole(bins: float) -> int:
    """Find the least number of bins that is no smaller, but for rounding errors."""
    return math.ceil(bins * (1 - 1e-9))


def _knapsack(lengths: I64, prices: F64, capacity: int) -> tuple[F64, I64]:
    """Find the most that items of each total length are worth, and the last item of it (-1: a token left empty)."""
    worth = np.zeros(capacity + 1)
    last = np.full(capacity + 1, -1)
    fitting = np.searchsorted(lengths, np.arange(capacity + 1), side="right").tolist()
    for total in range(1, capacity + 1):
        worth[total] = worth[total - 1]
        if some := fitting[total]:
            values = worth[total - lengths[:some]] + prices[:some]
            item = int(values.argmax())
            if values[item] > worth[total]:
                worth[total], last[total] = values[item], item
    return worth, last


def _pattern(lengths: I64, last: I64, capacity: int, item: int) -> Pattern:
    """Find the best bin that holds this item."""
    bin = [item]
    room = capacity - int(lengths[item])
    while room:
        item = int(last[room])
        if item < 0:
            room -= 1
        else:
            bin.append(item)
            room -= int(lengths[item])
    return tuple(sorted(bin))


def _round(patterns: list[Pattern], used: F64, lengths: I64, counts: I64, capacity: int) -> Runs:
    """Fill whole bins of the patterns, those used most first, then best-fit bins of the items that are left."""
    left = counts.copy()
    runs: list[tuple[int, list[Entry]]] = []
    for times, pattern in sorted(zip(np.floor(used + _EPSILON).astype(int).tolist(), patterns, strict=True))[::-1]:
        items, each = np.unique(lengths[list(pattern)], return_counts=True)
        bins = min(times, int((left[items] // each).min()))
        if bins:
            first = counts[items] - left[items]
            columns = (items[::-1].tolist(), each[::-1].tolist(), first[::-1].tolist())
            runs.append((bins, list(zip(*columns, strict=True))))
            left[items] -= bins * each
    return Runs.join([Runs.of(runs), best_fit(left, capacity).after(counts - left)])
