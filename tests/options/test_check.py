"""Options out of range, not among the choices, or not for the strategy or method."""

from __future__ import annotations

from typing import Any

import pytest

import packtool
from packtool.errors import UsageError
from packtool.options.check import check_taken, checked
from packtool.options.names import STRATEGIES
from packtool.options.pack import PackArguments
from packtool.options.plans import PackOptions
from packtool.options.shuffle import ShuffleArguments


def refused(arguments: object, *chosen: str) -> str:
    with pytest.raises(UsageError) as caught:
        check_taken(checked(arguments), *chosen)
    return f"[{caught.value.code}] {caught.value}"


@pytest.mark.parametrize(
    ("method", "options", "message"),
    [
        ("atom", {"batch_size": 3}, '[option-not-taken] batch_size: method="atom" does not take this option. Leave '),
        ("partial", {"batch_size": 3}, '[missing-option] sequence_length: method="partial" needs this option. Give '),
        ("bucket", {"batch_tokens": 3, "atom_size": 2}, '[option-not-taken] atom_size: method="bucket" does not'),
        ("atom", {"epoch": -1}, "[bad-option] epoch: -1 is out of range. Give a number from 0 to 2^32 - 1."),
        ("atom", {"workers": 0}, "[bad-option] workers: 0 is out of range. Give 1 or more."),
        ("bucket", {"remainder": "dorp"}, "[bad-option] remainder: 'dorp' is not a known value. Did you mean drop?"),
    ],
)
def test_shuffles(method: str, options: dict[str, Any], message: str) -> None:
    arguments = ShuffleArguments("source", "output", method=method, **options)
    assert refused(arguments, "--method", method).startswith(message)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_defaults_are_always_taken(strategy: str) -> None:
    """Leaving an option out never makes a strategy refuse it, and spelling out its default neither."""
    length = {} if "buckets" in strategy else {"sequence_length": 16}
    check_taken(PackOptions(**length), "--strategy", strategy)
    given = PackArguments("s", "o", strategy=strategy, max_repetition=0.3, **length)
    check_taken(checked(given), "--strategy", strategy)


COUNT = "a whole number, such as 2048 or 2k"
COUNTS = "a list of whole numbers, such as 2048,8192"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"buckets": "512,b"}, f"buckets: '512,b' can't be used. Give {COUNTS}."),
        ({"sequence_length": True}, f"sequence_length: True can't be used. Give {COUNT}."),
        ({"sequence_length": 0.5}, f"sequence_length: 0.5 can't be used. Give {COUNT}."),
        ({"sequence_length": 8, "shuffle": "no"}, "shuffle: 'no' can't be used. Give true or false."),
        ({"sequence_length": 8, "seed": "x"}, "seed: 'x' can't be used. Give a whole number."),
    ],
)
def test_numbers_given_from_python_as_something_else(options: dict[str, Any], message: str) -> None:
    strategy = "buckets" if "buckets" in options else "bfd"
    given = PackArguments("tokens", "packed", strategy=strategy, **options)
    assert refused(given, "--strategy", strategy) == f"[bad-option] {message}"


@pytest.mark.parametrize("size", [1 << 63, 10**400])
def test_numbers_that_no_array_holds(size: int) -> None:
    with pytest.raises(UsageError, match=r"batch_size: \d+ is out of range\. Give a number from 1 to 2\^63 - 1"):
        packtool.stats("nothing", batch_size=size)
    with pytest.raises(UsageError, match=r"sequence_length: .* is out of range"):
        packtool.stats("nothing", sequence_length=[64, size])
