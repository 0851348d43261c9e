"""Files of a dataset that are opened when they are needed, where they must be fetched first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from packtool.places.mirror import mirror_of

_Content = TypeVar("_Content")
_HELD = 3


class OnDemand(Sequence[_Content]):
    """What is made of files that are fetched when they are needed; where room is short, the few that were read last.

    Args:
        count: how many there are.
        make: of one, by its number.
        most: how many are held.
    """

    def __init__(self, count: int, make: Callable[[int], _Content], most: int) -> None:
        self._count = count
        self._most = most
        self._made: dict[int, _Content] = {}
        self._make = make

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, number: Any) -> Any:
        number = range(self._count)[number]
        if isinstance(number, range):
            return [self[each] for each in number]
        if number not in self._made:
            while len(self._made) >= self._most:
                self._made.pop(next(iter(self._made)))
            self._made[number] = self._make(number)
        return self._made[number]

    def made(self) -> list[_Content]:
        """Those that are held."""
        return list(self._made.values())


def open_all(count: int, open_one: Callable[[int], _Content], directory: Path) -> Sequence[_Content]:
    """Arrays of a dataset, opened now, so that what is wrong is found at once; one by one if they must be fetched."""
    found = mirror_of(directory)
    if found is None:
        return [open_one(number) for number in range(count)]
    return OnDemand(count, open_one, count if found[0].limit is None else _HELD)


def held(arrays: Sequence[_Content]) -> Sequence[_Content]:
    """Those of `open_all` that are open."""
    return arrays.made() if isinstance(arrays, OnDemand) else arrays
