"""What each figure is called, how it is written, and what it means: one place for all tables. See docs/glossary.md."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass

from packtool.metrics import Metrics
from packtool.metrics.homogeneity import Homogeneity

Value = int | float | None
"""A figure; None where it is not known."""


def count(value: Value) -> str:
    """A whole number with separators.

    >>> count(1234567)
    '1,234,567'
    """
    return "–" if value is None else f"{value:,.0f}"


def short(value: Value) -> str:
    """A number in at most five characters, its size by suffix.

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
    """A share in percent, never rounded to zero or to one hundred.

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
    """A number with about three significant figures.

    >>> number(3.14159), number(27.18), number(1234.5)
    ('3.14', '27.2', '1,234')
    """
    if value is None:
        return "–"
    if abs(value) < 10:
        return f"{value:.2f}"
    return f"{value:.1f}" if abs(value) < 100 else f"{value:,.0f}"


def seconds(value: float) -> str:
    """CPU seconds."""
    return f"{value:.2f}"


def times(value: Value) -> str:
    """A multiple.

    >>> times(1.5), times(None)
    ('1.50×', '–')
    """
    return "–" if value is None else f"{number(value)}×"


def times_random(found: Homogeneity) -> Value:
    """How many times as alike rows are inside as random rows of the same segments would be."""
    return found.between_rows / found.random_rows if found.random_rows else None


@dataclass(frozen=True)
class Figure:
    """One figure of a report.

    Attributes:
        key: its name among the metrics; a dot leads into a part of them.
        label: its name.
        write: from value to text.
        meaning: in a sentence.
        better: -1 where less is better, 1 where more is, 0 where neither.
        short: its name where room is scarce; empty for the label itself.
    """

    key: str
    label: str
    write: Callable[[Value], str]
    meaning: str
    better: int = 0
    short: str = ""

    def of(self, metrics: Metrics) -> Value:
        """Its value among these metrics."""
        value: Value = operator.attrgetter(self.key)(metrics)
        return value


FIGURES = (
    Figure("padding_ratio", "padding", percent, "padding tokens / output tokens", -1),
    Figure(
        "truncation_ratio",
        "truncation",
        percent,
        "documents that are cut / documents; a document is cut if its text does not lie whole in one row",
        -1,
    ),
    Figure(
        "avoidable_truncation_ratio",
        "avoidable truncation",
        percent,
        "documents that are cut though they are no longer than a row (of several lengths, the longest) / documents no "
        "longer than a row",
        -1,
        "avoidable",
    ),
    Figure("dropped_ratio", "dropped", percent, "text tokens in no row / text tokens", -1),
    Figure(
        "repeated_ratio", "repeated", percent, "text tokens that an earlier row has / output tokens", short="repeat"
    ),
    Figure("concatenation_ratio", "concatenation", number, "documents / rows", -1, "docs"),
    Figure(
        "mean_context",
        "mean context",
        number,
        "tokens of its own document before a token in its row, averaged over all tokens but padding",
        1,
        "context",
    ),
    Figure(
        "homogeneity.between_rows",
        "between rows",
        percent,
        "share of the variance of log length (of a document's segment in its row) that lies between rows; 100% where "
        "each row holds one length",
        -1,
    ),
    Figure("homogeneity.random_rows", "at random", percent, "the same if the segments were put into rows at random"),
    Figure(
        "homogeneity.equal_but_one",
        "equal but one",
        percent,
        "rows of more than two segments in which all lengths, or all but one, are equal / such rows",
        -1,
    ),
    Figure("rows", "rows", count, "training samples"),
    Figure(
        "row_excess",
        "above bound",
        percent,
        "rows above the fewest that the same tokens fill: the sum over row lengths of ceil((output - padding) / L)",
        -1,
    ),
    Figure("steps_per_epoch", "steps per epoch", count, "batches in an epoch; the last may be smaller", -1, "steps"),
)

ALIKE = "variance of log length between rows, times that of random rows; 1 is as mixed as random"
BY_KEY = {figure.key: figure for figure in FIGURES}
