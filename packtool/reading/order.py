"""The order of a run: the source of each sample, and the number of the item that it is in that source.

A dataset is one source, item after item, without end. A blend deals its sources by a schedule, once, from the first
sample to the last. A checkpoint has the number of rows that each source has given so far. A run that goes on may have
a changed schedule: if that would have given other rows up to the checkpoint, dealing begins anew at the checkpoint.
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
from packtool.options.check import is_whole, suggest
from packtool.planning.plan import I64
from packtool.reading.blend_schedule import Extent, check_limits, require_rows, schedule_of
from packtool.reading.epochs import Source

_LARGEST = 10**18


class Order(Protocol):
    """The source of each sample, and the item that the sample is in that source."""

    endless: bool  # passes follow each other without end; if not, the first pass is the run, and later passes are empty

    def locate(self, samples: I64) -> tuple[I64, I64]:
        """Return the source of each sample, by number, and the number of the item in that source."""

    def before(self, sample: int) -> I64:
        """Count the items that each source has given before a sample: (sources)."""

    def next_block(self, sample: int) -> int:
        """Return the first sample from this one on that begins a block: changed weights apply from such a sample on."""

    def bounds(self, number: int) -> tuple[int, int]:
        """Return the first sample of a pass, and the first sample after it."""

    def pass_of(self, sample: int) -> int:
        """Return the pass that a sample lies in."""


class OneSource:
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
        return sys.maxsize  # a single dataset can't be reweighted

    def bounds(self, number: int) -> tuple[int, int]:
        first, last = number * self._epochs, (number + 1) * self._epochs
        return self._source.begin_of(first), self._source.begin_of(last)

    def pass_of(self, sample: int) -> int:
        epoch, _ = self._source.epochs_of(np.array([sample]))
        return int(epoch[0]) // self._epochs


class Base(NamedTuple):
    """A sample at which dealing began anew."""

    sample: int  # the first one that is dealt from here
    rows: Mapping[str, int]  # number of rows that each source had given before it, by name


class BlendOrder:
    """The sources of a blend, dealt by its schedule, and by the stages that were added while training.

    Args:
        blend: as it was written.
        schedule: of the blend.
        extents: the size of each source.
        gone: names of sources without a path: all of their rows lie in the past of a run that is resumed.
    """

    endless = False

    def __init__(
        self, blend: Blend, schedule: Schedule, extents: Mapping[str, Extent], gone: frozenset[str] = frozenset()
    ) -> None:
        self.blend = blend  # the blend as given
        self._written = schedule
        self._extents = extents
        self.gone = gone  # the past as given
        self.base: Base | None = None  # where dealing began anew; None if it began with the run
        self.added: tuple[Stage, ...] = ()  # stages that were added while training, as they were added
        self._dealing: Dealing | None = None

    @classmethod
    def of(cls, blend: Blend, sources: Mapping[str, Source | None]) -> BlendOrder:
        """Return the order of a blend of these sources, given by the names that the blend has for them.

        Raises:
            UsageError: as in `schedule_of`; a source without rows has a weight.
        """
        extents = {name: _extent(blend.sources[name], source) for name, source in sources.items()}
        gone = frozenset(name for name, source in sources.items() if source is None)
        length = next(source.lengths[0] for source in sources.values() if source is not None)  # all have this one
        for stage in blend.stages:
            require_rows(stage.weights, extents, gone, stage.places)
        return cls(blend, schedule_of(blend, extents, length), extents, gone)

    def __getstate__(self) -> dict[str, object]:
        # The dealing is large, with counts for every block of the run, and is computed again in little time.
        return {**self.__dict__, "_dealing": None}

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
            # A new loader is asked for a state before it loads one, and can't deal sources without a path yet.
            return np.zeros(len(self._written.names), np.int64)
        return self._dealt().before(sample)

    def next_block(self, sample: int) -> int:
        return self._dealt().next_block(sample)

    def bounds(self, number: int) -> tuple[int, int]:
        last = self._written.samples
        return (0, last) if number == 0 else (last, last)

    def pass_of(self, sample: int) -> int:
        del sample  # the end of the run is in pass 0, too: a blend that was made longer goes on there
        return 0

    def stage_at(self, sample: float) -> str:
        """Return where the stage that a place lies in, maybe between two samples, is written, for messages."""
        if not self.blend.stages:
            return self.blend.name
        # Both lists have the same stages, and the first begins with sample 0: so at least one has begun.
        begun = sum(stage.first <= sample for stage in self._written.stages)
        return self.blend.stages[begun - 1].where

    def reweight(self, weights: Mapping[str, float], after: int, ramp_rows: int = 0) -> int:
        """Change the weights of the sources from the next block on, until the next stage of the blend begins.

        Args:
            weights: by source; a source that is not named gets no rows.
            after: number of samples that were dealt already.
            ramp_rows: number of rows over which the weights change in a straight line; 0 to change them at once.

        Returns:
            The first sample to which the weights apply.

        Raises:
            UsageError: an unknown source, or one without rows; the run has no next block; a source has fewer rows than
                the run would take.
        """
        if not is_whole(ramp_rows) or ramp_rows < 0:
            what, remedy = f"{ramp_rows!r} is no whole number from 0", "give 0 or more"
            raise UsageError("bad-option", what, remedy=remedy, where="ramp_rows")
        for name in weights:
            if name not in self._written.names:
                remedy = suggest(name, self._written.names)
                raise UsageError("unknown-key", f"there is no source {name!r}", remedy=remedy, where="weights")
        exact = weights_of(weights)
        for name, weight in exact.items():
            if max(weight.numerator, weight.denominator) >= _LARGEST:  # a state has 18 digits
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
        """Go on where a run stopped.

        Dealing begins where it began in that run if every source has then given as many rows at this sample: the rest
        of the run is as if it had not stopped. Otherwise dealing begins anew at this sample.

        Args:
            added, base: of the run that stopped.
            now: the sample at which it stopped, and the rows that each source had given.

        Raises:
            UsageError: the sources of this blend have too few rows for the rest of the run.
        """
        if base is not None or not self.gone:  # sources without a path can't be dealt from the start
            given = self._dealing_of(added, base).before(now.sample).tolist()
            if given == [now.rows.get(name, 0) for name in self._written.names]:
                self._deal(added, base)
                return
        self._deal(added, now)

    def _deal(self, added: Sequence[Stage], base: Base | None) -> None:
        """Deal with these stages added; change nothing if that fails.

        Args:
            base: where dealing begins; None for the start of the run.
        """
        check_limits(self.blend, self.scheduled(added), self._extents)
        self._dealing = self._dealing_of(added, base)
        self.added, self.base = tuple(added), base

    def _dealing_of(self, added: Sequence[Stage], base: Base | None) -> Dealing:
        """Deal the run with these stages added, without keeping the result."""
        schedule = self.scheduled(added)
        try:
            return Dealing(schedule, base, self.gone)
        except Exhausted as error:
            what = f"at row {error.sample:,} of {schedule.samples:,} no source has rows left"
            remedy = "shorten the run, or raise max-epochs"
            raise UsageError("source-exhausted", what, remedy=remedy, where=self.blend.name) from None

    def _dealt(self) -> Dealing:
        """Return the dealing of the run, computed when it is first needed."""
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
        if self.gone:
            raise self.pathless(min(self.gone))

    def pathless(self, name: str) -> UsageError:
        """Return the error for a source without a path, when its rows are needed."""
        what, remedy = f"{name} has no path", "give it one, or resume from a state in which its rows are past"
        return UsageError("missing-option", what, remedy=remedy, where=self.blend.sources[name].where)


def _extent(written: WrittenSource, source: Source | None) -> Extent:
    """Return the size of a source, and the number of rows that a run may take from it."""
    if source is None:
        return Extent(0)
    epochs = written.max_epochs
    if written.stop and epochs is None:
        epochs = 1  # `stop` alone: after all rows came once
    if epochs is None:
        return Extent(source.items)
    return Extent(source.items, source.begin_of(epochs))
