"""Pieces that begin at multiples of M tokens, for trainers that cut every document of a row into equal parts.

No strategy knows of this. It plans documents whose lengths are rounded up to M; where rows are multiples of M, too,
whatever it cuts and places begins at a multiple. Afterwards each piece gets its true length back, and padding the rest.

    lengths ─rounded─▶ lengths, multiples of M ─strategy─▶ plans ─restored─▶ the same plans, with padding after pieces
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace

import numpy as np

from packtool.planning.arrays import IN_MEMORY, Arrays, blocks
from packtool.planning.packing.strategy import PackOptions, Strategy
from packtool.planning.plan import I64, Ints, Plan, Segments, fill_up

_UNITS = 1 << 14  # whose pieces are counted at a time


def rounded(strategy: Strategy, lengths: Ints, options: PackOptions, arrays: Arrays = IN_MEMORY) -> Ints:
    """Round lengths up to the multiple, for a strategy to plan.

    A piece that is an EOS alone would take M tokens of a row. A strategy that would leave it out never sees it.

    >>> from packtool.planning.packing import STRATEGIES
    >>> rounded(STRATEGIES["bfd"], np.array([3, 4, 9]), PackOptions(sequence_length=8, document_multiple=4))
    array([4, 4, 8])
    """
    multiple = options.multiple
    row = options.row_length if strategy.omits_eos else 1
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


def restored(plans: Sequence[Plan], planned: Ints, lengths: Ints) -> list[Plan]:
    """Give pieces of documents that were planned with rounded lengths their true lengths back.

    Args:
        plans: of all row lengths.
        planned: the lengths that `rounded` made of `lengths`.

    >>> from packtool.planning.packing import STRATEGIES
    >>> options, lengths = PackOptions(sequence_length=8, document_multiple=4), np.array([3, 4])
    >>> planned = rounded(STRATEGIES["concat"], lengths, options)
    >>> [plan] = restored(STRATEGIES["concat"].plan(planned, options), planned, lengths)
    >>> segments = plan.segments(np.array([0]))
    >>> segments.document, segments.length
    (array([ 0, -1,  1]), array([3, 1, 4]))
    """
    if any(plan.dropped or plan.eos_omitted for plan in plans):
        dropped, eos_omitted = _left_out(plans, lengths)
    else:
        dropped, eos_omitted = (
            0,
            sum(int(np.count_nonzero(planned[a:b] < lengths[a:b])) for a, b in blocks(len(lengths))),
        )
    # With several row lengths the first plan accounts for the tokens that no plan holds.
    first, *others = plans
    return [RoundedPlan(first, lengths, dropped, eos_omitted), *(RoundedPlan(plan, lengths, 0, 0) for plan in others)]


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


class RoundedPlan(Plan):
    """The rows of a plan of rounded lengths, each piece with its own tokens, then padding up to the next multiple.

    Args:
        plan: of rounded lengths. It holds pieces of documents alone.
        lengths: tokens of each document with its EOS, as they are.
        dropped: text tokens that no unit holds.
        eos_omitted: stored EOS that no unit holds.
    """

    def __init__(self, plan: Plan, lengths: Ints, dropped: int, eos_omitted: int) -> None:
        same = {field.name: getattr(plan, field.name) for field in fields(Plan)}
        super().__init__(**{**same, "dropped": dropped, "eos_omitted": eos_omitted})
        self._plan = plan
        self._lengths = lengths

    def segments(self, units: Ints) -> Segments:
        pieces = self._plan.segments(units)
        held: I64 = np.minimum(pieces.length, self._lengths.take(pieces.document) - pieces.start)
        # While it is filled up, each piece is its own group.
        filled = fill_up(replace(pieces, length=held, offsets=np.arange(len(pieces) + 1)), pieces.length - held)
        return replace(filled, offsets=filled.offsets.take(pieces.offsets))
