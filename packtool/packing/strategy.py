"""What a strategy is: how it plans, how it counts without a plan, and how its options are checked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from packtool.errors import UsageError
from packtool.metrics.lengths import LengthCounts
from packtool.metrics.tally import Tally
from packtool.options.check import check_taken, checked, out_of_range
from packtool.options.declare import accepted
from packtool.options.pack import PackOptions
from packtool.plan import Ints, Plan, pad

__all__ = ["Counted", "PackOptions", "Strategy", "check", "count_each_length", "mixes", "require_fit"]

_ROWS = 1 << 12  # rows that are counted at a time


@dataclass(frozen=True)
class Strategy:
    """One way to turn document lengths into plans.

    Attributes:
        name: as on the command line.
        summary: what it does, in one line.
        windowed: it plans windows of at most `window_tokens` tokens, one after the other; else the corpus at once.
        plan: lengths (each with its EOS, at least 1) and checked options to plans. What is not windowed is given an
            `Arrays`, too, for what may be as long as the corpus.
        count: the same to the counts of the rows of each plan before they are mixed, where that is quicker than to list
            them; it gives None where these options need them listed.
        multi_bucket: it gives one plan for each row length, in ascending order, rather than one plan.
        mixes: rows are mixed unless ``mix_rows`` says otherwise.
        random: its plans depend on the seed.
        whole: documents that fit a row (with `padding` an atom) are never cut.
    """

    name: str
    summary: str
    windowed: bool
    plan: Callable[..., list[Plan]]
    count: Callable[[Ints, PackOptions], list[Counted] | None] | None = None
    multi_bucket: bool = False
    mixes: bool = False
    random: bool = False
    whole: bool = False

    @property
    def accepts(self) -> frozenset[str]:
        """The options that it takes and that not every strategy takes."""
        return accepted(PackOptions, self.name)


@dataclass
class Counted:
    """The counts of the rows of one length, and of what the strategy left out.

    Attributes:
        tally: the counts of its rows.
        dropped: text tokens that no row holds.
        eos_omitted: stored EOS that no row holds.
        eos_inserted: EOS that no document has.
    """

    tally: Tally
    dropped: int = 0
    eos_omitted: int = 0
    eos_inserted: int = 0

    @property
    def sequence_length(self) -> int:
        return self.tally.sequence_length

    @property
    def rows(self) -> int:
        return self.tally.rows

    def include(self, window: Counted) -> None:
        """Add the counts of one window, whose documents are among those of this tally; none may lie in several rows."""
        self.tally.include(window.tally.counts())
        self.dropped += window.dropped
        self.eos_omitted += window.eos_omitted
        self.eos_inserted += window.eos_inserted


def mixes(strategy: Strategy, options: PackOptions) -> bool:
    """Return whether rows are mixed."""
    return strategy.mixes if options.mix_rows is None else options.mix_rows


def check(strategy: Strategy, options: PackOptions) -> None:
    """Refuse options that the strategy does not take, lacks, or cannot obey.

    Raises:
        UsageError: names the option and the remedy.
    """
    checked(options)
    check_taken(options, "--strategy", strategy.name)
    if options.atom_size is not None:
        require_fit(options.atom, options.row_length)
    if options.even_cost and not mixes(strategy, options):
        raise UsageError(
            "bad-option",
            "costs are evened out by exchanging documents between rows, and these rows are not mixed",
            remedy="add --mix-rows, or leave it out",
            where="--even-cost",
        )
    if not options.buckets or len(set(options.buckets)) < len(options.buckets):
        raise UsageError(
            "bad-option", "the sizes must differ", remedy="name each size once, such as 2048,4096", where="--buckets"
        )
    if options.sequence_length is not None:
        for name, value, most in (
            ("--extra-capacity", options.extra, options.row_length - 1),
            ("--min-bucket", options.min_bucket, options.row_length),
        ):
            if value > most:
                raise out_of_range(name, value, 0, most)


def require_fit(atom: int, row: int) -> None:
    """Refuse atoms that neither divide rows nor are divided by them.

    Raises:
        UsageError: of the atom size.
    """
    if row % atom and atom % row:
        remedy = "give a divisor or a multiple of the sequence length"
        what = f"{atom} does not fit the sequence length {row}"
        raise UsageError("bad-atom-size", what, remedy=remedy, where="--atom-size")


def count_each_length(
    plan: Callable[[Ints, PackOptions], list[Plan]], lengths: Ints, options: PackOptions
) -> list[Counted]:
    """Count the rows of a strategy whose documents never share one.

    One document of each length is planned, and its rows count as often as the length occurs.

    >>> from packtool.packing.padding import plan
    >>> [counted] = count_each_length(plan, np.array([5, 9, 5]), PackOptions(sequence_length=8))
    >>> counted.rows, counted.tally.padding, counted.eos_omitted
    (4, 15, 3)
    """
    known = LengthCounts.of(lengths)
    parts = []
    stored = written = 0
    for each in plan(known.values, options):
        tally = Tally(lengths, each.sequence_length)
        for first in range(0, each.rows, _ROWS):
            rows = pad(each.segments(np.arange(first, min(first + _ROWS, each.rows))), each.unit)
            # A row begins with a segment of the one document that it holds.
            tally.add(rows, known.counts[rows.document[rows.offsets[:-1]]], known.values)
        stored, written = stored + tally.stored_eos, written + tally.placed
        parts.append(Counted(tally, eos_inserted=tally.eos_inserted))
    parts[0].eos_omitted = len(lengths) - stored
    parts[0].dropped = known.tokens - known.documents - written
    return parts
