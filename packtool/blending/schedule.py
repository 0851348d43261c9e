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
_CLOSE = 1e-6
"""Rows, or samples, that count as none: rounding errors of integrals over a billion samples."""


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

    def __init__(self, sample: float) -> None:
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

    def since(self, place: float) -> Piece:
        """Return the part of it from a place on."""
        return replace(self, first=place, begin=self.at(place))

    def rows(self, places: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
        """Integrate the shares from `first` to some places: (places, sources)."""
        inside = (np.clip(places, self.first, self.last) - self.first)[:, None]
        bend = (self.end - self.begin) / (2 * (self.last - self.first))
        whole: npt.NDArray[np.float64] = inside * self.begin + inside * inside * bend
        return whole


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
    [(0, 100, [0.5, 0.5]), (100, 200, [0.9, 0.1]), (200, 300, [0.9, 0.1])]
    """
    lines: list[Piece] = []
    ends = [*(stage.first for stage in stages[1:]), samples]
    for stage, end in zip(stages, ends, strict=True):
        last = min(end, samples)
        if stage.first >= last:
            continue
        wanted, first = _shares(stage.weights, names), stage.first
        if stage.reached is not None and stage.reached > first:
            ramp = Piece(first, stage.reached, lines[-1].end, wanted)
            first = min(stage.reached, last)
            lines.append(ramp.until(first))
        if first < last:
            lines.append(Piece(first, last, wanted, wanted))
    if not limits:
        return lines
    return _stopped(lines, names, limits, use_all=use_all)


def _shares(weights: Mapping[str, Fraction], names: Sequence[str]) -> Shares:
    whole = sum(weights.values())
    return np.array([float(weights.get(name, Fraction(0)) / whole) for name in names])


def _stopped(lines: Sequence[Piece], names: Sequence[str], limits: Mapping[str, int], *, use_all: bool) -> list[Piece]:
    """Cut pieces where sources stop, and give their shares to the others."""
    most = np.array([limits.get(name, math.inf) for name in names])
    given, out = np.zeros(len(names)), []
    for line in lines:
        rest = line
        while rest.first < line.last:
            going = most - given > _CLOSE
            left: Shares = np.zeros(len(names))
            if use_all:
                left = most - given
            piece = _without(rest, going, left)
            stops = np.full(len(names), math.inf)
            for source in np.flatnonzero(going).tolist():
                stops[source] = _reaches(piece, source, most[source] - given[source])
            last = min(piece.last, float(stops.min()))
            out.append(piece.until(last))
            given = np.where(stops <= last + _CLOSE, most, given + piece.rows(np.array([last]))[0])
            rest = rest.since(last)
    return out


def _without(piece: Piece, going: npt.NDArray[np.bool_], instead: Shares) -> Piece:
    """Give the shares of sources that have stopped to the others.

    Args:
        going: the sources that have not stopped.
        instead: their weights where all that have a share have stopped.
    """
    begin, end = piece.begin * going, piece.end * going
    if not begin.any() and not end.any():
        begin = end = np.where(going, instead, 0)
    if not begin.any():  # a ramp from sources that have stopped
        begin = end
    if not end.any():  # a ramp to such sources
        end = begin
    if not begin.any():
        raise Exhausted(piece.first)
    return replace(piece, begin=begin / begin.sum(), end=end / end.sum())


def _reaches(piece: Piece, source: int, rows: float) -> float:
    """Return where a source reaches this many rows in a piece; infinity if it never does."""
    if piece.rows(np.array([piece.last]))[0, source] < rows - _CLOSE:
        return math.inf
    begin, end = float(piece.begin[source]), float(piece.end[source])
    # The root of begin x + bend x² = rows, in the form that also holds where there is no bend.
    bend = (end - begin) / (2 * (piece.last - piece.first))
    inside = 2 * rows / (begin + math.sqrt(max(0.0, begin * begin + 4 * bend * rows)))
    return min(piece.first + inside, piece.last)


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
