"""Files that are opened when they are needed."""

from __future__ import annotations

import numpy as np
import pytest

from packtool.formats.on_demand import OnDemand, flat, held, joined_contents, sizes_of


@pytest.mark.parametrize("hold", [True, False])
def test_what_was_made_is_held_where_there_is_room(hold: bool) -> None:
    made = []

    def make(number: int) -> str:
        made.append(number)
        return f"file {number}"

    found = OnDemand([1, 2, 3, 4, 5], make, keep=None if hold else 0)
    assert (len(found), sizes_of(found)) == (5, [1, 2, 3, 4, 5])
    assert found[1:3] == ["file 1", "file 2"]
    assert (found[-1], found[2]) == ("file 4", "file 2")
    assert made == ([1, 2, 4] if hold else [1, 2, 4, 2])
    assert held(found) == (["file 1", "file 2", "file 4"] if hold else [])
    assert list(found) == [f"file {number}" for number in range(5)]


def test_several_datasets_are_opened_one_file_at_a_time() -> None:
    opened = []

    def make(number: int) -> np.ndarray:
        opened.append(number)
        return np.full((number + 1, 2), number)

    there = OnDemand([1, 2], make, keep=0)
    both = joined_contents([[np.zeros((3, 2))], flat(there, 2)])
    assert sizes_of(both) == [3, 2, 4]
    assert opened == []
    assert both[2].tolist() == [1, 1, 1, 1]
    assert opened == [1]
    assert isinstance(joined_contents([[1], OnDemand([1], lambda n: n, keep=None)]), list)


def test_those_that_were_made_last_are_kept() -> None:
    found = OnDemand([1] * 9, str, keep=2)
    assert [found[number] for number in (3, 4, 3, 5)] == ["3", "4", "3", "5"]
    assert held(found) == ["4", "5"]
