"""Options out of range, not among the choices, or not for the strategy or method."""

from typing import Any

import pytest

import packtool
from packtool.errors import UsageError
from packtool.options.check import check_taken, checked
from packtool.options.names import STRATEGIES
from packtool.options.pack import PackArguments
from packtool.options.plans import PackOptions
from packtool.options.shuffle import ShuffleArguments
from packtool.options.tokenize import TokenizeArguments

COUNT = "a whole number, such as 2048 or 2k"
COUNTS = "a list of whole numbers, such as 2048,8192"


def shuffle(method: str, **options: Any) -> tuple[object, str, str]:
    return ShuffleArguments("source", "output", method=method, **options), "--method", method


def pack(strategy: str, **options: Any) -> tuple[object, str, str]:
    return PackArguments("tokens", "packed", strategy=strategy, **options), "--strategy", strategy


def tokenize(**options: Any) -> tuple[object, str, str]:
    return TokenizeArguments("a.jsonl", "o", **options), "", ""


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (shuffle("atom", batch_size=3), '[option-not-taken] batch_size: method="atom" does not take this option. '),
        (shuffle("partial", batch_size=3), '[missing-option] sequence_length: method="partial" needs this option. '),
        (shuffle("bucket", batch_tokens=3, atom_size=2), '[option-not-taken] atom_size: method="bucket" does not'),
        (shuffle("atom", epoch=-1), "[bad-option] epoch: -1 is out of range. Give a number from 0 to 2^32 - 1."),
        (shuffle("atom", workers=0), "[bad-option] workers: 0 is out of range. Give a number from 1 to 65536."),
        (shuffle("bucket", remainder="dorp"), "[bad-option] remainder: 'dorp' is not a known value. Did you mean drop"),
        (pack("buckets", buckets="512,b"), f"[bad-option] buckets: '512,b' can't be used. Give {COUNTS}."),
        (pack("bfd", sequence_length=True), f"[bad-option] sequence_length: True can't be used. Give {COUNT}."),
        (
            pack("bfd", sequence_length="128,256"),
            "[bad-option] sequence_length: rows have one length, not '128,256'. Give one; stats with compare tries "
            "several.",
        ),
        (pack("bfd", sequence_length=0.5), f"[bad-option] sequence_length: 0.5 can't be used. Give {COUNT}."),
        (tokenize(columns=["a", ""]), "[bad-option] columns: an empty name. Give the name of a field."),
        (tokenize(fim_spm_rate="7%", max_errors=1), "[option-not-taken] fim_spm_rate: "),  # the first as declared
    ],
)
def test_what_makes_no_sense(given: tuple[object, str, str], message: str) -> None:
    arguments, *chosen = given
    with pytest.raises(UsageError) as caught:
        check_taken(checked(arguments), *chosen)
    assert f"[{caught.value.code}] {caught.value}".startswith(message)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_defaults_are_always_taken(strategy: str) -> None:
    """Leaving an option out never makes a strategy refuse it, and spelling out its default neither."""
    length = {} if "buckets" in strategy else {"sequence_length": 16}
    check_taken(PackOptions(**length), "--strategy", strategy)
    given = PackArguments("s", "o", strategy=strategy, max_repetition=0.3, **length)
    check_taken(checked(given), "--strategy", strategy)


@pytest.mark.parametrize("size", [1 << 63, 10**400])
def test_numbers_that_no_array_holds(size: int) -> None:
    with pytest.raises(UsageError, match=r"batch_size: \d+…? is out of range\. Give a number from 1 to 2\^63 - 1"):
        packtool.stats("nothing", batch_size=size)
    with pytest.raises(UsageError, match=r"sequence_length: .* is out of range"):
        packtool.stats("nothing", sequence_length=[64, size])


@pytest.mark.parametrize("size", [1 << 63, "9" * 5000, 10**4999], ids=["63 bits", "digits", "number"])
def test_ids_and_workers_that_no_machine_has(size: int | str) -> None:
    for name in ("bos_token", "eos_token"):
        with pytest.raises(UsageError, match=rf"{name}: .* can't be used\. Give a string or an id below 2\^63\."):
            packtool.tokenize("nothing", "nowhere", **{name: size})
    with pytest.raises(UsageError, match=r"pad_token: .* can't be used\. Give a string or an id below 2\^63\."):
        packtool.pack("nothing", "nowhere", strategy="padding", sequence_length=8, pad_token=size)
    for workers in (size, (1 << 63) - 1, 65537):
        with pytest.raises(UsageError, match=r"workers: .* (can't be used|is out of range)\. Give a (whole )?number"):
            packtool.tokenize("nothing", "nowhere", workers=workers)
