"""Plan a corpus window by window, so that memory holds the plan of a window, not of the corpus.

lengths ─windows─▶ lengths of a window ─strategy─▶ one plan for each row length ─join─▶ plans of the corpus

Where pieces are to begin at multiples of M tokens, for trainers that cut every document of a row into equal parts, no
strategy knows of it. It plans documents whose lengths are rounded up to M; where rows are multiples of M, too,
whatever it cuts and places begins at a multiple. Afterwards each piece gets its true length back, and padding the rest.

lengths ─rounded─▶ lengths, multiples of M ─windows, strategy, join─▶ plans ─restored─▶ the same, pieces with padding
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import TypeAlias, cast

import numpy as np

from packtool.planning.arrays import IN_MEMORY, Arrays, blocks
from packtool.planning.document_loss import DocumentLoss
from packtool.planning.packing.plans import RowsPlan
from packtool.planning.packing.scatter import scattered
from packtool.planning.packing.strategy import PackOptions, Strategy, mixes
from packtool.planning.packing.untrained import first_tokens, trimmed, with_targets
from packtool.planning.plan import I64, Ints, Plan, Segments, fill_up

Window: TypeAlias = tuple[int, int]
"""The documents ``first:last``."""
Over: TypeAlias = Callable[[Callable[[Window], list[RowsPlan]], Sequence[Window]], Iterable[list[RowsPlan]]]
"""Function that calls another one on every window, in order, as `map` does; perhaps in other processes."""

_BATCH = 1 << 18  # documents that are added up at a time
_UNITS = 1 << 14  # whose pieces are counted at a time


def plan_corpus(
    strategy: Strategy,
    lengths: Ints,
    options: PackOptions,
    arrays: Arrays = IN_MEMORY,
    ends: Sequence[int] = (),
    over: Over = map,
    loss: DocumentLoss | None = None,
    most: int | None = None,
) -> list[Plan]:
    """Plan a corpus with checked options: one plan for each row length, ascending.

    Args:
        lengths: tokens of each document with its EOS, at least 1.
        arrays: allocates arrays as long as the corpus.
        ends: where a window has to end, if the strategy plans windows.
        over: calls a function on every window.
        loss: of conversations that may be cut: pieces of them in which nothing trains are left out. None to keep all.
        most: tokens of a document that are planned, its first; the others count as dropped. None to plan all.
    """
    if len(lengths) and int(lengths.min()) < 1:
        raise ValueError("a stored document has at least one token, its EOS")
    if loss is None and most is None:
        return _plan_pieces(strategy, lengths, options, arrays, ends, over)
    planned = lengths
    if most is not None:
        planned = first_tokens(lengths, most, arrays)
    elif loss is not None and strategy.keeps_eos:  # `padding` gives the end of a document units of its own
        planned = trimmed(lengths, loss, options.longest_row, arrays)
    plans = _plan_pieces(strategy, planned, options, arrays, ends, over)
    return with_targets(plans, planned, lengths, loss, arrays, drops=most is not None)


def _plan_pieces(
    strategy: Strategy, lengths: Ints, options: PackOptions, arrays: Arrays, ends: Sequence[int], over: Over
) -> list[Plan]:
    if options.multiple == 1 or not strategy.rounds:
        return [*_plan_windows(strategy, lengths, options, arrays, ends, over)]
    planned = _rounded(strategy, lengths, options, arrays)
    return _restored(_plan_windows(strategy, planned, options, arrays, ends, over), planned, lengths)


def _plan_windows(
    strategy: Strategy, lengths: Ints, options: PackOptions, arrays: Arrays, ends: Sequence[int], over: Over
) -> Sequence[Plan]:
    if not strategy.windowed:
        return strategy.plan(lengths, options, arrays)
    windows = window_ranges(lengths, options.window_tokens, ends)
    if len(windows) < 2:
        return plan_window(strategy, lengths, options, (0, len(lengths)))
    plans = over(partial(plan_window, strategy, lengths, options), windows)
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
        begin, size = first, 0  # the window that is being filled: its first document, and its tokens so far
        for step in range(first, last, _BATCH):
            stop = min(step + _BATCH, last)
            totals = np.cumsum(lengths[step:stop], dtype=np.int64)
            before = -size
            while True:
                end = step + int(np.searchsorted(totals, before + tokens, side="right"))
                if end >= stop:
                    break
                end = max(end, begin + 1)
                ranges.append((begin, end))
                begin, before = end, 0
                if end > step:
                    before = int(totals[end - step - 1])
            size = int(totals[-1]) - before
        if begin < last:
            ranges.append((begin, last))
    return ranges


def plan_window(strategy: Strategy, lengths: Ints, options: PackOptions, window: Window) -> list[RowsPlan]:
    """Plan one window; its plans count documents from its first.

    Args:
        strategy: one that plans windows.
        lengths: of all documents.
    """
    first, last = window
    plans = cast("list[RowsPlan]", strategy.plan(lengths[first:last], options))
    if mixes(strategy, options):
        if strategy.mixes:
            plans = [scattered(each, options.seed) for each in plans]
        plans = [each.mixed(options.seed, first) for each in plans]
    most = options.max_documents_per_row
    if most is None:
        return plans
    return [each.limited(most) for each in plans]


def row_counts(
    strategy: Strategy,
    lengths: Ints,
    options: PackOptions,
    ends: Sequence[int] = (),
    loss: DocumentLoss | None = None,
    most: int | None = None,
) -> list[int]:
    """Count the rows that `plan_corpus` would plan of each row length, ascending.

    Exchanging segments takes most of the time of a plan, and changes the number of rows only where rows are limited, or
    left out, by the segments that they hold.

    >>> from packtool.planning.packing import STRATEGIES
    >>> row_counts(STRATEGIES["bfd"], np.array([5, 6, 3, 2]), PackOptions(sequence_length=8))
    [2]
    """
    if mixes(strategy, options) and options.max_documents_per_row is None and loss is None:
        if strategy.mixes:
            strategy = replace(strategy, plan=partial(_scattered, strategy.plan))
        options = replace(options, mix_rows=False)
    if most is not None and loss is None:  # then all that is planned stays, and what is left out need not be counted
        lengths, most = first_tokens(lengths, most), None
    return [plan.rows for plan in plan_corpus(strategy, lengths, options, ends=ends, loss=loss, most=most)]


def _scattered(plan: Callable[..., list[Plan]], lengths: Ints, options: PackOptions) -> list[Plan]:
    """Plan, and put segments into bins anew in random order, which may take fewer bins."""
    plans = cast("list[RowsPlan]", plan(lengths, options))
    return [scattered(each, options.seed) for each in plans]


def join_windows(parts: Sequence[tuple[int, list[RowsPlan]]], lengths: Ints, arrays: Arrays = IN_MEMORY) -> list[Plan]:
    """Join the plans of consecutive windows, given with the windows' first documents, to the plans of the corpus.

    Args:
        lengths: of all documents.
        arrays: allocates the arrays of the plans.
    """
    firsts = [first for first, _ in parts]
    buckets = zip(*(plans for _, plans in parts), strict=True)
    return [RowsPlan.join(bucket, lengths, firsts, arrays) for bucket in buckets]


def _rounded(strategy: Strategy, lengths: Ints, options: PackOptions, arrays: Arrays = IN_MEMORY) -> Ints:
    """Round lengths up to the multiple, for a strategy to plan.

    A piece that is an EOS alone would take M tokens of a row. A strategy that would leave it out never sees it.

    >>> from packtool.planning.packing import STRATEGIES
    >>> _rounded(STRATEGIES["bfd"], np.array([3, 4, 9]), PackOptions(sequence_length=8, document_multiple=4))
    array([4, 4, 8])
    """
    multiple = options.multiple
    row = 1
    if strategy.omits_eos:
        row = options.row_length
    longest = int(lengths.max(initial=0)) + multiple
    kind = np.promote_types(lengths.dtype, np.min_scalar_type(max(longest, row)))

    def up(first: int, last: int) -> Ints:
        tokens = lengths[first:last].astype(kind)
        if strategy.omits_eos:
            # Division by one number and multiplication are several times as fast as NumPy's remainder.
            tokens -= tokens - tokens // row * row == 1
        tokens += multiple - 1
        tokens //= multiple
        tokens *= multiple
        return tokens

    return arrays.filled(len(lengths), kind, up)


def _restored(plans: Sequence[Plan], planned: Ints, lengths: Ints) -> list[Plan]:
    """Give pieces of documents that were planned with rounded lengths their true lengths back.

    Args:
        plans: of all row lengths.
        planned: the lengths that `_rounded` made of `lengths`.

    >>> from packtool.planning.packing import STRATEGIES
    >>> options, lengths = PackOptions(sequence_length=8, document_multiple=4), np.array([3, 4])
    >>> planned = _rounded(STRATEGIES["concat"], lengths, options)
    >>> [plan] = _restored(STRATEGIES["concat"].plan(planned, options), planned, lengths)
    >>> segments = plan.segments(np.array([0]))
    >>> segments.document, segments.length
    (array([ 0, -1,  1]), array([3, 1, 4]))
    """
    dropped = eos_omitted = 0
    if any(plan.dropped or plan.eos_omitted for plan in plans):
        dropped, eos_omitted = _left_out(plans, lengths)
    else:
        for a, b in blocks(len(lengths)):
            eos_omitted += int(np.count_nonzero(planned[a:b] < lengths[a:b]))
    # With several row lengths the first plan accounts for the tokens that no plan holds.
    first, *others = plans
    return [_RoundedPlan(first, lengths, dropped, eos_omitted), *(_RoundedPlan(plan, lengths, 0, 0) for plan in others)]


def _left_out(plans: Sequence[Plan], lengths: Ints) -> tuple[int, int]:
    """Count text tokens and EOS that no plan holds: the strategy's own figures are of rounded lengths."""
    dropped, eos_omitted = int(lengths.sum(dtype=np.int64)) - len(lengths), len(lengths)
    for plan in plans:
        for unit in range(0, plan.units, _UNITS):
            pieces = plan.segments(np.arange(unit, min(unit + _UNITS, plan.units)))
            whole = lengths.take(pieces.document)
            ends = np.minimum(pieces.start + pieces.length, whole)
            eos = int(np.count_nonzero(ends == whole))
            dropped -= int(ends.sum() - pieces.start.sum() - pieces.repeated.sum()) - eos
            eos_omitted -= eos
    return dropped, eos_omitted


class _RoundedPlan(Plan):
    """The rows of a plan of rounded lengths, each piece with its own tokens, then padding up to the next multiple.

    Args:
        plan: of rounded lengths. It holds pieces of documents alone.
        lengths: tokens of each document with its EOS, as they are.
        dropped: text tokens that no unit holds.
        eos_omitted: stored EOS that no unit holds.
    """

    def __init__(self, plan: Plan, lengths: Ints, dropped: int, eos_omitted: int) -> None:
        super().__init__(**plan.facts() | {"dropped": dropped, "eos_omitted": eos_omitted})
        self._plan = plan
        self._lengths = lengths

    def segments(self, units: Ints) -> Segments:
        pieces = self._plan.segments(units)
        length: I64 = np.minimum(pieces.length, self._lengths.take(pieces.document) - pieces.start)
        # While it is filled up, each piece is its own group.
        filled = fill_up(replace(pieces, length=length, offsets=np.arange(len(pieces) + 1)), pieces.length - length)
        return replace(filled, offsets=filled.offsets.take(pieces.offsets))
