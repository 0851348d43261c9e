"""Files that are opened when they are needed."""

from __future__ import annotations

from pathlib import Path

from packtool.storage.on_demand import OnDemand, held, open_all


def test_the_few_that_were_read_last_are_held() -> None:
    made = []

    def make(number: int) -> str:
        made.append(number)
        return f"file {number}"

    found = OnDemand(5, make, most=2)
    assert len(found) == 5
    assert found[1:3] == ["file 1", "file 2"]
    assert (found[-1], found[2]) == ("file 4", "file 2")
    assert made == [1, 2, 4]
    assert held(found) == ["file 2", "file 4"]


def test_those_of_a_local_dataset_are_opened_now(tmp_path: Path) -> None:
    found = open_all(3, lambda number: number, tmp_path)
    assert found == held(found) == [0, 1, 2]
