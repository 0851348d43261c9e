"""The schedule of a blend: which share of the samples each source has, from the first to the last.

Stages are what people write: weights from a sample on, at once or reached in a straight line. Pieces follow from them:
stretches in which every share is a straight line, which is what is integrated. Sources are numbered by their names in
alphabetical order, so that the order in which they are written means nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

Shares = npt.NDArray[np.float64]
"""The share of each source: (sources), 1 in all."""
Exact = npt.NDArray[np.object_]
"""The same in fractions: (sources) of `Fraction`."""
_CLOSE = 1e-6
"""Rows, or samples, that count as none: the rounding error of a ramp over a billion samples."""


@dataclass(frozen=True)
class Stage:
    """Weights from a sample on.

    Attributes:
        first: the sample.
        weights: by source, in any unit; those it does not name have none.
        reached: the sample at which these weights are reached, in a straight line from those that were; None where they
            hold at once.
    """

    first: int
    weights: Mapping[str, Fraction]
    reached: int | None = None


class Exhausted(Exception):  # noqa: N818 - whoever asked makes an error of it
    """No source that has weight has rows left.

    Args:
        sample: from which on.
    """

    def __init__(self, sample: Fraction) -> None:
        super().__init__(sample)
        self.sample = math.ceil(sample)


@dataclass(frozen=True)
class Piece:
    """A stretch of samples in which each share is a straight line. Where a source stops lies between samples.

    Attributes:
        first, last: where it begins and ends.
        begin, end: the shares at these places.
    """

    first: float
    last: float
    begin: Shares
    end: Shares

    def at(self, place: float) -> Shares:
        """Return the shares at a place of this piece."""
        if place >= self.last:
            return self.end
        return self.begin + (place - self.first) / (self.last - self.first) * (self.end - self.begin)

    def until(self, place: float) -> Piece:
        """Return the part of it before a place."""
        return replace(self, last=place, end=self.at(place))

    def rows(self, places: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
        """Integrate the shares from `first` to some places: (places, sources)."""
        inside = (np.clip(places, self.first, self.last) - self.first)[:, None]
        bend = (self.end - self.begin) / (2 * (self.last - self.first))
        whole: npt.NDArray[np.float64] = inside * self.begin + inside * inside * bend
        return whole


@dataclass(frozen=True)
class _Line:
    """A `Piece` in fractions, while it is cut where sources stop.

    Floating-point numbers, added up, let sources seem to have used up their rows before the last sample of a run that
    needs all of them.
    """

    first: Fraction
    last: Fraction
    begin: Exact
    end: Exact

    def _at(self, place: Fraction) -> Exact:
        shares: Exact = self.begin + (place - self.first) / (self.last - self.first) * (self.end - self.begin)
        return shares

    def until(self, place: Fraction) -> _Line:
        """Return the part of it before a place."""
        return replace(self, last=place, end=self._at(place))

    def since(self, place: Fraction) -> _Line:
        """Return the part of it from a place on."""
        return replace(self, first=place, begin=self._at(place))

    def rows(self) -> Exact:
        """Integrate the shares over all of it: (sources)."""
        whole: Exact = (self.last - self.first) * (self.begin + self.end) / 2
        return whole

    def rounded(self) -> Piece:
        """Return it in floating-point numbers, in which many samples are integrated at once."""
        begin, end = self.begin.astype(np.float64), self.end.astype(np.float64)
        return Piece(float(self.first), float(self.last), begin, end)


@dataclass(frozen=True)
class Schedule:
    """The share of the samples of a run that each source has, and which sources have an end.

    Attributes:
        names: of the sources, in their order.
        samples: of the run.
        stages: by their first samples; the first begins with sample 0, at once.
        limits: rows that a source has, where that is bounded.
        stops: sources whose weight the others have once their limit is reached.
        use_all: where all that have weight have stopped, the others share by the rows that they have left.
    """

    names: tuple[str, ...]
    samples: int
    stages: tuple[Stage, ...]
    limits: Mapping[str, int]
    stops: frozenset[str]
    use_all: bool = False

    @cached_property
    def pieces(self) -> list[Piece]:
        """The shares as straight lines; raises `Exhausted` where all that have weight have stopped."""
        stops = {name: limit for name, limit in self.limits.items() if name in self.stops}
        return pieces_of(self.stages, self.names, self.samples, stops, use_all=self.use_all)

    def rows(self, sample: int) -> Shares:
        """Integrate the shares up to a sample: (sources)."""
        parts = [piece.rows(np.array([sample]))[0] for piece in self.pieces if piece.first < sample]
        return sum(parts, np.zeros(len(self.names)))

    def past(self, sample: int) -> list[tuple[str, str, dict[str, list[str]]]]:
        """Describe the schedule before a sample, so that schedules that agree so far have equal descriptions."""
        return past_of(self.pieces, self.names, sample)

    def also(self, stage: Stage) -> Schedule:
        """Return the schedule with one more stage, which holds until the next begins."""
        return replace(self, stages=tuple(sorted((*self.stages, stage), key=lambda stage: stage.first)))


def pieces_of(
    stages: Sequence[Stage],
    names: Sequence[str],
    samples: int,
    limits: Mapping[str, int] | None = None,
    *,
    use_all: bool = False,
) -> list[Piece]:
    """Return the pieces of a schedule, in order.

    Args:
        stages: by their first samples; the first begins with sample 0, at once.
        names: of the sources.
        samples: of the run.
        limits: rows after which a source stops; from there on the others have its weight, in proportion to theirs.
        use_all: where all that have weight have stopped, the others share by the rows that they have left.

    Raises:
        Exhausted: all that have weight have stopped.

    >>> half, most = Fraction(1, 2), Fraction(9, 10)
    >>> stages = [Stage(0, {"a": half, "b": half}), Stage(100, {"a": most, "b": 1 - most}, reached=200)]
    >>> [(piece.first, piece.last, piece.end.tolist()) for piece in pieces_of(stages, ["a", "b"], 300)]
    [(0.0, 100.0, [0.5, 0.5]), (100.0, 200.0, [0.9, 0.1]), (200.0, 300.0, [0.9, 0.1])]
    """
    lines: list[_Line] = []
    reached: Exact | None = (
        None  # the weights at the end of the last stage, also of one that another takes the place of at once
    )
    for number, stage in enumerate(stages):
        wanted, first = _shares(stage.weights, names), Fraction(stage.first)
        last = Fraction(min(stages[number + 1].first if number + 1 < len(stages) else samples, samples))
        if first < last and stage.reached is not None and stage.reached > first and reached is not None:
            ramp = _Line(first, Fraction(stage.reached), reached, wanted)
            first = min(ramp.last, last)
            lines.append(ramp.until(first))
        if first < last:
            lines.append(_Line(first, last, wanted, wanted))
        reached = lines[-1].end if lines else wanted
    if limits:
        lines = _stopped(lines, names, limits, use_all=use_all)
    return [line.rounded() for line in lines]


def _shares(weights: Mapping[str, Fraction], names: Sequence[str]) -> Exact:
    whole = sum(weights.values())
    return np.array([weights.get(name, Fraction(0)) / whole for name in names], object)


def _stopped(lines: Sequence[_Line], names: Sequence[str], limits: Mapping[str, int], *, use_all: bool) -> list[_Line]:
    """Cut lines where sources stop, and give their shares to the others."""
    left: list[Fraction | float] = [Fraction(limits[name]) if name in limits else math.inf for name in names]
    out: list[_Line] = []
    for line in lines:
        rest = line
        while rest.first < line.last:
            going = np.array([rows > _CLOSE for rows in left])
            if not going.any() and line.last - rest.first <= _CLOSE:  # what the rounding of a ramp has left over
                out[-1] = replace(out[-1], last=line.last)
                break
            instead = np.array(left if use_all else [Fraction(0)] * len(left), object)
            whole = _without(rest, going, instead)
            stops = [_reaches(whole, number, left[number]) for number in range(len(left))]
            last = min([whole.last, *(stop for stop in stops if stop is not None)])
            part = whole.until(last)
            out.append(part)
            for number, rows in enumerate(part.rows().tolist()):
                left[number] -= rows
                stop = stops[number]
                if stop is not None and stop <= last + _CLOSE:
                    left[number] = Fraction(0)  # also where its place was rounded
            rest = rest.since(last)
    return out


def _without(line: _Line, going: npt.NDArray[np.bool_], instead: Exact) -> _Line:
    """Give the shares of sources that have stopped to the others.

    Args:
        going: the others.
        instead: their weights where all that have a share have stopped.
    """
    begin, end = line.begin * going, line.end * going
    if not begin.any() and not end.any():
        begin = end = instead * going
    if not begin.any():  # a ramp from sources that have stopped
        begin = end
    if not end.any():  # a ramp to sources that have stopped
        end = begin
    if not begin.any():
        raise Exhausted(line.first)
    return replace(line, begin=begin / begin.sum(), end=end / end.sum())


def _reaches(line: _Line, source: int, rows: Fraction | float) -> Fraction | None:
    """Return where a source reaches this many rows of a line; None if it does not, or had them before."""
    if rows <= _CLOSE or line.rows()[source] < rows - _CLOSE:
        return None
    begin: Fraction = line.begin[source]
    end: Fraction = line.end[source]
    if begin == end:
        return min(line.first + Fraction(rows) / begin, line.last)
    # The root of begin x + bend x² = rows, in the form that also holds where the line is nearly flat.
    bend = float((end - begin) / (2 * (line.last - line.first)))
    root = math.sqrt(max(0.0, float(begin) ** 2 + 4 * bend * float(rows)))
    return min(line.first + Fraction(2 * float(rows) / (float(begin) + root)), line.last)


def past_of(pieces: Sequence[Piece], names: Sequence[str], sample: int) -> list[tuple[str, str, dict[str, list[str]]]]:
    """Describe the schedule before a sample, so that schedules that agree so far have equal descriptions.

    >>> past_of([Piece(0, 4, np.array([0.5, 0.5]), np.array([1.0, 0.0]))], ["a", "b"], 2)
    [('0', '2', {'a': ['0.5', '0.75'], 'b': ['0.5', '0.25']})]
    """
    past = []
    for piece in pieces:
        if piece.first < sample:
            part = piece.until(min(sample, piece.last))
            shares = zip(names, part.begin, part.end, strict=True)
            known = {name: [f"{begin:.9g}", f"{end:.9g}"] for name, begin, end in shares if begin or end}
            past.append((f"{part.first:.14g}", f"{part.last:.14g}", known))
    return past
