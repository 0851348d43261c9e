"""Scales and frames of charts: map values to coordinates in an SVG drawing."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

from packtool.report.figures import short

WIDTH, HEIGHT = 420, 250
LEFT, RIGHT, TOP, BOTTOM = 44, 12, 28, 38


@dataclass(frozen=True)
class Scale:
    """Where values lie along an axis.

    Attributes:
        low, high: values at the ends.
        begin, end: places of the ends.
        bend: values are spaced evenly after it (identity, logarithm, square root).
    """

    low: float
    high: float
    begin: float
    end: float
    bend: Callable[[float], float] = float

    def __call__(self, value: float) -> float:
        low, high = self.bend(self.low), self.bend(self.high)
        share = (self.bend(value) - low) / (high - low) if high > low else 0.5
        return round(self.begin + share * (self.end - self.begin), 2)


def horizontal(low: float, high: float, bend: Callable[[float], float] = float) -> Scale:
    """Make a scale from left to right."""
    return Scale(low, high, LEFT, WIDTH - RIGHT, bend)


def vertical(low: float, high: float, bend: Callable[[float], float] = float) -> Scale:
    """Make a scale from bottom to top."""
    return Scale(low, high, HEIGHT - BOTTOM, TOP, bend)


def round_ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Round values from `low` to `high`, at steps of 1, 2 or 5 times a power of ten.

    >>> round_ticks(0, 0.37)
    [0.0, 0.1, 0.2, 0.3]
    """
    if high <= low:
        return [low]
    raw = (high - low) / about
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= raw * 0.999)
    first = math.ceil(low / step - 1e-9)
    return [round(step * i, 12) for i in range(first, math.floor(high / step + 1e-9) + 1)]


def log_ticks(low: float, high: float) -> list[float]:
    """Choose powers of two from `low` to `high`, at most seven, evenly spaced in their exponent."""
    first, last = math.ceil(math.log2(max(low, 1))), math.floor(math.log2(max(high, 1)))
    step = max(1, -(-(last - first + 1) // 7))
    return [float(2**i) for i in range(first, last + 1, step)]


@dataclass(frozen=True)
class Axis:
    """A labelled axis."""

    scale: Scale
    ticks: Sequence[float]
    label: str
    write: Callable[[float], str] = short


def frame(x: Axis, y: Axis) -> str:
    """Draw grid lines, tick labels and axis labels."""
    left, right, bottom = LEFT, WIDTH - RIGHT, HEIGHT - BOTTOM
    parts = []
    for tick in y.ticks:
        at = y.scale(tick)
        parts.append(f'<line class="grid" x1="{left}" x2="{right}" y1="{at}" y2="{at}"/>')
        parts.append(text(left - 5, at + 4, y.write(tick), anchor="end"))
    for tick in x.ticks:
        at = x.scale(tick)
        parts.append(f'<line class="axis" x1="{at}" x2="{at}" y1="{bottom}" y2="{bottom + 4}"/>')
        parts.append(text(at, bottom + 16, x.write(tick), anchor="middle"))
    parts.append(f'<line class="axis" x1="{left}" x2="{right}" y1="{bottom}" y2="{bottom}"/>')
    parts.append(text((left + right) / 2, HEIGHT - 6, x.label, anchor="middle", css="label"))
    parts.append(text(0, 11, y.label, css="label"))
    return "".join(parts)


def text(x: float, y: float, words: str, *, anchor: str = "start", css: str = "tick") -> str:
    """Draw a line of text."""
    return f'<text class="{css}" x="{x:g}" y="{y:g}" text-anchor="{anchor}">{escape(words)}</text>'


def drawing(title: str, body: str, height: float = HEIGHT) -> str:
    """Make an SVG drawing that scales with its column; `title` is read out in its place."""
    return f'<svg viewBox="0 0 {WIDTH} {height:g}" role="img" aria-label="{escape(title, quote=True)}">{body}</svg>'
