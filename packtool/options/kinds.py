"""The kinds of value an option can take: how people write them on the command line and in a file."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from packtool.errors import UsageError

_FACTORS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


def _as_it_is(value: Any) -> Any:
    return value


@dataclass(frozen=True)
class Kind:
    """A kind of value.

    Attributes:
        words: what it takes, as in "give a whole number".
        metavar: what stands for the value in help.
        in_file: the type that a value must have in a TOML file.
        parse: from what was written, on the command line or in a file, to what the function takes; raises `ValueError`.
        many: several values, divided by commas on the command line.
        repeated: several values, each with the option's name on the command line.
    """

    words: str
    metavar: str
    in_file: Any
    parse: Callable[[Any], Any] = _as_it_is
    many: bool = False
    repeated: bool = False


def parse_count(value: str | int) -> int:
    """A whole number, also with one of the suffixes k, M and G, which count in powers of 1024 as row lengths do.

    >>> parse_count("2048"), parse_count("1.5k"), parse_count("256M"), parse_count(7)
    (2048, 1536, 268435456, 7)
    """
    match = re.fullmatch(r"\s*(-?\d+(?:\.\d+)?)\s*([kmg]?)\s*", str(value).lower().replace("_", ""))
    number = None if match is None else Fraction(match[1]) * _FACTORS[match[2]]
    if number is None or number.denominator != 1:
        raise ValueError(value)
    return int(number)


def exact(value: Fraction | float | str, where: str) -> Fraction:
    """A share as it is written: 0.3 is three tenths, not the binary number next to it.

    >>> exact(0.3, "--max-repetition")
    Fraction(3, 10)
    """
    try:
        return Fraction(str(value))
    except (ValueError, ZeroDivisionError):
        what = f"{value!r} is not a number"
        raise UsageError("bad-option", what, remedy="give a number from 0 to 1", where=where) from None


def _parse_counts(value: str | int | list[str | int]) -> list[int]:
    parts = value if isinstance(value, list) else str(value).split(",")
    return [parse_count(part) for part in parts]


def _parse_names(value: str | float | list[Any]) -> list[Any]:
    return value if isinstance(value, list) else [part.strip() for part in str(value).split(",")]


def _parse_weights(value: str | list[str] | dict[str, Any]) -> list[Any]:
    return [f"{name}={weight}" for name, weight in value.items()] if isinstance(value, dict) else _parse_names(value)


def _parse_lists(value: str | int | list[Any]) -> list[Any]:
    """One list of numbers, or several as they are written."""
    parts = value if isinstance(value, list) else str(value).split("/")
    lists = [_parse_counts(part) for part in parts]
    if all(isinstance(part, int) for part in parts):
        return [number for each in lists for number in each]
    return [",".join(map(str, each)) for each in lists]


FLAG = Kind("true or false", "", bool)
NUMBER = Kind("a whole number", "N", int, int)
COUNT = Kind("a whole number, such as 2048 or 2k", "N", int | str, parse_count)
COUNTS = Kind(
    "a list of whole numbers, such as 2048,8192", "N,...", list[int | str] | int | str, _parse_counts, many=True
)
SHARE = Kind("a number from 0 to 1", "SHARE", int | float | str)
SHARES = Kind(
    "a list of numbers from 0 to 1, such as 0.1,0.3",
    "SHARE,...",
    list[int | float | str] | int | float | str,
    _parse_names,
    many=True,
)
COUNT_LISTS = Kind(
    "a list of whole numbers, such as 2048,4096, or several such lists",
    "N,.../N,...",
    list[int | str] | int | str,
    _parse_lists,
    many=True,
)
SIZE = Kind("a size, such as 512MiB or 4GiB", "SIZE", int | str)
TEXT = Kind("a string", "TEXT", str)
TEXT_OR_ID = Kind("a string or a whole number", "TEXT|ID", int | str)
TEXT_OR_NUMBER = Kind("a share, such as 0.17 or 17%", "SHARE", int | float | str)
WEIGHTS = Kind(
    "a table of numbers, such as {web = 1, wiki = 3}, or a list of strings, such as web=1,wiki=3",
    "NAME=WEIGHT,...",
    dict[str, int | float | str] | list[str] | str,
    _parse_weights,
    many=True,
)
NAMES = Kind("a list of strings", "NAME,...", list[str] | str, _parse_names, many=True)
PATH = Kind("a path, as a string", "PATH", str)
PATHS = Kind("a path, as a string, or a list of them", "PATH", list[str] | str, repeated=True)
PLACE = Kind("a path or URL, as a string", "PATH", str)
PLACES = Kind("a path or URL, as a string, or a list of them", "PATH", list[str] | str, repeated=True)
GLOBS = Kind("a pattern, as a string, or a list of them", "GLOB", list[str] | str, repeated=True)
