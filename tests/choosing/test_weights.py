"""What `--mix` and `--tokens` ask of stores, beside shares that are poured into them."""

import re
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from packtool.choosing.weights import epochs_of_shares, shares_of, weights_in
from packtool.errors import UsageError

STORES = st.lists(st.tuples(st.integers(0, 50), st.integers(0, 400)), min_size=1, max_size=5).filter(
    lambda stores: any(weight for weight, _ in stores)
)
"""The weight and the tokens of each store."""


def epochs(stores: list[tuple[int, int]], budget: int, most: int, *, stop: bool) -> list[Fraction]:
    names = [f"s{number}" for number in range(len(stores))]
    shares = shares_of([weight for weight, _ in stores])
    return epochs_of_shares(shares, [tokens for _, tokens in stores], names, budget, most, stop=stop)


@given(stores=STORES, budget=st.integers(1, 1500), most=st.integers(1, 3))
def test_the_largest_that_a_message_names_is_the_largest(stores: list[tuple[int, int]], budget: int, most: int) -> None:
    said = ""
    try:
        found = epochs(stores, budget, most, stop=False)
        assert sum(each * tokens for each, (_, tokens) in zip(found, stores, strict=True)) == budget
        assert max(found) <= most
    except UsageError as error:
        said = str(error)
    if said and "has no tokens" not in said:
        largest = int(said.partition("tokens=")[2].split()[0])
        assert largest < budget
        if largest:
            epochs(stores, largest, most, stop=False)
        assert epochs(stores, budget, int(re.findall(r"max_epochs=(\d+)", said)[0]), stop=False)
        if "stop=True" in said:
            assert epochs(stores, budget, most, stop=True)
        with pytest.raises(UsageError):
            epochs(stores, largest + 1, most, stop=False)


@pytest.mark.parametrize(
    ("budget", "stop", "said"),
    [
        (
            300,
            False,
            "50% of 300 tokens takes 1.5 epochs of s0. Give tokens=200 or fewer, max_epochs=2, 33.3333% of s0 or less, "
            "or stop=True, so that the others give what it lacks",
        ),
        (400, False, "50% of 400 tokens takes 2 epochs of s0. Give tokens=200 or fewer, or max_epochs=2."),
        (400, True, "the stores with a share give 350 of 400 tokens. Give fewer tokens, or more max_epochs"),
    ],
)
def test_a_share_that_is_too_large_is_one_clear_error(budget: int, stop: bool, said: str) -> None:
    with pytest.raises(UsageError) as raised:
        epochs([(1, 100), (1, 250)], budget, 1, stop=stop)
    assert said in str(raised.value)


@pytest.mark.parametrize(
    ("written", "divided", "recorded"),
    [
        ("2x", False, "2"),
        (" 0.5 x", False, "1/2"),
        ("1/3x", False, "1/3"),
        ("0", False, "0"),
        ("5k documents", False, "5000 documents"),
        ("1 document", False, "1 documents"),
        ("2M tokens", False, "2000000 tokens"),
        ("60", True, "60"),
        ("0.25", True, "1/4"),
        ("100%", True, "1"),
    ],
)
def test_what_is_understood_is_recorded(written: str, divided: bool, recorded: str) -> None:
    [(name, weight)] = weights_in([f"a=b={written}"], divided=divided)
    assert (name, str(weight)) == ("a=b", recorded)
