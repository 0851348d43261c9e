"""Where a run is: its pass, the samples consumed, and with what the next loop begins. It knows no rows and no ranks."""

from __future__ import annotations

from typing import Any

from packtool.errors import UsageError
from packtool.options.check import is_whole
from packtool.reading.order import Order
from packtool.warnings import warn

_EMPTY_LOOPS = 10_000
"""Empty loops in a row after which a trainer is stopped that would go on for ever. They take a few seconds."""


class Position:
    """The position of a run in its passes, which moves. It is behind the last global batch, the same on every rank.

    The first sample of a pass is also the end of the pass before, so a position has the number of its pass, too. A loop
    goes on where the last one was left. If no batch is left there, it has the next pass; a blend has a single one.

    Args:
        order: of the samples.
        fewest: samples that make a batch: the rest of a pass with fewer is never consumed.
        run: the name of the run, for messages.

    Attributes:
        samples: consumed, in all passes.
        number: of the pass, from 0.
        started: samples that were consumed when the last loop began.
        ahead: samples in batches that were made so far, those that workers read ahead included.
        generation: a number that changes whenever the position moves otherwise than by the present loop.
    """

    def __init__(self, order: Order, fewest: int, run: str) -> None:
        self._order = order
        self._fewest = fewest
        self._run = run
        # What was asked for since the last loop began.
        self._epoch_set = False  # an epoch was set: the next loop has what is left of it, even nothing
        self._loaded = False  # a state was loaded, or samples were skipped: a pass without this place can't be named
        self._empty = 0  # loops without a batch, one after another
        self.samples = self.number = self.started = self.ahead = self.generation = 0

    @property
    def end(self) -> int:
        """The first sample after this pass."""
        return self._order.bounds(self.number)[1]

    @property
    def whole(self) -> tuple[int, int]:
        """The first sample of this pass, and the first one after it; for a blend those of its run, also after it."""
        return self._order.bounds(self.number if self._order.endless else 0)

    @property
    def finished(self) -> bool:
        """Whether no batch is left in this pass."""
        return self.end - self.samples < self._fewest

    def begin(self) -> tuple[int, int]:
        """Begin a loop: move to its first sample, and return this sample and the first one after the loop.

        Raises:
            UsageError: the run of a blend ended many loops ago.
        """
        self.samples, self.number = self._next()
        self.started = self.samples
        self._epoch_set = self._loaded = False
        self.generation += 1
        self._count_empty_loops()
        return self.samples, self.end

    def advance(self, samples: int) -> None:
        """Move on in the present loop, to behind this many samples."""
        self.samples = samples

    def require_unmoved(self, generation: int) -> None:
        """Refuse to continue a loop after another one, a named pass, a skip or a loaded state moved the position.

        Args:
            generation: the number in `generation` when the loop began.

        Raises:
            UsageError: it is another number now.
        """
        if generation == self.generation:
            return
        what = "another loop, set_epoch, skip or load_state_dict has moved the loader since this loop began"
        raise UsageError("bad-option", what, remedy="finish or break out of the loop first", where="loader")

    def reset(self) -> None:
        """Move to the first sample."""
        self._move(0, 0)

    def resume(self, samples: int) -> None:
        """Move behind this many samples, to continue the pass in which they end."""
        number = 0
        # An empty dataset has no pass of a sample.
        if samples and self._order.bounds(0)[1]:
            number = self._order.pass_of(samples - 1)
        self._move(samples, number)
        self._loaded = True

    def skip(self, samples: int) -> None:
        """Skip the next samples.

        Raises:
            UsageError: not a number of samples; the run of a blend has fewer left.
        """
        _require_number(samples, "samples")
        first, _ = self._next()
        left = self.end - first
        if not self._order.endless and samples > left:
            what, remedy = f"{samples:,} are to be skipped, but the run has {left:,} left", "skip fewer"
            raise UsageError("run-ended", what, remedy=remedy, where="samples")
        self.resume(first + samples)

    def set_epoch(self, number: int) -> None:
        """Have the pass of this number in the next loop: from its start, or what a loaded state leaves of it.

        Raises:
            UsageError: not a number of a pass; a loaded state lies in the middle of another pass.
        """
        _require_number(number, "epoch")
        first, last = self._order.bounds(number)
        if self._loaded and first < self.samples <= last:
            self._epoch_set = True
            return
        if not self._order.endless and number > 0 and self.finished:
            return  # samples at the end of a blend that fill no batch stay: a run that is made longer begins with them
        if self._loaded:
            self._require_leaving(number, first, last)
        self._move(first, number)
        self._epoch_set = True

    def _require_leaving(self, number: int, first: int, last: int) -> None:
        """Refuse to leave the position of a loaded state for a pass, unless it is at an end and the pass begins."""
        # At 0 nothing is trained yet, so any pass may begin.
        at_start = self.samples in (0, first)
        # Samples at the end of a pass that fill no batch are never consumed: so a pass may be over before its end.
        follows = self.finished and number == self.number + 1
        if at_start or follows:
            return
        what = f"samples {first:,} to {last:,}, but the state that was loaded is at {self.samples:,}"
        remedy = f"set epoch {self.number}, where it lies, or call reset before to give it up"
        raise UsageError("state-elsewhere", f"epoch {number} has the {what}", remedy=remedy, where="set_epoch")

    def _next(self) -> tuple[int, int]:
        """Return the sample and the number of the pass with which the next loop begins."""
        if self._epoch_set or not self.finished or not self._order.endless:
            return self.samples, self.number
        number = self.number + 1
        first, _ = self._order.bounds(number)
        return first, number

    def _move(self, samples: int, number: int) -> None:
        """Move to a position of which nothing is read yet, and forget what was asked for."""
        self.generation += 1
        self.samples = self.started = self.ahead = samples
        self.number = number
        self._epoch_set = self._loaded = False

    def _count_empty_loops(self) -> None:
        """Warn once that a run has ended; stop a trainer that begins one empty loop after another."""
        if not self.finished:
            self._empty = 0
            return
        self._empty += 1
        if self._order.endless:
            return
        samples = self._order.bounds(0)[1]
        what, remedy = f"the run ended with its {samples:,} rows", "make it longer in the blend"
        if self._empty > _EMPTY_LOOPS:
            raise UsageError("run-ended", what, remedy=remedy, where=self._run)
        if self._empty == 1:
            warn("run-ended", f"{what}, so this loop is empty", remedy=remedy, where=self._run)


def _require_number(value: Any, where: str) -> None:
    """Refuse what is no whole number from 0; True and False are none."""
    if not is_whole(value) or value < 0:
        what = f"{value!r} is no whole number from 0"
        raise UsageError("bad-option", what, remedy="give 0 or more", where=where)
