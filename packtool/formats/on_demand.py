"""Open the arrays of a dataset at once where that costs nothing, otherwise one by one when they are needed."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import chain
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from packtool.formats.unchanged import Unchanged
from packtool.places.local import LocalPlace
from packtool.places.npy import FileEntry
from packtool.places.place import Place
from packtool.places.slices import SliceReader
from packtool.support.sizes import machine_memory

_Content = TypeVar("_Content")


class MapBudget:
    """Objects that several sequences keep, of which the oldest goes when there are too many, whichever it is of.

    Args:
        most: objects that are kept.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self._owners: dict[tuple[int, int], weakref.ref[OnDemand[Any]]] = {}  # by sequence and number, oldest first

    def keep(self, owner: OnDemand[Any], number: int) -> None:
        """Count an object of a sequence, and drop the oldest of all if it is one too many."""
        self._owners[id(owner), number] = weakref.ref(owner)
        while len(self._owners) > self.most:
            with suppress(KeyError, RuntimeError, StopIteration):  # another thread makes room, too
                key = next(iter(self._owners))
                kept_by = self._owners.pop(key)()
                if kept_by is not None:
                    kept_by.drop(key[1])

    def forget(self, owner: OnDemand[Any], number: int) -> None:
        """Count an object no more."""
        self._owners.pop((id(owner), number), None)


MAPS = MapBudget(30_000)
"""The arrays, or pairs of arrays, that a process keeps mapped, whatever it reads: Linux allows a process 65,530 maps of
files, and other libraries need some. As the limit is that of a process, so is the budget."""


class OnDemand(Sequence[_Content]):
    """Objects made of files when they are first needed.

    Args:
        sizes: length of each object.
        make: makes an object, by its number.
        keep: number of objects that are kept, the latest ones; None for all.
        budget: of all sequences together.
    """

    def __init__(
        self, sizes: Sequence[int], make: Callable[[int], _Content], *, keep: int | None, budget: MapBudget = MAPS
    ) -> None:
        self.sizes = sizes
        self.keep = keep
        self._made: dict[int, _Content] = {}
        self._make = make
        self._budget = budget

    def __len__(self) -> int:
        return len(self.sizes)

    def __getitem__(self, number: Any) -> Any:
        with suppress(KeyError, TypeError):  # a slice has no hash
            return self._made[number]
        number = range(len(self))[number]
        if isinstance(number, range):
            return [self[index] for index in number]
        if number in self._made:  # the number counted from the end
            return self._made[number]
        content = self._make(number)
        if self.keep != 0:
            self._made[number] = content
            self._budget.keep(self, number)
            while self.keep is not None and len(self._made) > self.keep:
                with suppress(RuntimeError, StopIteration):  # another thread makes room, too
                    self.drop(next(iter(self._made)))
        return content

    def drop(self, number: int) -> None:
        """Keep an object no more: it is made again when it is needed."""
        self._made.pop(number, None)
        self._budget.forget(self, number)

    def made(self) -> list[_Content]:
        """Return the contents that are kept now."""
        return list(self._made.values())


def open_all(
    sizes: Sequence[int],
    open_one: Callable[[int], _Content],
    place: Place,
    keep: int | None = None,
    unchanged: Unchanged | None = None,
) -> Sequence[_Content]:
    """Open the arrays at a place: all now, so that errors show at once, or one by one where opening is costly.

    Args:
        sizes: length of each array, as `len` returns it.
        keep: how many a reader wants to keep open; None for all that the place allows.
        unchanged: the dataset that they must be of, where they may be opened late; None where nobody looks.
    """

    def opened(number: int) -> _Content:
        if unchanged is None:
            return open_one(number)
        return unchanged.opened(lambda: open_one(number))

    if place.is_local and keep is None:
        return list(map(opened, range(len(sizes))))
    limits = [limit for limit in (keep, place.arrays) if limit is not None]
    return OnDemand(sizes, opened, keep=min(limits, default=None))


def open_arrays(
    place: Place,
    entries: Sequence[FileEntry],
    dtype: np.dtype[Any],
    keep: int | None = None,
    unchanged: Unchanged | None = None,
) -> Sequence[npt.NDArray[Any]]:
    """Open array files of a dataset as `open_all` does."""
    sizes = [entry.shape[0] for entry in entries]
    return open_all(sizes, lambda number: place.array(entries[number], dtype), place, keep, unchanged)


def joined_contents(parts: Sequence[Sequence[_Content]]) -> Sequence[_Content]:
    """Join the contents of several datasets, one after another."""
    if all(map(_is_held, parts)):
        return list(chain.from_iterable(parts))
    sizes: list[int] = []
    places: list[tuple[Sequence[_Content], int]] = []
    for part in parts:
        sizes += sizes_of(part)
        places += [(part, number) for number in range(len(part))]

    def open_one(number: int) -> _Content:
        part, number = places[number]
        return part[number]

    return OnDemand(sizes, open_one, keep=0)


def flat(arrays: Sequence[npt.NDArray[Any]], width: int) -> Sequence[npt.NDArray[Any]]:
    """Flatten arrays of this many columns, one after another."""
    if _is_held(arrays):
        return [array.reshape(-1) for array in arrays]
    return OnDemand([size * width for size in sizes_of(arrays)], lambda n: arrays[n].reshape(-1), keep=0)


def _is_held(arrays: Sequence[Any]) -> bool:
    return not isinstance(arrays, OnDemand) or arrays.keep is None


def sizes_of(arrays: Sequence[Any]) -> Sequence[int]:
    """Return the length of each array, without opening it."""
    if isinstance(arrays, OnDemand):
        return arrays.sizes
    return list(map(len, arrays))


def open_now(arrays: Sequence[_Content]) -> Sequence[_Content]:
    """Return the arrays of `open_all` that are open now."""
    if isinstance(arrays, OnDemand):
        return arrays.made()
    return arrays


def slice_reader(files: Sequence[tuple[Place, FileEntry]], dtype: np.dtype[Any]) -> SliceReader | None:
    """Return a reader of slices of arrays larger than memory; None where they fit, or files are not local."""
    local = [(place, entry) for place, entry in files if isinstance(place, LocalPlace)]
    if len(local) < len(files) or sum(entry.bytes for _, entry in local) <= machine_memory():
        return None
    return SliceReader(local, dtype)
