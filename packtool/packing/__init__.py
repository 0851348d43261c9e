"""Strategies: pure functions from document lengths to plans, one file each.

lengths ─windows─▶ lengths of a window ─strategy─▶ one plan for each row length ─join─▶ plans of the corpus
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from itertools import pairwise
from typing import cast

import numpy as np

from packtool.arrays import IN_MEMORY, Arrays
from packtool.errors import UsageError
from packtool.options import names
from packtool.packing.plans import RowsPlan
from packtool.packing.strategy import PackOptions, Strategy, check, mixes
from packtool.plan import Ints, Plan

__all__ = [
    "STRATEGIES",
    "PackOptions",
    "Strategy",
    "join_windows",
    "plan",
    "plan_window",
    "strategy",
    "window_ranges",
]

_BATCH = 1 << 18  # documents that are added up at a time

_modules = [import_module(f"{__name__}.{name.replace('-', '_')}") for name in names.STRATEGIES]
STRATEGIES: dict[str, Strategy] = {module.STRATEGY.name: module.STRATEGY for module in _modules}
"""Every strategy by its name, in the order of the documentation."""


def strategy(name: str) -> Strategy:
    """Look up a strategy by its name.

    Raises:
        UsageError: there is none; lists those there are.
    """
    if name not in STRATEGIES:
        raise UsageError(
            "unknown-strategy",
            f"there is no strategy {name!r}",
            remedy=names.meant_strategy(name, {each.name: each.summary for each in STRATEGIES.values()}),
            where="--strategy",
        )
    return STRATEGIES[name]


def plan(
    name: str, lengths: Ints, options: PackOptions, arrays: Arrays = IN_MEMORY, ends: Sequence[int] = ()
) -> list[Plan]:
    """Plan a corpus, one for each row length in ascending order.

    Args:
        name: a strategy of `STRATEGIES`.
        lengths: tokens of each document with its EOS, at least 1 each.
        options: what the strategy takes.
        arrays: makes those that are as long as the corpus.
        ends: where a window of documents ends in any case, if the strategy plans windows.

    Raises:
        UsageError: the name or an option makes no sense.

    >>> whole, = plan("concat", np.array([5, 4]), PackOptions(sequence_length=4))
    >>> whole.rows, whole.segments(np.array([1])).document
    (3, array([0, 1]))
    """
    chosen = strategy(name)
    check(chosen, options)
    if len(lengths) and int(lengths.min()) < 1:
        raise ValueError("a stored document has at least one token, its EOS")
    if not chosen.windowed:
        return chosen.plan(lengths, options, arrays)
    windows = window_ranges(lengths, options.window_tokens, ends)
    if len(windows) < 2:
        return [*plan_window(name, lengths, options, 0)]
    parts = [(first, plan_window(name, lengths[first:last], options, first)) for first, last in windows]
    return join_windows(parts, lengths, arrays)


def window_ranges(lengths: Ints, tokens: int, ends: Sequence[int] = ()) -> list[tuple[int, int]]:
    """Divide documents into windows, ranges ``first:last``: as many as hold `tokens` tokens, at least one.

    Args:
        lengths: of all documents.
        tokens: tokens in a window at most, unless one document alone holds more.
        ends: where a window ends in any case.

    >>> window_ranges(np.array([3, 2, 2, 9, 1]), tokens=7, ends=[2])
    [(0, 2), (2, 3), (3, 4), (4, 5)]
    """
    ranges = []
    for first, last in pairwise(sorted({0, *ends, len(lengths)})):
        begin, held = first, 0  # the window that is being filled: its first document, and its tokens so far
        for step in range(first, last, _BATCH):
            stop = min(step + _BATCH, last)
            totals = np.cumsum(lengths[step:stop], dtype=np.int64)
            before = -held
            while (end := step + int(np.searchsorted(totals, before + tokens, side="right"))) < stop:
                end = max(end, begin + 1)
                ranges.append((begin, end))
                begin, before = end, int(totals[end - step - 1]) if end > step else 0
            held = int(totals[-1]) - before
        if begin < last:
            ranges.append((begin, last))
    return ranges


def plan_window(name: str, lengths: Ints, options: PackOptions, first: int) -> list[RowsPlan]:
    """Plan one window; its plans count documents from its first.

    Args:
        name: a windowed strategy.
        lengths: of its documents.
        options: what the strategy takes.
        first: its first document.
    """
    chosen = strategy(name)
    check(chosen, options)
    plans = cast("list[RowsPlan]", chosen.plan(lengths, options))
    if not mixes(chosen, options):
        return plans
    return [each.mixed(options.seed, first) for each in plans]


def join_windows(parts: Sequence[tuple[int, list[RowsPlan]]], lengths: Ints, arrays: Arrays = IN_MEMORY) -> list[Plan]:
    """Join the plans of consecutive windows, each with its first document, to those of the corpus.

    Args:
        lengths: of all documents.
        arrays: makes those of the plans.
    """
    firsts = [first for first, _ in parts]
    buckets = zip(*(plans for _, plans in parts), strict=True)
    return [RowsPlan.join(bucket, lengths, firsts, arrays) for bucket in buckets]
