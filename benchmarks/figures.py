"""From results to text: medians with their spread, tables, curves."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from statistics import median as middle
from typing import Any

from packtool.report.charts import HEIGHT, WIDTH, Axis, frame, horizontal, text, vertical

COLOURS = ("#0b62a8", "#c25a00", "#00805a", "#a8327e", "#7a6a00", "#5a4fc0", "#b3341f", "#2b8ca3", "#666666", "#222222")
STYLE = (
    "text{font:11px sans-serif;fill:#444}.grid{stroke:#ddd}.axis{stroke:#888}"
    ".line{fill:none;stroke-width:2;stroke-linejoin:round}"
)
Result = Mapping[str, Any]
"""One contestant in one case, as `benchmarks.runner.Result` was written."""
Figure = Callable[[Mapping[str, float]], float]
"""What is shown of one run."""


def of(name: str, scale: float = 1) -> Figure:
    """A figure that was measured, in other units."""
    return lambda run: run[name] * scale


def rate(amount: float, seconds: str) -> Figure:
    """So much in so many seconds."""
    return lambda run: amount / run[seconds]


def case(record: Any, name: str) -> list[Result]:
    return [each for each in record["results"] if each["case"] == name]


def by(results: Iterable[Result], fact: str) -> dict[str, dict[str, Result]]:
    found: dict[str, dict[str, Result]] = {}
    for each in results:
        found.setdefault(each["facts"][fact], {})[each["contestant"]] = each
    return found


def median(result: Result, value: Figure) -> float:
    return middle(map(value, result["runs"])) if result["runs"] else math.nan


def spread(result: Result, value: Figure) -> str:
    """The median, and the least and the most in brackets; nothing where nothing was measured."""
    return ranged(list(map(value, result["runs"])))


def ranged(values: Sequence[float]) -> str:
    if not values:
        return ""
    usual, least, most = map(figure, (middle(values), min(values), max(values)))
    return usual if least == most else f"{usual} ({least}–{most})"


def share(base: Result, result: Result) -> str:
    """Speed against the base, round by round, as a range."""
    shares = [a["wall"] / b.get("written_wall", b["wall"]) for a, b in zip(base["runs"], result["runs"], strict=False)]
    if not shares:
        return ""
    least, usual, most = (f"{100 * value:.0f}" for value in (min(shares), middle(shares), max(shares)))
    return f"{usual} %" if least == most else f"{usual} % ({least}–{most})"


def checked(result: Result) -> tuple[str, str]:
    found = result["checked"]
    same = found.get("same_documents")
    return str(found.get("lost_tokens", "")), "" if same is None else f"{math.floor(same * 10000) / 100:g} %"


def figure(value: float) -> str:
    """Three digits, without exponents.

    >>> figure(0.01234), figure(123.4), figure(5678.9)
    ('0.0123', '123', '5679')
    """
    if math.isnan(value):
        return ""
    digits = max(0, 2 - math.floor(math.log10(abs(value)))) if value else 0
    return f"{value:.{digits}f}"


def table(header: Sequence[object], rows: Iterable[Sequence[object]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def left_out(results: Iterable[Result]) -> list[str]:
    """Who took no part, and why."""
    reasons: dict[str, str] = {}
    for each in results:
        if each["missing"]:
            facts = ", ".join(
                f"{value:.10g} {name.replace('_', ' ')}"
                for name, value in each["facts"].items()
                if isinstance(value, int | float)
            )
            reasons.setdefault(f"{each['contestant']}: {each['missing']}", facts)
    lines = [f"- {why}" + ("" if " not " in why else f" ({facts})") for why, facts in reasons.items()]
    return ["Not measured:", "\n".join(lines)] if lines else []


def picture(
    path: Path, title: str, curves: Mapping[str, Sequence[tuple[float, float]]], x: str, y: str, across: Any = math.log
) -> str:
    """Write curves on logarithmic axes, and give the Markdown that shows them."""
    points = [point for curve in curves.values() for point in curve if point[1] > 0]
    if not points:
        return ""
    xs = sorted({a for a, _ in points})
    ys = [b for _, b in points]
    low, high = 10 ** math.floor(math.log10(min(ys))), 10 ** math.ceil(math.log10(max(ys)) + 1e-9)
    horizontally, vertically = horizontal(xs[0], xs[-1], across), vertical(low, high, math.log)
    ticks = [10.0**power for power in range(round(math.log10(low)), round(math.log10(high)) + 1)]
    parts = [frame(Axis(horizontally, xs, x), Axis(vertically, ticks, f"{y}, logarithmic", lambda value: f"{value:g}"))]
    for number, (name, curve) in enumerate(curves.items()):
        colour = COLOURS[number % len(COLOURS)]
        places = [(horizontally(a), vertically(b)) for a, b in curve if b > 0]
        line = "L".join(f"{a:g} {b:g}" for a, b in places)
        parts.append(f'<path class="line" stroke="{colour}" d="M{line}"/>')
        parts += [f'<circle fill="{colour}" cx="{a:g}" cy="{b:g}" r="3"/>' for a, b in places]
        at = 40 + 16 * number
        parts.append(f'<rect fill="{colour}" x="{WIDTH + 8}" y="{at - 9}" width="10" height="10"/>')
        parts.append(text(WIDTH + 23, at, name))
    body = "".join(parts)
    path.write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH + 230} {HEIGHT}" role="img" aria-label="{title}">'
        f'<style>{STYLE}</style><rect width="100%" height="100%" fill="white"/>{body}</svg>\n'
    )
    return f"![{title}]({path.parent.name}/{path.name})"
