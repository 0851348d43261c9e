"""How values are written, on the command line and in files."""

from __future__ import annotations

import json
import re
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import packtool
from packtool.cli import run
from packtool.errors import UsageError
from packtool.options.check import checked
from packtool.options.kinds import COUNTS, NAMES, parse_count, parse_part, parse_share
from packtool.options.plans import PackOptions
from packtool.planning.selecting.weights import weights_in
from tests.shell import Shell
from tests.stores import write_store


@pytest.mark.parametrize(
    ("text", "value"),
    [("2k", 2048), ("2K", 2048), (" 8 k", 8192), ("1M", 1 << 20), ("2G", 1 << 31), ("1_000", 1000), ("-3", -3)],
)
def test_counts(text: str, value: int) -> None:
    assert parse_count(text) == value


@pytest.mark.parametrize("text", ["k", "2kk", "2.1k", "2.5", "2KiB", "two", "0x10"])
def test_what_is_not_a_count(text: str) -> None:
    with pytest.raises(ValueError, match=re.escape(text)):
        parse_count(text)


def test_lists() -> None:
    assert COUNTS.parse("2k, 4096") == [2048, 4096]
    assert COUNTS.parse([64, "1k"]) == [64, 1024]
    assert NAMES.parse("concat, bfd") == ["concat", "bfd"]


def test_shares_are_exact() -> None:
    for written in ("0.3", 0.3, Fraction(3, 10), "3/10"):
        assert PackOptions(max_repetition=written).repetition == Fraction(3, 10)
    with pytest.raises(UsageError, match=r"max_repetition: 'x' can't be used. Give a share of at most 1, such as 1%."):
        checked(PackOptions(max_repetition="x"))


@pytest.mark.parametrize("written", ["17%", " 17 %", "0.17", 0.17, "17/100", Fraction(17, 100)])
def test_a_share_however_it_is_written(written: Fraction | float | str) -> None:
    assert parse_share(written) == Fraction(17, 100)


@pytest.mark.parametrize(
    "text", ["1e999999999", "1e999999999%", "1e-999999999", "9" * 5000, f"1/{'9' * 5000}", "1/0", "e", ""]
)
def test_numbers_that_would_take_for_ever(text: str) -> None:
    with pytest.raises(ValueError, match=r".*"):
        parse_share(text)
    with pytest.raises(UsageError, match="what is asked of web is"):
        weights_in([f"web={text}"], divided=True)


@given(number=st.floats(0, 1))
def test_every_float_is_a_share(number: float) -> None:
    assert parse_share(number) == parse_share(repr(number)) == Fraction(repr(number))


@pytest.mark.parametrize("written", ["170%", "1.5", 2, -0.1, "nan", "1/0", True, "", "%", "epochs"])
def test_what_is_no_share(written: Fraction | float | str) -> None:
    with pytest.raises(ValueError, match=r".*"):
        parse_share(written)


@pytest.mark.parametrize(
    ("written", "share", "documents", "tokens"),
    [
        ("10%", Fraction(1, 10), 0, 0),
        (0.1, Fraction(1, 10), 0, 0),
        (".1", Fraction(1, 10), 0, 0),
        ("1000 documents", None, 1000, 0),
        ("1k", None, 1000, 0),
        (1, None, 1, 0),
        ("2M tokens", None, 0, 2_000_000),
    ],
)
def test_a_part_is_a_share_or_an_amount(
    written: float | str, share: Fraction | None, documents: int, tokens: int
) -> None:
    found = parse_part(written)
    assert (found.share, found.documents, found.tokens) == (share, documents, tokens)
    assert str(found) == str(written)
    assert parse_part(found) is found


@pytest.mark.parametrize("written", ["0", "0 documents", "1.5", 2.5, "-3", "0.1 tokens", "110%", "much"])
def test_what_is_no_part(written: float | str) -> None:
    with pytest.raises(ValueError, match=r".*"):
        parse_part(written)


def test_suffixes_on_the_command_line_and_in_a_file(here: Path) -> None:
    write_store(Path("store"), [5, 9, 3000])
    Path("c.toml").write_text('[pack]\nsequence-length = "1k"\nshard-tokens = "2M"\n', encoding="utf-8")
    base = ["pack", "store", "--strategy", "concat", "-q"]
    assert run([*base, "-o", "a", "-L", "1k", "--shard-tokens", "2M"]) == 0
    assert run([*base, "-o", "b", "--config", "c.toml"]) == 0
    packtool.pack("store", "c", strategy="concat", sequence_length=1024, shard_tokens=2 << 20)
    manifests = [json.loads(Path(name, "manifest.json").read_text(encoding="utf-8")) for name in "abc"]
    assert manifests[0] == manifests[1] == manifests[2]
    assert manifests[0]["options"]["sequence_length"] == 1024


def test_a_number_that_is_none(tmp_path: Path, shell: Shell) -> None:
    assert shell.refused("pack", "s", "-o", tmp_path / "p", "--strategy", "concat", "-L", "2kk", status=2) == (
        "packtool: error[bad-option]: --sequence-length: '2kk' can't be used. "
        "Give a whole number, such as 2048 or 2k.\n"
    )
