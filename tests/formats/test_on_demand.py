"""Files that are opened when they are needed."""

import numpy as np
import pytest

from packtool.formats.on_demand import MapBudget, OnDemand, flat, joined_contents, open_now, sizes_of


@pytest.mark.parametrize(
    ("keep", "calls", "kept"), [(None, [1, 2, 4], [1, 2, 4]), (2, [1, 2, 4], [2, 4]), (0, [1, 2, 1, 4, 2], [])]
)
def test_what_was_made_last_is_held_where_there_is_room(keep: int | None, calls: list[int], kept: list[int]) -> None:
    made = []

    def make(number: int) -> str:
        made.append(number)
        return f"file {number}"

    found = OnDemand([1, 2, 3, 4, 5], make, keep=keep)
    assert (len(found), sizes_of(found)) == (5, [1, 2, 3, 4, 5])
    assert found[1:3] == ["file 1", "file 2"]
    assert (found[1], found[-1], found[2]) == ("file 1", "file 4", "file 2")
    assert made == calls
    assert open_now(found) == [f"file {number}" for number in kept]
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


def test_one_budget_holds_for_several_datasets() -> None:
    """The oldest goes, of whichever dataset it is, and is made again where it is needed."""
    budget = MapBudget(3)
    one, two = (OnDemand([1] * 9, str, keep=2, budget=budget) for _ in range(2))
    gone = OnDemand([1], str, keep=1, budget=budget)
    assert [gone[0], one[0], two[5], one[1]] == ["0", "0", "5", "1"]
    assert [open_now(each) for each in (gone, one, two)] == [[], ["0", "1"], ["5"]]
    del gone
    assert [two[6], one[2], one[0]] == ["6", "2", "0"]
    assert [open_now(each) for each in (one, two)] == [["2", "0"], ["6"]]
