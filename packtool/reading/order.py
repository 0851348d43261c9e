"""The order of a run: which source each sample is from, and which of that source's items it is.

A dataset is one source, item after item, without end. A blend deals its sources by a schedule, once, from the first
sample to the last. The rows that each source has given so far are in a checkpoint. A run that goes on may have another
future: where the schedule, changed, would have given other rows, dealing begins anew at the checkpoint.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from packtool.blending.blend import Blend, WrittenSource, weights_of
from packtool.blending.dealing import Dealing
from packtool.blending.schedule import Exhausted, Schedule, Stage
from packtool.errors import UsageError
from packtool.options.check import suggest
from packtool.planning.plan import I64
from packtool.reading.blend_schedule import Extent, check_limits, require_rows, schedule_of
from packtool.reading.source import Source

_LARGEST = 10**18


class Order(Protocol):
    """Which source each sample is from, and which of its items it is.

    Attributes:
        endless: passes follow each other without end; else there is one, and later ones are empty.
    """

    endless: bool

    def locate(self, samples: I64) -> tuple[I64, I64]:
        """Return the number of the source of each sample, and which of the source's items it is."""

    def before(self, sample: int) -> I64:
        """Count the items of each source before a sample: (sources)."""

    def next_block(self, sample: int) -> int:
        """Return the sample from which on others come if weights change when this one is the next."""

    def bounds(self, number: int) -> tuple[int, int]:
        """Return the first sample of a pass, and the one after its last."""

    def pass_of(self, sample: int) -> int:
        """Return the pass that a sample lies in."""

    def may_begin(self, sample: int) -> bool:
        """Return whether a pass after the first may begin with a sample."""


class Straight:
    """One source, item after item. A pass is a number of its epochs."""

    endless = True

    def __init__(self, source: Source, epochs: int) -> None:
        self._source = source
        self._epochs = epochs

    def locate(self, samples: I64) -> tuple[I64, I64]:
        return np.zeros_like(samples), samples

    def before(self, sample: int) -> I64:
        return np.array([sample])

    def next_block(self, sample: int) -> int:
        return sys.maxsize  # nothing of one dataset can be changed while training

    def bounds(self, number: int) -> tuple[int, int]:
        first, last = number * self._epochs, (number + 1) * self._epochs
        return self._source.begin_of(first), self._source.begin_of(last)

    def pass_of(self, sample: int) -> int:
        epoch, _ = self._source.epochs_of(np.array([sample]))
        return int(epoch[0]) // self._epochs

    def may_begin(self, sample: int) -> bool:
        epoch, inside = self._source.epochs_of(np.array([sample]))
        return int(epoch[0]) > 0 and int(inside[0]) == 0


class Base(NamedTuple):
    """Where dealing began, other than with the run.

    Attributes:
        sample: the first that is dealt from here.
        rows: of each source before it.
    """

    sample: int
    rows: Mapping[str, int]


