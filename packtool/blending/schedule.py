"""The schedule of a blend: the share of the samples that each source has, from the first sample to the last.

Users write stages: weights that apply from a sample on, at once or after a ramp. Pieces are computed from stages:
stretches of samples in which every share is a straight line, so that it can be integrated exactly. Sources are numbered
in alphabetical order of their names, so the order in which they are written does not matter.
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
"""The shares of the sources: (sources); their sum is 1."""
Exact = npt.NDArray[np.object_]
"""The shares of the sources in exact fractions: (sources) of `Fraction`."""
_CLOSE = 1e-6
"""Fractions of a row, or of a sample, that count as zero: the rounding error of a ramp over a billion samples."""


@dataclass(frozen=True)
class Stage:
    """Weights that apply from a sample on."""

    first: int  # the sample
    weights: Mapping[str, Fraction]  # weights by source, in any unit; a source that is not named has 0
    reached: int | None = None  # the sample where a ramp from the previous weights reaches these; None without a ramp


class Exhausted(Exception):  # noqa: N818 - whoever asked makes an error of it
    """No source with a weight has rows left.

    Args:
        sample: the first one for which there is no row.
    """

    def __init__(self, sample: Fraction) -> None:
        super().__init__(sample)
        self.sample = math.ceil(sample)


@dataclass(frozen=True)
class Piece:
    """A stretch of samples in which every share is a straight line."""

    first: float  # where the piece begins: a source may stop between two samples, so this is no integer
    last: float  # where it ends
    start: Shares  # the shares at `first`
    end: Shares  # the shares at `last`

    def at(self, place: float) -> Shares:
        """Return the shares at a place of this piece."""
        if place >= self.last:
            return self.end
        return self.start + (place - self.first) / (self.last - self.first) * (self.end - self.start)

    def until(self, place: float) -> Piece:
        """Return the part of the piece before a place."""
        return replace(self, last=place, end=self.at(place))

    def rows(self, places: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
        """Integrate the shares from `first` to some places: (places, sources)."""
        inside = (np.clip(places, self.first, self.last) - self.first)[:, None]
        bend = (self.end - self.start) / (2 * (self.last - self.first))
        whole: npt.NDArray[np.float64] = inside * self.start + inside * inside * bend
        return whole


@dataclass(frozen=True)
class _Line:
    """A `Piece` in exact fractions, which is cut where sources stop.

    With sums of floating-point numbers a source might seem to have used up its rows before the last sample of a run
    that needs all of them.
    """

    first: Fraction
    last: Fraction
    start: Exact
    end: Exact

    def _at(self, place: Fraction) -> Exact:
        shares: Exact = self.start + (place - self.first) / (self.last - self.first) * (self.end - self.start)
        return shares

    def until(self, place: Fraction) -> _Line:
        """Return the part of the line before a place."""
        return replace(self, last=place, end=self._at(place))

    def since(self, place: Fraction) -> _Line:
        """Return the part of the line from a place on."""
        return replace(self, first=place, start=self._at(place))

    def rows(self) -> Exact:
        """Integrate the shares over the line: (sources)."""
        whole: Exact = (self.last - self.first) * (self.start + self.end) / 2
        return whole

    def rounded(self) -> Piece:
        """Return the line in floating-point numbers, with which NumPy integrates many samples at once."""
        start, end = self.start.astype(np.float64), self.end.astype(np.float64)
        return Piece(float(self.first), float(self.last), start, end)


@dataclass(frozen=True)
class Schedule:
    """The shares of the sources in the samples of a run, and the limits of the sources."""

    names: tuple[str, ...]  # names of the sources, in alphabetical order
    samples: int  # number of samples of the run
    stages: tuple[Stage, ...]  # sorted by their first samples; the first begins with sample 0, without a ramp
    limits: Mapping[str, int]  # rows that may be taken from a source, by name; no limit for others
    stops: frozenset[str]  # sources that stop at their limit: from there on the other sources share their weight
    use_all: bool = False  # once all sources with a weight have stopped, share by the rows that are left

    @cached_property
    def pieces(self) -> list[Piece]:
        """The shares as straight lines.

        Raises:
            Exhausted: all sources with a weight have stopped before the end of the run.
        """
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
        """Return the schedule with one more stage, which applies until the next stage begins."""
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
        stages, names, samples, use_all: as in `Schedule`.
        limits: number of rows after which a source stops; the other sources then share its weight in proportion to
            their own.

    Raises:
        Exhausted: all sources with a weight have stopped before the end of the run.

    >>> half, most = Fraction(1, 2), Fraction(9, 10)
    >>> stages = [Stage(0, {"a": half, "b": half}), Stage(100, {"a": most, "b": 1 - most}, reached=200)]
    >>> [(piece.first, piece.last, piece.end.tolist()) for piece in pieces_of(stages, ["a", "b"], 300)]
    [(0.0, 100.0, [0.5, 0.5]), (100.0, 200.0, [0.9, 0.1]), (200.0, 300.0, [0.9, 0.1])]
    """
    lines: list[_Line] = []
    # The weights that a ramp begins with: those at the end of the stage before, even if it has no samples.
    reached: Exact | None = None
    for number, stage in enumerate(stages):
        wanted, first = _shares(stage.weights, names), Fraction(stage.first)
        until = samples
        if number + 1 < len(stages):
            until = min(stages[number + 1].first, samples)
        last = Fraction(until)
        if first < last and stage.reached is not None and stage.reached > first and reached is not None:
            ramp = _Line(first, Fraction(stage.reached), reached, wanted)
            first = min(ramp.last, last)  # the next stage may begin before the ramp ends
            lines.append(ramp.until(first))
        if first < last:
            lines.append(_Line(first, last, wanted, wanted))
        reached = lines[-1].end if lines else wanted
    if limits:
        lines = _stopped(lines, names, limits, use_all=use_all)
    # A line may be shorter than what floats tell apart.
    return [piece for piece in map(_Line.rounded, lines) if piece.first < piece.last]


