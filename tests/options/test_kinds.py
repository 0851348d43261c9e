"""How values are written, on the command line and in files."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from packtool.choosing.weights import weights_in
from packtool.errors import UsageError
from packtool.options.kinds import COUNTS, NAMES, HoldoutAmount, parse_count, parse_part, parse_share


@pytest.mark.parametrize(
    ("parse", "written", "value"),
    [
        (parse_count, "1_000", 1000),
        *((parse_share, share, Fraction(17, 100)) for share in ("17%", " 17 %", "0.17", 0.17, "17/100")),
        (COUNTS.parse, "2k, 4096", [2048, 4096]),
        (COUNTS.parse, [64, "1k"], [64, 1024]),
        (NAMES.parse, "concat, bfd", ["concat", "bfd"]),
        *(
            (parse_part, share, HoldoutAmount(str(share), Fraction(1, 10)))
            for share in ("10%", 0.1, ".1", "1/10", Fraction(1, 10))
        ),
        (parse_part, "1k documents", HoldoutAmount("1k documents", documents=1000)),
        (parse_part, "2M tokens", HoldoutAmount("2M tokens", tokens=2_000_000)),
    ],
)
def test_a_value_however_it_is_written(parse: Callable[[Any], Any], written: Any, value: Any) -> None:
    assert parse(written) == value
    assert parse(value) == value, "what was parsed is parsed again"


UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


@given(st.integers(-(1 << 40), 1 << 40), st.sampled_from(["", *"kKmMgG"]), st.sampled_from(["", " "]))
def test_a_count_is_its_number_in_units(number: int, unit: str, blank: str) -> None:
    assert parse_count(f"{blank}{number}{blank}{unit}") == number * UNITS[unit.lower()]


@pytest.mark.parametrize(
    ("parse", "written"),
    [
        *((parse_count, text) for text in ("k", "2kk", "2.1k", "2.5", "2KiB", "two", "0x10")),
        *((parse_share, text) for text in ("170%", "1.5", 2, -0.1, "nan", "1/0", True, "", "%", "epochs")),
        *((parse_part, text) for text in ("0 documents", "-3", "0.1 tokens", "110%", "3/2", True, "much")),
    ],
)
def test_what_is_no_such_value(parse: Callable[[Any], Any], written: Any) -> None:
    with pytest.raises(ValueError, match=r".*"):
        parse(written)


@given(number=st.floats(0, 1))
def test_every_float_is_a_share(number: float) -> None:
    assert parse_share(number) == parse_share(repr(number)) == Fraction(repr(number))


@pytest.mark.parametrize(
    "text", ["1e999999999", "1e999999999%", "1e-999999999", "9" * 5000, f"1/{'9' * 5000}", "1/0", "e", ""]
)
def test_numbers_that_would_take_for_ever(text: str) -> None:
    with pytest.raises(ValueError, match=r".*"):
        parse_share(text)
    with pytest.raises(UsageError, match="what is asked of web is"):
        weights_in([f"web={text}"], divided=True)
