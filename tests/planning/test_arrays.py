"""Arrays are made where the caller wants them, and come out the same in any blocks."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from packtool.planning import arrays
from packtool.planning.arrays import IN_MEMORY, Arrays
from packtool.planning.packing import STRATEGIES, PackOptions, plan
from packtool.planning.shuffling.atom import AtomShuffle


class Noted(Arrays):
    """Notes how long the arrays are that are asked for."""

    def __init__(self) -> None:
        self.made: list[int] = []

    def empty(self, count: int, dtype: Any) -> np.ndarray:
        self.made.append(count)
        return super().empty(count, dtype)


@pytest.mark.parametrize("name", [name for name, strategy in STRATEGIES.items() if not strategy.windowed])
def test_what_plans_a_whole_corpus_asks_for_its_arrays(name: str) -> None:
    options = PackOptions(buckets=(64, 128)) if name == "length-buckets" else PackOptions(sequence_length=64)
    noted = Noted()
    plan(name, np.arange(2, 1002), options, noted)
    assert sum(noted.made) >= 1000


def test_an_order_asks_for_its_arrays() -> None:
    noted = Noted()
    AtomShuffle(1000, 0, seed=1, epoch=1, stored=AtomShuffle(1000, 0, seed=1, epoch=0)).order(noted)
    assert noted.made == [1000] * 4  # the order of both, then the place of each atom and the way between


@given(st.lists(st.integers(0, 1000)), st.integers(1, 5))
def test_any_blocks(items: list[int], block: int) -> None:
    values = np.array(items, np.uint32)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(arrays, "BLOCK", block)
        part = lambda first, last: values[first:last]  # noqa: E731
        assert IN_MEMORY.filled(len(values), np.int64, part).tolist() == items
        assert IN_MEMORY.totals(len(values), part).tolist() == [0, *np.cumsum(items, dtype=np.int64).tolist()]
        chosen = IN_MEMORY.where(len(values), lambda a, b: values[a:b] % 3 == 0, np.uint32)
        assert chosen.tolist() == [number for number, item in enumerate(items) if item % 3 == 0]
        both = IN_MEMORY.concatenated([values, values], np.int64, [0, 7])
        assert both.tolist() == items + [item + 7 for item in items]
