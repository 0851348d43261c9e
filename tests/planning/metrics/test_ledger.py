"""The ledger balances or is an error that names the equation."""

from dataclasses import dataclass

import msgspec
import numpy as np
import pytest

from packtool.errors import DataError
from packtool.planning.metrics.ledger import Ledger, balance, require_counted
from packtool.planning.metrics.tally import Tally

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
    untrained: int = 0


def counted(sequence_length: int, **counts: int) -> Tally:
    """A tally of rows that hold so much."""
    tally = Tally(np.zeros(0, np.int64), sequence_length)
    for name, value in counts.items():
        setattr(tally, name, value)
    return tally


PLANS = [Said(4, 3, 2, 1, 0), Said(2, 4, 0, 0, 2)]
TALLIES = [
    counted(4, rows=3, placed=5, repeated=3, stored_eos=2, padding=2),
    counted(2, rows=4, placed=3, stored_eos=1, eos_inserted=2, padding=2),
]


def test_both_sides_are_summed_over_row_lengths() -> None:
    assert balance(14, 4, PLANS, TALLIES) == msgspec.structs.replace(BALANCED, rows=7)


def test_a_ledger_that_does_not_balance_is_refused() -> None:
    with pytest.raises(DataError) as caught:
        balance(15, 4, PLANS, TALLIES)
    assert caught.value.code == "ledger-unbalanced"
    assert caught.value.what == "the ledger does not balance: input = placed + dropped + untrained, but 11 is not 10"


def test_rows_that_the_ledger_does_not_say_are_refused() -> None:
    ledger = balance(14, 4, PLANS, TALLIES)
    require_counted(ledger, TALLIES, has_loss=False, remedy="", where="")
    with pytest.raises(DataError, match="the rows hold 5 placed, but the ledger says 8"):
        require_counted(ledger, TALLIES[:1], has_loss=False, remedy="", where="")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"left_out": 1}, "stored + packed again = left out + input, but 10 is not 11"),
        ({"packed_again": 2}, "stored + packed again = left out + input, but 12 is not 10"),
        ({"placed": 7}, "input = placed + dropped + untrained, but 10 is not 9"),
        ({"untrained": 3}, "input = placed + dropped + untrained, but 10 is not 13"),
        ({"dropped": 3}, "input = placed + dropped + untrained, but 10 is not 11"),
        ({"repeated": 4}, "output = placed + repeated + eos + padding, but 20 is not 21"),
        ({"padding": 0}, "output = placed + repeated + eos + padding, but 20 is not 16"),
        ({"eos_omitted": 2}, "eos = documents + inserted - omitted, but 5 is not 4"),
        ({"eos_inserted": 3}, "eos = documents + inserted - omitted, but 5 is not 6"),
    ],
)
def test_the_equation_that_does_not_hold_is_named(change: dict[str, int], message: str) -> None:
    assert BALANCED.unbalanced(documents=4) is None
    changed = msgspec.structs.replace(BALANCED, **change)
    assert changed.unbalanced(documents=4) == f"the ledger does not balance: {message}"
