"""The name, format and meaning of each figure, once for all tables. See docs/glossary.md."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import TYPE_CHECKING

from packtool.report.table import Column

if TYPE_CHECKING:
    from packtool.metrics.homogeneity import Homogeneity
    from packtool.metrics.summary import Metrics

Value = int | float | None
"""A figure; None where it is not known."""


def count(value: Value) -> str:
    """Write a whole number with separators.

    >>> count(1234567)
    '1,234,567'
    """
    return "–" if value is None else f"{value:,.0f}"


def short(value: Value) -> str:
    """Write a number in at most five characters, its size by suffix.

    >>> short(7), short(1234), short(12345678), short(9_999_999_999)
    ('7', '1,234', '12.3M', '10.0G')
    """
    if value is None:
        return "–"
    if abs(value) < 10_000:
        return f"{value:,.0f}"
    suffixes = iter("kMGTP")
    while True:
        value, suffix = value / 1000, next(suffixes)
        if abs(value) < 999.5:
            return f"{value:.0f}{suffix}" if abs(value) >= 99.95 else f"{value:.1f}{suffix}"


def percent(value: Value) -> str:
    """Write a share in percent, never rounded to zero or to one hundred.

    >>> percent(0.1234), percent(0.0), percent(0.00001), percent(0.99999), percent(1.0)
    ('12.34%', '0', '<0.01%', '>99.99%', '100%')
    """
    if value is None:
        return "–"
    if value == 0:
        return "0"
    if value == 1:
        return "100%"
    if abs(value) < 0.0001:
        return "<0.01%"
    if 0.9999 < value < 1:
        return ">99.99%"
    return f"{100 * value:.2f}%"


def number(value: Value) -> str:
    """Write a number with about three significant figures.

    >>> number(3.14159), number(27.18), number(1234.5)
    ('3.14', '27.2', '1,234')
    """
    if value is None:
        return "–"
    if abs(value) < 10:
        return f"{value:.2f}"
    return f"{value:.1f}" if abs(value) < 100 else f"{value:,.0f}"


def seconds(value: float) -> str:
    """Write CPU seconds."""
    return f"{value:.2f}"


def times(value: Value) -> str:
    """Write a multiple.

    >>> times(1.5), times(None)
    ('1.50×', '–')
    """
    return "–" if value is None else f"{number(value)}×"


def times_random(homogeneity: Homogeneity) -> Value:
    """Return how many times as alike the rows are inside as random rows of the same segments."""
    return homogeneity.between_rows / homogeneity.random_rows if homogeneity.random_rows else None


def _figure(
    key: str, title: str, write: Callable[[Value], str], meaning: str, better: int = 0, short: str = ""
) -> tuple[str, Column[Metrics]]:
    return key, Column(title, attrgetter(key), write, meaning, better, short=short)


ALIKE = "variance of log length between rows, times that of random rows; 1 is as mixed as random"
_CUT = "documents that are cut / documents; a document is cut if its text does not lie whole in one row"
_AVOIDABLE = "documents no longer than a row (of several lengths, the longest) that are cut / all such documents"
_CONTEXT = "tokens of its own document before a token in its row, averaged over all tokens but padding"
_BETWEEN = (
    "share of the variance of log length of segments that lies between rows; 100% where each row holds one length"
)
_EQUAL = "rows of more than two segments in which all lengths, or all but one, are equal / such rows"
_ABOVE = "rows above the fewest that the same tokens fill: the sum over row lengths of ceil((output - padding) / L)"
FIGURES = dict(
    [
        _figure("padding_ratio", "padding", percent, "padding tokens / output tokens", -1),
        _figure("truncation_ratio", "truncation", percent, _CUT, -1),
        _figure("avoidable_truncation_ratio", "avoidable truncation", percent, _AVOIDABLE, -1, "avoidable"),
        _figure("dropped_ratio", "dropped", percent, "text tokens in no row / text tokens", -1),
        _figure("repeated_ratio", "repeated", percent, "text tokens of earlier rows / output tokens", 0, "repeat"),
        _figure("concatenation_ratio", "concatenation", number, "documents / rows", -1, "docs"),
        _figure("mean_context", "mean context", number, _CONTEXT, 1, "context"),
        _figure("homogeneity.between_rows", "between rows", percent, _BETWEEN, -1),
        _figure("homogeneity.random_rows", "at random", percent, "the same if segments were put into rows at random"),
        _figure("homogeneity.equal_but_one", "equal but one", percent, _EQUAL, -1),
        _figure("rows", "rows", count, "training samples"),
        _figure("row_excess", "above bound", percent, _ABOVE, -1),
        _figure(
            "steps_per_epoch", "steps per epoch", count, "batches in an epoch; the last may be smaller", -1, "steps"
        ),
    ]
)
"""The figures of a packing, by their names among the metrics; a dot leads into a part of them. See docs/glossary.md."""
