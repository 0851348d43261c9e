"""Files of a dataset that are opened when they are needed, where they must be fetched first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy.typing as npt

from packtool.places.mirror import mirror_of

_Content = TypeVar("_Content")


class OnDemand(Sequence[_Content]):
    """What is made of files that are fetched when they are needed.

    Args:
        sizes: of each one, as long as nobody has made it: what `len` would say.
        make: of one, by its number.
        hold: keep what was made; else it is made anew each time, from a file that may have gone meanwhile.
    """

    def __init__(self, sizes: Sequence[int], make: Callable[[int], _Content], *, hold: bool) -> None:
        self.sizes = sizes
        self.hold = hold
        self._made: dict[int, _Content] = {}
        self._make = make

    def __len__(self) -> int:
        return len(self.sizes)

    def __getitem__(self, number: Any) -> Any:
        number = range(len(self))[number]
        if isinstance(number, range):
            return [self[each] for each in number]
        if not self.hold:
            return self._make(number)
        if number not in self._made:
            self._made[number] = self._make(number)
        return self._made[number]

    def made(self) -> list[_Content]:
        """Those that are held."""
        return list(self._made.values())


def open_all(sizes: Sequence[int], open_one: Callable[[int], _Content], directory: Path) -> Sequence[_Content]:
    """Arrays of a dataset, opened now, so that what is wrong is found at once; one by one if they must be fetched.

    Args:
        sizes: of each one, as `len` says it.
    """
    found = mirror_of(directory)
    if found is None:
        return [open_one(number) for number in range(len(sizes))]
    return OnDemand(sizes, open_one, hold=found[0].quota is None)


def joined(parts: Sequence[Sequence[_Content]]) -> Sequence[_Content]:
    """Those of several datasets, one after the other."""
    if all(_is_held(part) for part in parts):
        return [each for part in parts for each in part]
    places = [(part, number) for part in parts for number in range(len(part))]
    return OnDemand(
        [size for part in parts for size in sizes_of(part)], lambda n: places[n][0][places[n][1]], hold=False
    )


def flat(arrays: Sequence[npt.NDArray[Any]], width: int) -> Sequence[npt.NDArray[Any]]:
    """The items of arrays of so many columns, one after the other."""
    if _is_held(arrays):
        return [array.reshape(-1) for array in arrays]
    return OnDemand([size * width for size in sizes_of(arrays)], lambda n: arrays[n].reshape(-1), hold=False)


def _is_held(arrays: Sequence[Any]) -> bool:
    return not isinstance(arrays, OnDemand) or arrays.hold


def sizes_of(arrays: Sequence[Any]) -> Sequence[int]:
    """Items of each of these arrays, which may not be there yet."""
    return arrays.sizes if isinstance(arrays, OnDemand) else [len(array) for array in arrays]


def held(arrays: Sequence[_Content]) -> Sequence[_Content]:
    """Those of `open_all` that are open."""
    return arrays.made() if isinstance(arrays, OnDemand) else arrays
