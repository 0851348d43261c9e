"""Leave out the ends of long documents, or the pieces of cut conversations in which nothing trains.

A strategy knows lengths alone, and cuts a conversation that is longer than a row wherever a row ends. A row may then
hold nothing but a part of a long prompt: it costs as much as any other row, and the mean loss over it is no number.

    lengths ─trimmed─▶ lengths without ends that do not train ─strategy─▶ plans ─with_targets─▶ units that train

Of documents of which only the first tokens are asked for, these are the lengths that are planned.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from packtool.planning.arrays import IN_MEMORY, Arrays, blocks
from packtool.planning.document_loss import DocumentLoss
from packtool.planning.plan import I64, INSERTED_EOS, Ints, Mask, Plan, Segments, distinct, index_type

_TOKENS = 1 << 22  # whose loss is read at a time


def trimmed(lengths: Ints, loss: DocumentLoss, row_length: int, arrays: Arrays = IN_MEMORY) -> Ints:
    """Leave out the end of a conversation beyond its last full row, if nothing in it trains.

    Args:
        lengths: tokens of each document with its EOS.
        row_length: tokens in a row.
        arrays: allocates arrays as long as the corpus.

    Returns:
        The lengths to plan.
    """
    longer: I64 = arrays.where(len(lengths), lambda a, b: lengths[a:b] > row_length, np.int64)
    longer = longer[loss.says(longer)]
    planned: Ints = arrays.filled(len(lengths), lengths.dtype, lambda a, b: lengths[a:b])
    step = max(1, _TOKENS // row_length)
    for first in range(0, len(longer), step):
        document = longer[first : first + step]
        rest = lengths[document].astype(np.int64) % row_length
        document, rest = document[rest > 0], rest[rest > 0]
        full = lengths[document] - rest
        idle = ~loss.in_pieces(document, full, rest)
        planned[document[idle]] = full[idle]
    return planned


def first_tokens(lengths: Ints, most: int, arrays: Arrays = IN_MEMORY) -> Ints:
    """Return the lengths of documents of which at most so many tokens are planned, the first.

    >>> first_tokens(np.array([3, 9], np.uint16), 4), first_tokens(np.array([3, 9], np.uint16), 1 << 20)
    (array([3, 4], dtype=uint16), array([3, 9], dtype=uint16))
    """
    top = lengths.dtype.type(min(most, np.iinfo(lengths.dtype).max))
    first: Ints = arrays.filled(len(lengths), lengths.dtype, lambda a, b: np.minimum(lengths[a:b], top))
    return first


def text_beyond(lengths: Ints, most: int) -> int:
    """Count the text tokens of documents after the first `most` tokens; EOS is no text.

    >>> text_beyond(np.array([3, 4, 5, 9]), 4)
    4
    """
    beyond = 0
    for a, b in blocks(len(lengths)):
        beyond += int(np.maximum(lengths[a:b].astype(np.int64) - (most + 1), 0).sum())
    return beyond


def with_targets(
    plans: Sequence[Plan],
    planned: Ints,
    lengths: Ints,
    loss: DocumentLoss | None,
    arrays: Arrays = IN_MEMORY,
    *,
    drops: bool = False,
) -> list[Plan]:
    """Account for the ends that were not planned; leave out the units in which no token is a target, if they hold
    pieces of cut conversations alone.

    Args:
        plans: of all row lengths.
        planned: the lengths that `trimmed` or `first_tokens` made of `lengths`, and that were planned.
        lengths: tokens of each document with its EOS.
        loss: of the documents; None if all tokens train.
        arrays: allocates arrays as long as the plans.
        drops: the ends count as dropped, rather than as untrained.

    >>> from packtool.planning.packing import PackOptions, plan
    >>> lengths, trains = np.array([10]), np.array([0, 0, 0, 0, 0, 1, 0, 0, 0, 0], np.uint8)
    >>> def read(pieces):
    ...     return np.concatenate([trains[a : a + n] for a, n in zip(pieces.start, pieces.length)])
    >>> loss = DocumentLoss(read, [1], [True])
    >>> planned = trimmed(lengths, loss, row_length=4)
    >>> planned
    array([8])
    >>> [rows] = with_targets(plan("bfd", planned, PackOptions(sequence_length=4)), planned, lengths, loss)
    >>> rows.segments(np.arange(rows.rows)).start, rows.untrained, rows.eos_omitted
    (array([4]), 5, 1)
    """
    # A strategy takes the last token of a document for its EOS. Of a trimmed one it is text.
    without_end = ends = 0
    for a, b in blocks(len(lengths)):
        left_out = lengths[a:b].astype(np.int64) - planned[a:b]
        without_end += int(np.count_nonzero(left_out))
        ends += int(left_out.sum())
    ends -= without_end  # EOS is no text
    kept = [KeptUnits.of(plan, lengths, loss, arrays) for plan in plans]
    if not without_end and not any(units.left_out for units in kept):
        return list(plans)
    not_placed = sum(plan.dropped + plan.eos_omitted for plan in plans)
    eos_not_placed = len(lengths) - without_end - sum(units.eos for units in kept)
    # With several row lengths the first plan accounts for the tokens that no plan holds.
    dropped, eos_omitted, untrained = not_placed - eos_not_placed, without_end + eos_not_placed, ends
    if drops:
        dropped, untrained = dropped + ends, 0
    trained: list[Plan] = []
    for plan, units in zip(plans, kept, strict=True):
        eos_omitted += units.eos_left_out
        untrained += units.text_left_out
        trained.append(TrainedPlan(plan, units, dropped, eos_omitted, untrained))
        dropped = eos_omitted = untrained = 0
    return trained


@dataclass(frozen=True)
class KeptUnits:
    """The units of a plan that are kept, and what the others hold."""

    numbers: Ints  # of the units that are kept, ascending
    eos: int  # stored EOS in all units
    left_out: int  # units
    text_left_out: int  # text tokens in these alone
    eos_left_out: int
    inserted_left_out: int  # EOS that the strategy inserted

    @classmethod
    def of(cls, plan: Plan, lengths: Ints, loss: DocumentLoss | None, arrays: Arrays) -> KeptUnits:
        """Look at all units of a plan; without a loss all of them are kept."""
        numbers: list[Ints] = []
        counts = np.zeros(4, np.int64)
        before = True  # whether the unit before is kept
        step = max(1, _TOKENS // plan.unit)
        for first in range(0, plan.units, step):
            units = plan.segments(np.arange(first, min(first + step, plan.units)))
            kept = np.ones(units.groups, np.bool_)
            if loss is not None:
                kept = _needed(units, lengths, loss)
            numbers.append(first + np.flatnonzero(kept))
            counts += _count_left_out(units, lengths, kept, np.append(before, kept[:-1]))
            before = bool(kept[-1])
        units_kept = arrays.concatenated(numbers, index_type(plan.units))
        eos, text_left_out, eos_left_out, inserted_left_out = counts.tolist()
        left_out = plan.units - len(units_kept)
        return cls(units_kept, eos, left_out, text_left_out, eos_left_out, inserted_left_out)


def _needed(units: Segments, lengths: Ints, loss: DocumentLoss) -> Mask:
    """Mark the units that hold something else than pieces of cut conversations, or a target."""
    pieces = np.flatnonzero(units.document >= 0)
    document, start, length = units.document[pieces], units.start[pieces], units.length[pieces]
    unit = units.group_of()[pieces]
    # A conversation without its EOS is whole: it has all its text.
    cut = (start > 0) | (length < lengths.take(document).astype(np.int64) - 1)
    cut[cut] = loss.says(document[cut])
    needed: Mask = np.zeros(units.groups, np.bool_)
    needed[unit[~cut]] = True
    # Nothing in its row predicts the first token of a piece, so others decide.
    tried = np.flatnonzero(cut & ~needed[unit] & (length > 1))
    needed[unit[tried[loss.in_pieces(document[tried], start[tried] + 1, length[tried] - 1)]]] = True
    return needed


def _count_left_out(units: Segments, lengths: Ints, kept: Mask, before: Mask) -> I64:
    """Count stored EOS, and of the units that are left out their text, stored EOS and inserted EOS.

    Args:
        kept: which of the units are kept.
        before: whether the unit before each one is kept.
    """
    unit = units.group_of()
    own, gone = units.document >= 0, ~kept[unit]
    ends = np.zeros(len(units), np.bool_)
    ends[own] = (units.start + units.length)[own] == lengths.take(units.document[own])
    # What the next unit repeats stays, there, if that unit is kept.
    once = own & gone
    again = kept[unit] & ~before[unit]
    text = int((units.length - units.repeated)[once].sum()) - int(units.repeated[again].sum())
    eos_left_out = np.count_nonzero(ends & gone)
    inserted = np.count_nonzero((units.document == INSERTED_EOS) & gone)
    return np.array([np.count_nonzero(ends), text - eos_left_out, eos_left_out, inserted])


class TrainedPlan(Plan):
    """Those units of a plan that are kept. Atoms have the units that are left of theirs.

    Args:
        plan: holds all units.
        units: that are kept.
        dropped, eos_omitted, untrained: as in `Plan`.
    """

    def __init__(self, plan: Plan, units: KeptUnits, dropped: int, eos_omitted: int, untrained: int) -> None:
        known = plan.facts()
        last = plan.units - 1
        known |= {
            "units": len(units.numbers),
            "dropped": dropped,
            "eos_omitted": eos_omitted,
            "eos_inserted": plan.eos_inserted - units.inserted_left_out,
            "untrained": untrained,
        }
        if units.left_out and (plan.atom_units > 1 or plan.atom_offsets is not None):
            atoms = plan.atom_offsets
            if atoms is None:
                atoms = np.append(np.arange(0, plan.units, plan.atom_units), plan.units)
            known["atom_units"] = 1
            known["atom_offsets"] = distinct(np.searchsorted(units.numbers, atoms))
            last = int(atoms[-2]) if len(atoms) > 1 else 0
        # An incomplete last atom may be gone; the one before it is complete.
        known["last_atom_stays"] = plan.last_atom_stays and bool((units.numbers[-1:] >= last).any())
        super().__init__(**known)
        self._plan = plan
        self._kept = units.numbers

    def segments(self, units: Ints) -> Segments:
        places = np.asarray(units, np.int64)
        number = self._kept.take(places).astype(np.int64)
        segments = self._plan.segments(number)
        if not segments.repeated.any():
            return segments
        # A unit repeats the end of the unit before; nothing, if that one is left out.
        follows = (places > 0) & (self._kept.take(np.maximum(places - 1, 0)) == number - 1)
        return replace(segments, repeated=np.where(follows[segments.group_of()], segments.repeated, 0))