class Dealt:
    """The sources of a blend, dealt by its schedule, and by the stages that were added while training.

    Args:
        blend: as it was written.
        schedule: of the blend.
        extents: the size of each source.
        gone: names of sources without a path: all of their rows lie in the past of a run that is resumed.

    Attributes:
        gone: as given.
        base: where dealing began; None for the begin of the run.
        added: the stages that were added, in the order in which they were.
    """

    endless = False

    def __init__(
        self, blend: Blend, schedule: Schedule, extents: Mapping[str, Extent], gone: frozenset[str] = frozenset()
    ) -> None:
        self.blend = blend
        self._written = schedule
        self._extents = extents
        self.gone = gone
        self.base: Base | None = None
        self.added: tuple[Stage, ...] = ()
        self._dealing: Dealing | None = None

    @classmethod
    def of(cls, blend: Blend, sources: Mapping[str, Source | None]) -> Dealt:
        """Return the order of a blend of these sources, by the names that it has for them.

        Raises:
            UsageError: as in `schedule_of`; a source without rows has a weight.
        """
        extents = {name: _extent(blend.sources[name], source) for name, source in sources.items()}
        gone = frozenset(name for name, source in sources.items() if source is None)
        length = next(source.lengths[0] for source in sources.values() if source is not None)
        for stage in blend.stages:
            require_rows(stage.weights, extents, gone, stage.places)
        return cls(blend, schedule_of(blend, extents, length), extents, gone)

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_dealing": None}  # as large as the run has blocks, and computed in a moment

    @property
    def schedule(self) -> Schedule:
        """The schedule, with the stages that were added."""
        return self.scheduled(self.added)

    def scheduled(self, added: Sequence[Stage]) -> Schedule:
        """Return the schedule of the blend with these stages added."""
        schedule = self._written
        for stage in added:
            schedule = schedule.also(stage)
        return schedule

    def locate(self, samples: I64) -> tuple[I64, I64]:
        dealing = self._dealt()
        if self.base is not None and len(samples) and samples.min() < self.base.sample:
            what = f"sample {samples.min():,} lies before {self.base.sample:,}, from where the blend was changed"
            remedy = "begin anew with another loader"
            raise UsageError("run-changed", what, remedy=remedy, where=self.blend.name)
        return dealing.locate(samples)

    def before(self, sample: int) -> I64:
        if sample == 0:
            return np.zeros(len(self._written.names), np.int64)  # also where a source has no path
        return self._dealt().before(sample)

    def next_block(self, sample: int) -> int:
        return self._dealt().next_block(sample)

    def bounds(self, number: int) -> tuple[int, int]:
        last = self._written.samples
        return (0, last) if number == 0 else (last, last)

    def pass_of(self, sample: int) -> int:
        del sample  # a longer blend may go on where the run of a checkpoint ended
        return 0

    def may_begin(self, sample: int) -> bool:
        del sample
        return False

    def stage_at(self, sample: float) -> str:
        """Return where the stage of the blend was written that a sample lies in."""
        if not self.blend.stages:
            return self.blend.name
        begun = sum(stage.first <= sample for stage in self._written.stages)
        return self.blend.stages[begun - 1].where

    def reweight(self, weights: Mapping[str, float], after: int, ramp_rows: int = 0) -> int:
        """Give sources other weights from the next block on, until the next stage of the blend begins.

        Args:
            weights: of sources; a source that is not named has none.
            after: samples that were dealt already.
            ramp_rows: in which the weights are reached in a straight line; 0 for at once.

        Returns:
            The sample from which on they hold.

        Raises:
            UsageError: no such source, or one without rows; nothing is left of the run; more rows are needed than
                there are.
        """
        if not isinstance(ramp_rows, int | np.integer) or isinstance(ramp_rows, bool) or ramp_rows < 0:
            what, remedy = f"{ramp_rows!r} is no whole number from 0", "give 0 or more"
            raise UsageError("bad-option", what, remedy=remedy, where="ramp_rows")
        for name in weights:
            if name not in self._written.names:
                remedy = suggest(name, self._written.names)
                raise UsageError("unknown-key", f"there is no source {name!r}", remedy=remedy, where="weights")
        exact = weights_of(weights)
        for name, weight in exact.items():
            if max(weight.numerator, weight.denominator) >= _LARGEST:  # the state of a loader would not hold it
                what, remedy = f"{weights[name]!r} has too many digits", "give a weight of at most 18 digits"
                raise UsageError("bad-option", what, remedy=remedy, where=f"weights.{name}")
        require_rows(exact, self._extents, self.gone, dict.fromkeys(exact, "weights"))
        first = self.next_block(after)
        if first >= self._written.samples:
            what, remedy = "the run ends before the next block", "make it longer in the blend"
            raise UsageError("run-ended", what, remedy=remedy, where=self.blend.name)
        stage = Stage(first, exact, first + int(ramp_rows) if ramp_rows else None)
        self._deal((*self.added, stage), self.base)
        return first

    def resume(self, added: Sequence[Stage], base: Base | None, now: Base) -> None:
        """Go on where a run stopped: dealing as before if that gives the same rows, else from there on.

        Args:
            added, base: of the run that stopped.
            now: its samples, and the rows of each source.

        Raises:
            UsageError: the sources that the blend has now do not last.
        """
        if base is not None or not self.gone:
            given = self._dealing_of(added, base).before(now.sample).tolist()
            if given == [now.rows.get(name, 0) for name in self._written.names]:
                self._deal(added, base)
                return
        self._deal(added, now)

    def _deal(self, added: Sequence[Stage], base: Base | None) -> None:
        """Deal by these stages from here on; change nothing where that can't be done."""
        check_limits(self.blend, self.scheduled(added), self._extents)
        self._dealing = self._dealing_of(added, base)
        self.added, self.base = tuple(added), base

    def _dealing_of(self, added: Sequence[Stage], base: Base | None) -> Dealing:
        schedule = self.scheduled(added)
        try:
            return Dealing(schedule, base, self.gone)
        except Exhausted as error:
            what = f"at row {error.sample:,} of {schedule.samples:,} no source has rows left"
            remedy = "shorten the run, or raise max-epochs"
            raise UsageError("source-exhausted", what, remedy=remedy, where=self.blend.name) from None

    def _dealt(self) -> Dealing:
        if self._dealing is None:
            if self.base is None:
                self.require_paths()
            self._dealing = self._dealing_of(self.added, self.base)
        return self._dealing

    def require_paths(self) -> None:
        """Refuse to begin a run without all of its sources.

        Raises:
            UsageError: a source has no path.
        """
        for name in sorted(self.gone):
            raise self.pathless(name)

    def pathless(self, name: str) -> UsageError:
        """Return the error for a source without a path, whose rows are asked for."""
        what, remedy = f"{name} has no path", "give it one, or resume from a state in which its rows are past"
        return UsageError("missing-option", what, remedy=remedy, where=self.blend.sources[name].where)


def _extent(written: WrittenSource, source: Source | None) -> Extent:
    """Return the size of a source, and how many of its rows a run may take."""
    if source is None:
        return Extent(0)
    epochs = written.max_epochs
    if written.stop and epochs is None:
        epochs = 1
    return Extent(source.items, None if epochs is None else source.begin_of(epochs))