def _shares(weights: Mapping[str, Fraction], names: Sequence[str]) -> Exact:
    """Return weights as shares, whose sum is 1."""
    whole = sum(weights.values())
    return np.array([weights.get(name, Fraction(0)) / whole for name in names], object)


def _stopped(lines: Sequence[_Line], names: Sequence[str], limits: Mapping[str, int], *, use_all: bool) -> list[_Line]:
    """Cut lines where sources stop, and give their shares to the others.

    Args:
        limits: number of rows after which a source stops.
        use_all: as in `Schedule`.
    """
    left: list[Fraction | float] = [math.inf] * len(names)  # rows that each source may still give
    for number, name in enumerate(names):
        if name in limits:
            left[number] = Fraction(limits[name])
    out: list[_Line] = []
    for line in lines:
        rest = line
        while rest.first < line.last:
            going = np.array([rows > _CLOSE for rows in left])
            if not going.any() and line.last - rest.first <= _CLOSE:
                # All rows are used up, and nothing is left of the line but the rounding error of a ramp.
                out[-1] = replace(out[-1], last=line.last)
                break
            instead = np.array(left if use_all else [Fraction(0)] * len(left), object)
            shared = _without(rest, going, instead)
            stops = [_reaches(shared, number, rows) for number, rows in enumerate(left)]
            # Up to the first source that stops. The rest of the line has other shares.
            first_stop = min([shared.last, *(stop for stop in stops if stop is not None)])
            part = shared.until(first_stop)
            out.append(part)
            for number, rows in enumerate(part.rows().tolist()):
                left[number] -= rows
                stop = stops[number]
                if stop is not None and stop <= first_stop + _CLOSE:
                    left[number] = Fraction(0)  # exactly, though the place where it stops was rounded
            rest = rest.since(first_stop)
    return out


def _without(line: _Line, going: npt.NDArray[np.bool_], instead: Exact) -> _Line:
    """Give the shares of sources that have stopped to the others.

    Args:
        going: whether each source still has rows.
        instead: weights of the sources, for a line on which all sources with a share have stopped.
    """
    start, end = line.start * going, line.end * going
    if not start.any() and not end.any():
        start = end = instead * going
    if not start.any():  # a ramp whose first weights are of sources that have stopped
        start = end
    if not end.any():  # a ramp whose last weights are of sources that have stopped
        end = start
    if not start.any():
        raise Exhausted(line.first)
    return replace(line, start=start / start.sum(), end=end / end.sum())


def _reaches(line: _Line, source: int, rows: Fraction | float) -> Fraction | None:
    """Return where on a line a source reaches this many rows; None if it does not, or if it has stopped already."""
    if rows <= _CLOSE or line.rows()[source] < rows - _CLOSE:
        return None
    start: Fraction = line.start[source]
    end: Fraction = line.end[source]
    if start == end:
        return min(line.first + Fraction(rows) / start, line.last)
    # The root of start x + bend x² = rows, in the form that also holds where the line is nearly flat.
    bend = float((end - start) / (2 * (line.last - line.first)))
    root = math.sqrt(max(0.0, float(start) ** 2 + 4 * bend * float(rows)))
    return min(line.first + Fraction(2 * float(rows) / (float(start) + root)), line.last)


def past_of(pieces: Sequence[Piece], names: Sequence[str], sample: int) -> list[tuple[str, str, dict[str, list[str]]]]:
    """Describe the schedule before a sample, so that schedules that agree so far have equal descriptions.

    >>> past_of([Piece(0, 4, np.array([0.5, 0.5]), np.array([1.0, 0.0]))], ["a", "b"], 2)
    [('0', '2', {'a': ['0.5', '0.75'], 'b': ['0.5', '0.25']})]
    """
    past = []
    for piece in pieces:
        if piece.first < sample:
            part = piece.until(min(sample, piece.last))
            shares = zip(names, part.start, part.end, strict=True)
            shares_by_name = {name: [f"{start:.9g}", f"{end:.9g}"] for name, start, end in shares if start or end}
            past.append((f"{part.first:.14g}", f"{part.last:.14g}", shares_by_name))
    return past
