"""The ledger balances or is an error that names the equation."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
import pytest

from packtool.errors import DataError
from packtool.metrics.ledger import Accounts, Ledger, balance, require_balance

BALANCED = Ledger(
    stored=10,
    left_out=0,
    packed_again=0,
    input=10,
    placed=8,
    dropped=2,
    repeated=3,
    eos=5,
    eos_inserted=2,
    eos_omitted=1,
    padding=4,
    output=20,
    rows=5,
)


@dataclass(frozen=True)
class Said:
    """What a strategy says of its plan."""

    sequence_length: int
    rows: int
    dropped: int
    eos_omitted: int
    eos_inserted: int


def test_both_sides_are_summed_over_row_lengths() -> None:
    plans = [Said(4, 3, 2, 1, 0), Said(2, 4, 0, 0, 2)]
    accounts = [
        Accounts(placed=5, repeated=3, eos=2, eos_inserted=0, padding=2, output=12, rows=3),
        Accounts(placed=3, repeated=0, eos=3, eos_inserted=2, padding=2, output=8, rows=4),
    ]
    assert balance(14, 4, plans, accounts) == msgspec.structs.replace(BALANCED, rows=7)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"left_out": 1}, "stored + packed again = left out + input, but 10 is not 11"),
        ({"packed_again": 2}, "stored + packed again = left out + input, but 12 is not 10"),
        ({"placed": 7}, "input = placed + dropped, but 10 is not 9"),
        ({"dropped": 3}, "input = placed + dropped, but 10 is not 11"),
        ({"repeated": 4}, "output = placed + repeated + eos + padding, but 20 is not 21"),
        ({"padding": 0}, "output = placed + repeated + eos + padding, but 20 is not 16"),
        ({"eos_omitted": 2}, "eos = documents + inserted - omitted, but 5 is not 4"),
        ({"eos_inserted": 3}, "eos = documents + inserted - omitted, but 5 is not 6"),
    ],
)
def test_the_equation_that_does_not_hold_is_named(change: dict[str, int], message: str) -> None:
    require_balance(BALANCED, documents=4)
    with pytest.raises(DataError) as caught:
        require_balance(msgspec.structs.replace(BALANCED, **change), documents=4)
    assert caught.value.code == "ledger-unbalanced"
    assert caught.value.what == f"the ledger does not balance: {message}"
