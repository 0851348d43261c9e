"""Plan a corpus window by window, so that memory holds the plan of a window, not of the corpus.

lengths ─windows─▶ lengths of a window ─strategy─▶ one plan for each row length ─join─▶ plans of the corpus
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import pairwise
from typing import TypeAlias, cast

import numpy as np

from packtool.planning.arrays import IN_MEMORY, Arrays
from packtool.planning.document_loss import DocumentLoss
from packtool.planning.packing.plans import RowsPlan
from packtool.planning.packing.rounding import restored, rounded
from packtool.planning.packing.scatter import scattered
from packtool.planning.packing.strategy import PackOptions, Strategy, mixes
from packtool.planning.packing.untrained import trimmed, with_targets
from packtool.planning.plan import Ints, Plan

Window: TypeAlias = tuple[int, int]
"""The documents ``first:last``."""
Over: TypeAlias = Callable[[Callable[[Window], list[RowsPlan]], Sequence[Window]], Iterable[list[RowsPlan]]]
"""Function that calls another one on every window, in order, as `map` does; perhaps in other processes."""

_BATCH = 1 << 18  # documents that are added up at a time


def plan_corpus(
    strategy: Strategy,
    lengths: Ints,
    options: PackOptions,
    arrays: Arrays = IN_MEMORY,
    ends: Sequence[int] = (),
    over: Over = map,
    loss: DocumentLoss | None = None,
) -> list[Plan]:
    """Plan a corpus with checked options: one plan for each row length, ascending.

    Args:
        lengths: tokens of each document with its EOS, at least 1.
        arrays: allocates arrays as long as the corpus.
        ends: where a window has to end, if the strategy plans windows.
        over: calls a function on every window.
        loss: of conversations that may be cut: pieces of them in which nothing trains are left out. None to keep all.
    """
    if len(lengths) and int(lengths.min()) < 1:
        raise ValueError("a stored document has at least one token, its EOS")
    if loss is None:
        return _plan_pieces(strategy, lengths, options, arrays, ends, over)
    planned = lengths
    if strategy.keeps_eos:  # `padding` gives the end of a document units of its own
        planned = trimmed(lengths, loss, options.sequence_length or max(options.buckets), arrays)
    plans = _plan_pieces(strategy, planned, options, arrays, ends, over)
    return with_targets(plans, planned, lengths, loss, arrays)


def _plan_pieces(
    strategy: Strategy, lengths: Ints, options: PackOptions, arrays: Arrays, ends: Sequence[int], over: Over
) -> list[Plan]:
    if options.multiple == 1 or not strategy.rounds:
        return [*_plan_windows(strategy, lengths, options, arrays, ends, over)]
    planned = rounded(strategy, lengths, options, arrays)
    return restored(_plan_windows(strategy, planned, options, arrays, ends, over), planned, lengths)


def _plan_windows(
    strategy: Strategy, lengths: Ints, options: PackOptions, arrays: Arrays, ends: Sequence[int], over: Over
) -> Sequence[Plan]:
    if not strategy.windowed:
        return strategy.plan(lengths, options, arrays)
    windows = window_ranges(lengths, options.window_tokens, ends)
    if len(windows) < 2:
        return plan_window(strategy, lengths, options, (0, len(lengths)))
    steps = partial(_plan, strategy.plan, lengths, options, mixes(strategy, options), strategy.mixes)
    plans = over(steps, windows)
    return join_windows(list(zip([first for first, _ in windows], plans, strict=True)), lengths, arrays)


def window_ranges(lengths: Ints, tokens: int, ends: Sequence[int] = ()) -> list[tuple[int, int]]:
    """Divide documents into windows, ranges ``first:last``: as many as hold `tokens` tokens, at least one.

    Args:
        lengths: of all documents.
        tokens: tokens in a window at most, unless one document alone holds more.
        ends: where a window has to end.

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
            while True:
                end = step + int(np.searchsorted(totals, before + tokens, side="right"))
                if end >= stop:
                    break
                end = max(end, begin + 1)
                ranges.append((begin, end))
                begin, before = end, 0
                if end > step:
                    before = int(totals[end - step - 1])
            held = int(totals[-1]) - before
        if begin < last:
            ranges.append((begin, last))
    return ranges


def plan_window(strategy: Strategy, lengths: Ints, options: PackOptions, window: Window) -> list[RowsPlan]:
    """Plan one window; its plans count documents from its first.

    Args:
        strategy: one that plans windows.
        lengths: of all documents.
    """
    return _plan(strategy.plan, lengths, options, mixes(strategy, options), strategy.mixes, window)


def _plan(
    plan: Callable[..., list[Plan]], lengths: Ints, options: PackOptions, mixed: bool, scatters: bool, window: Window
) -> list[RowsPlan]:
    first, last = window
    plans = cast("list[RowsPlan]", plan(lengths[first:last], options))
    if mixed and scatters:
        plans = [scattered(each, options.seed) for each in plans]
    if mixed:
        plans = [each.mixed(options.seed, first) for each in plans]
    most = options.max_documents_per_row
    if most is None:
        return plans
    return [each.limited(most) for each in plans]


def join_windows(parts: Sequence[tuple[int, list[RowsPlan]]], lengths: Ints, arrays: Arrays = IN_MEMORY) -> list[Plan]:
    """Join the plans of consecutive windows, given with the windows' first documents, to the plans of the corpus.

    Args:
        lengths: of all documents.
        arrays: allocates the arrays of the plans.
    """
    firsts = [first for first, _ in parts]
    buckets = zip(*(plans for _, plans in parts), strict=True)
    return [RowsPlan.join(bucket, lengths, firsts, arrays) for bucket in buckets]
