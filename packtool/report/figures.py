"""Write figures, the same in the terminal, on pages and in sentences. A figure that is not known is a dash."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from packtool.formats.schema import Shuffle
from packtool.planning.metrics.homogeneity import Homogeneity

UNKNOWN = "–"


def count(value: float) -> str:
    """Write a whole number with separators.

    >>> count(1234567)
    '1,234,567'
    """
    return f"{value:,.0f}"


def short(value: float) -> str:
    """Write a number in at most five characters, its size by suffix.

    >>> short(7), short(1234), short(12345678), short(9_999_999_999)
    ('7', '1,234', '12.3M', '10.0G')
    """
    if abs(value) < 10_000:
        return count(value)
    suffixes = iter("kMGTP")
    while True:
        value, suffix = value / 1000, next(suffixes)
        if abs(value) < 999.5:
            digits = 0 if abs(value) >= 99.95 else 1
            return f"{value:.{digits}f}{suffix}"


def percent(value: float) -> str:
    """Write a share in percent, never rounded to zero or to one hundred.

    >>> percent(0.1234), percent(0.0), percent(0.00001), percent(0.99999), percent(1.0)
    ('12.34%', '0', '<0.01%', '>99.99%', '100%')
    """
    if value == 0:
        return "0"
    if value == 1:
        return "100%"
    if abs(value) < 0.0001:
        return "<0.01%"
    if 0.9999 < value < 1:
        return ">99.99%"
    return f"{100 * value:.2f}%"


def number(value: float) -> str:
    """Write a number with about three significant figures.

    >>> number(3.14159), number(27.18), number(1234.5)
    ('3.14', '27.2', '1,234')
    """
    if abs(value) < 10:
        return f"{value:.2f}"
    if abs(value) < 100:
        return f"{value:.1f}"
    return count(value)


def decimal(value: float) -> str:
    """Write a number with at most four digits after its point, without zeros at its end.

    >>> decimal(60.0), decimal(0.39702)
    ('60', '0.397')
    """
    return f"{value:,.4f}".rstrip("0").rstrip(".")


def times(value: float) -> str:
    """Write a multiple.

    >>> times(1.5)
    '1.50×'
    """
    return f"{number(value)}×"


def times_random(homogeneity: Homogeneity) -> float | None:
    """Return how many times as alike the rows are inside as random rows of the same segments; None if that is 0."""
    if not homogeneity.random_rows:
        return None
    return homogeneity.between_rows / homogeneity.random_rows


def order_in_words(shuffle: Shuffle | None, order_by: Sequence[str] = ()) -> str:
    """Say in which order rows are.

    Args:
        shuffle: as manifests record it; None where rows keep the order of their documents.
        order_by: fields that put the documents in order before.

    >>> order_in_words(None), order_in_words(Shuffle(method="atom", seed=42, epoch=1, atom_size=64))
    ('corpus order', 'atoms of 64 tokens shuffled, seed 42, epoch 1')
    """
    if shuffle is None and not order_by:
        return "corpus order"
    ordered = f"ordered by {','.join(order_by)}"
    if shuffle is None:
        return ordered
    how = f"{shuffle.method} shuffle"
    if shuffle.atom_size:
        how = f"atoms of {count(shuffle.atom_size)} tokens shuffled"
    elif shuffle.method == "atom":
        how = "rows shuffled"
    how += f", seed {shuffle.seed}"
    if shuffle.epoch:
        how += f", epoch {shuffle.epoch}"
    if order_by:
        return f"{ordered}, then {how}"
    return how


def options_in_words(options: Mapping[str, Any]) -> str:
    """List options in words.

    >>> options_in_words({"sequence_length": 2048, "mix_rows": True, "segments": False, "max_repetition": None})
    'sequence length 2,048, mix rows: yes, segments: no'
    """
    words = []
    for name, value in options.items():
        title = name.replace("_", " ")
        if isinstance(value, bool):
            words.append(f"{title}: {'yes' if value else 'no'}")
        elif value is not None:
            words.append(f"{title} {_in_words(value)}")
    return ", ".join(words)


def _in_words(value: Any) -> str:
    if isinstance(value, list | tuple):
        return " / ".join(map(_in_words, value))
    if isinstance(value, int):
        return count(value)
    return str(value)


def texts_left_out(counts: Mapping[str, int]) -> str:
    """Say which texts a token store left out, and why; an empty string if it left out none.

    >>> texts_left_out({"empty": 0, "filtered": 2, "rejected": 3, "rejected_invalid_json": 3, "rejected_not_utf8": 0})
    '2 filtered, 3 rejected (3 invalid-json)'
    """
    left_out: list[str] = []
    for name in ("empty", "filtered", "rejected"):
        if counts.get(name):
            left_out.append(f"{count(counts[name])} {name}")
    reasons: list[str] = []
    for name, number in counts.items():
        if name.startswith("rejected_") and number:
            reasons.append(f"{count(number)} {name.removeprefix('rejected_').replace('_', '-')}")
    words = ", ".join(left_out)
    if reasons:
        words += f" ({', '.join(reasons)})"
    return words
