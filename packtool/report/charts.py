"""Charts as inline SVG: no scripts, colours from the page's style sheet, values as tooltips."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from itertools import chain
from typing import NamedTuple

from packtool.report.figures import count, percent, short
from packtool.report.types import SampleRow

WIDTH, HEIGHT = 360, 240
LEFT, RIGHT, TOP, BOTTOM = 46, 12, 30, 40
COLOURS = 10
"""Colours of series in the style sheet, c0 to c9."""
_INDENT, _STEP = 126, 20
"""Sizes in charts with one line a row: room for its label, height."""
_NAME = 17  # letters that fit beside a chart: those of `first-fit-shuffle`
_LABEL = 38  # room for the label of a tick
_THICK, _STRIP = 16, 21
"""Sizes in pictures of rows: height of a strip, and distance from one to the next."""
_NARROW = 1.2  # blocks narrower than this are drawn together with their neighbours of one colour
_SHADES = 8
"""Colours, from the shortest documents to the longest: each stands for four times the length of the one before."""


class Bin(NamedTuple):
    """A bar over the whole numbers first … last."""

    first: float
    last: float
    value: float


class Series(NamedTuple):
    """A line: its name, its colour, its places."""

    name: str
    colour: int
    points: Sequence[tuple[float, float]]
    dashed: bool = False


Lines = Sequence[tuple[str, Sequence[tuple[str, str, float]]]]
"""A line of a chart: its label and its parts, each with a name, a style class and a value."""


def tick_percent(value: float) -> str:
    """Write a share at an axis, without needless digits.

    >>> tick_percent(0.5), tick_percent(0.025)
    ('50%', '2.5%')
    """
    return f"{100 * value:.3g}%"


def histogram(
    title: str,
    bins: Sequence[Bin],
    *,
    label: str,
    unit: str,
    marks: Sequence[int] = (),
    logarithmic: bool = False,
    outline: Sequence[Bin] = (),
    write: Callable[[float], str] = short,
    tick: Callable[[float], str] = short,
) -> str:
    """Draw bars over ranges of whole numbers.

    Args:
        bins: adjoining, ascending.
        label: of the horizontal axis.
        unit: what the bars count.
        marks: places to mark by a line, such as sequence lengths.
        logarithmic: equal factors are equally wide.
        outline: a second histogram over the same ranges, drawn as a line.
        write: from the height of a bar to text.
        tick: the same at the axis.
    """
    low, high = bins[0].first - 0.5, bins[-1].last + 0.5
    if logarithmic:
        low = max(0.5, low)
        if marks:  # room for the last mark's label to its right
            high = max(high, low * (max(marks) / low) ** 1.4)
        x, ticks = horizontal(low, high, math.log), log_ticks(low, high)
    else:
        x, ticks = horizontal(low, high), [tick for tick in round_ticks(low, high) if tick == int(tick)]
    y = vertical(0, max(b.value for b in [*bins, *outline]) * 1.08 or 1)
    parts = [frame(Axis(x, ticks, label), Axis(y, round_ticks(0, y.high, 4), unit, tick))]
    for b in bins:
        left, right = x(max(low, b.first - 0.5)), x(b.last + 0.5)
        span = count(b.first)
        if b.last != b.first:
            span += f"–{count(b.last)}"
        tip = escape(f"{span}: {write(b.value)}")
        gap = 1 if right - left > 4 else 0
        parts.append(
            f'<rect class="bar" x="{left:g}" y="{y(b.value):g}" width="{max(0.5, right - left - gap):g}" '
            f'height="{max(0.0, y(0) - y(b.value)):g}"><title>{tip}</title></rect>'
        )
    if outline:
        path = f"M{x(max(low, outline[0].first - 0.5)):g} {y(0):g}"
        for b in outline:
            left, right, at = x(max(low, b.first - 0.5)), x(b.last + 0.5), y(b.value)
            path += f"L{left:g} {at:g}L{right:g} {at:g}"
        parts.append(f'<path class="line c1" d="{path}L{x(outline[-1].last + 0.5):g} {y(0):g}"/>')
    for line, mark in enumerate(marks):
        if low <= mark <= high:
            parts.append(_mark(x(mark), f"row of {count(mark)}", line))
    return drawing(title, "".join(parts))


def _mark(at: float, words: str, line: int, *, to_the_left: bool = False) -> str:
    """Draw a line whose label stands to its right, each label below the one before, so that none is crossed."""
    top = TOP + 13 * line + 4
    label = text(at + 4, top, words, css="mark-label")
    if to_the_left:
        label = text(at - 4, top, words, anchor="end", css="mark-label")
    return f'<line class="mark" x1="{at:g}" x2="{at:g}" y1="{top - 8:g}" y2="{HEIGHT - BOTTOM}"/>{label}'


def lines(
    title: str,
    series: Sequence[Series],
    *,
    x_label: str,
    y_label: str,
    top: float | None = None,
    marks: Sequence[tuple[float, str]] = (),
) -> str:
    """Draw several series as lines, named in a legend below (`legend`).

    Args:
        top: the highest value of the vertical axis; None for a little more than the highest there is.
        marks: places to mark by a line, and what it says.
    """
    xs, ys = zip(*chain.from_iterable(line.points for line in series), strict=True)
    highest = top or max(ys) * 1.08 or 1
    x, y = horizontal(min(xs), max(xs)), vertical(0, highest)
    parts = [
        frame(
            Axis(x, round_ticks(min(xs), max(xs)), x_label, short),
            Axis(y, round_ticks(0, highest, 4), y_label, tick_percent),
        )
    ]
    for line in series:
        path = "L".join(f"{x(a):g} {y(b):g}" for a, b in line.points)
        dash = " dashed" if line.dashed else ""
        parts.append(
            f'<path class="line c{line.colour % COLOURS}{dash}" d="M{path}"><title>{escape(line.name)}</title></path>'
        )
    for number, (place, words) in enumerate(marks):
        at = x(place)
        parts.append(_mark(at, words, number, to_the_left=at > WIDTH / 2))
    return drawing(title, "".join(parts))


def dots(title: str, rows: Lines) -> str:
    """Draw shares as dots, one line a row, on a square-root axis, so that small ones stay apart.

    Args:
        rows: (label, parts); a part is (name, style class, share).
    """
    most = 0.0
    for _, parts in rows:
        most = max([most, *(share for _, _, share in parts)])
    # The axis ends at the first of these shares that is not below the largest.
    ticks = [0.0]
    for share in (0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 1.0):
        ticks.append(share)
        if share >= most:
            break
    x = Scale(0, ticks[-1], _INDENT, WIDTH - 40, math.sqrt)
    out = [_ticks(x, _apart(ticks, x), tick_percent, len(rows))]
    for index, (label, parts) in enumerate(rows):
        at = _STEP * index + 11
        out.append(text(_INDENT - 10, at + 4, abridged(label), anchor="end", css="name"))
        for number, (name, css, share) in enumerate(parts):
            tip = f"<title>{escape(f'{label}: {name} {percent(share)}')}</title>"
            level = at + 7 * (number - (len(parts) - 1) / 2)
            out.append(f'<circle class="dot {css}" cx="{x(share):g}" cy="{level:g}" r="4.5">{tip}</circle>')
    return drawing(title, "".join(out), _STEP * len(rows) + 28)


def abridged(name: str) -> str:
    """Shorten a name until it fits beside a chart.

    >>> abridged("first-fit-shuffle"), abridged("common-crawl-2026-11")
    ('first-fit-shuffle', 'common-crawl-202…')
    """
    if len(name) <= _NAME:
        return name
    return f"{name[: _NAME - 1]}…"


def _apart(ticks: Sequence[float], x: Scale) -> list[float]:
    """Choose ticks whose labels have room: the first, the last, and between them the ones that lie apart."""
    last = ticks[-1]
    chosen = [ticks[0]]
    for tick in ticks[1:-1]:
        if min(x(tick) - x(chosen[-1]), x(last) - x(tick)) >= _LABEL:
            chosen.append(tick)
    return [*chosen, last]


def stacked(title: str, rows: Lines, unit: str) -> str:
    """Draw horizontal bars of parts, one bar a row, all on one scale.

    Args:
        rows: (label, parts); a part is (name, style class, value).
        unit: of the values.
    """
    totals = []
    for _, parts in rows:
        totals.append(sum(value for _, _, value in parts))
    most = max(totals, default=0) or 1
    out, top, step, thick = [], 4, 38, 18
    for index, (label, parts) in enumerate(rows):
        at, start = top + index * step, 0.0
        out.append(text(0, at + 10, label, css="name"))
        out.append(text(WIDTH, at + 10, f"{short(totals[index])} {unit}", anchor="end"))
        for name, css, value in parts:
            left, right = WIDTH * start / most, WIDTH * (start + value) / most
            start += value
            if value:
                out.append(
                    f'<rect class="part {css}" x="{left:.2f}" y="{at + 14}" width="{right - left:.2f}" '
                    f'height="{thick}"><title>{escape(name)}: {count(value)} {unit}</title></rect>'
                )
    return drawing(title, "".join(out), top + step * len(rows))


def _ticks(x: Scale, ticks: Sequence[float], write: Callable[[float], str], rows: int) -> str:
    """Draw upright grid lines behind rows, and their labels below."""
    bottom = _STEP * rows + 2
    out = ""
    for tick in ticks:
        out += f'<line class="grid" x1="{x(tick):g}" x2="{x(tick):g}" y1="0" y2="{bottom}"/>'
        out += text(x(tick), bottom + 14, write(tick), anchor="middle")
    return out


def legend(entries: Sequence[tuple[str, str]]) -> str:
    """Name series or parts next to their swatches: (name, style class of its swatch)."""
    items = "".join(f'<li><span class="swatch {css}"></span>{escape(name)}</li>' for name, css in entries)
    return f'<ul class="legend">{items}</ul>'


def row_picture(title: str, rows: Sequence[SampleRow]) -> str:
    """Draw rows as SVG, a strip each."""
    out = []
    for number, row in enumerate(rows):
        top, at = number * _STRIP + 2, 0.0
        whole = sum(segment.length for segment in row.segments) or 1
        for block in _blocks(row, whole):
            width = WIDTH * block.tokens / whole
            out.append(
                f'<rect class="piece {block.css}" x="{at:.2f}" y="{top}" width="{max(0.3, width - 0.4):.2f}" '
                f'height="{_THICK}"><title>{escape(block.tip)}</title></rect>'
            )
            if block.cut_before:
                out.append(_cut(at + 0.9, top))
            if block.cut_after:
                out.append(_cut(at + width - 1.3, top))
            at += width
    return drawing(title, "".join(out), max(_STRIP, _STRIP * len(rows)))


def picture_legend() -> str:
    """Explain the colours."""
    steps = [(f"to {4 ** (shade + 1):,}", f"l{shade}") for shade in range(_SHADES - 1)]
    return legend([*steps, ("longer", f"l{_SHADES - 1}"), ("padding", "padding"), ("cut here", "cut")])


class _RowBlock(NamedTuple):
    """A rectangle in the picture of a row: its style, tokens and tooltip, and which of its ends are cut."""

    css: str
    tokens: int
    tip: str
    cut_before: bool = False
    cut_after: bool = False

    def joins(self, css: str) -> bool:
        """Return whether a narrow block of a style can be drawn as one with this block."""
        return self.css == css and not self.cut_before and not self.cut_after


def _blocks(row: SampleRow, whole: int) -> list[_RowBlock]:
    """List the blocks of a row; neighbours that are narrow and alike are one block."""
    blocks: list[_RowBlock] = []
    for segment in row.segments:
        css: str = segment.kind
        tip = f"{segment.kind}, {count(segment.length)} tokens"
        if segment.kind == "document":
            # Twice the length is half a shade.
            css = f"l{min(_SHADES - 1, max(0, (max(1, segment.document_length) - 1).bit_length() - 1) // 2)}"
            tip = f"{count(segment.length)} tokens of a document of {count(segment.document_length)}"
        block = _RowBlock(css, segment.length, tip, segment.cut_before, segment.cut_after)
        narrow = WIDTH * segment.length / whole < _NARROW
        if blocks and narrow and block.joins(css) and blocks[-1].joins(css):
            tokens = blocks.pop().tokens + segment.length
            block = _RowBlock(css, tokens, "several short documents")
        blocks.append(block)
    return blocks


def _cut(x: float, top: int) -> str:
    """Draw a notch where a document is cut."""
    left, right = f"{x - 1.1:.2f}", f"{x + 1.1:.2f}"
    points = f"{left},{top} {right},{top + 4} {left},{top + 8} {right},{top + 12} {left},{top + 16}"
    return f'<polyline class="cut" points="{points}"/>'


@dataclass(frozen=True)
class Scale:
    """A scale of values along an axis."""

    low: float  # value at the start
    high: float  # value at the end
    start: float  # place of the start
    end: float  # place of the end
    bend: Callable[[float], float] = float  # values are spaced evenly after it (identity, logarithm, square root)

    def __call__(self, value: float) -> float:
        low, high = self.bend(self.low), self.bend(self.high)
        share = 0.5
        if high > low:
            share = (self.bend(value) - low) / (high - low)
        return round(self.start + share * (self.end - self.start), 2)


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
