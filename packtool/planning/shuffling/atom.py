"""The atom shuffle: a uniform permutation of atoms, the default everywhere.

Paper: Optimizing Packing and Shuffling Strategies for Enhanced Performance in Generative Language Models (section 2).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from packtool.planning.arrays import IN_MEMORY, Arrays, blocks
from packtool.planning.plan import Ints, Plan, index_type
from packtool.planning.shuffling.permutation import Purpose, keys, permutation

AtomKeys = Callable[[int, int], npt.NDArray[np.uint64]]
"""(first atom, number of atoms) to the keys that sort them; ties go by index. Other processes may be given it."""


@dataclass(frozen=True)
class AtomShuffle:
    """The permutation of one plan's movable atoms."""

    atoms: int  # number of atoms
    first: int  # index of the first in the stream of keys
    seed: int
    epoch: int
    stored: AtomShuffle | None = None  # shuffle that they were stored in; None for corpus order

    def order(self, arrays: Arrays = IN_MEMORY) -> Ints:
        """List the stored atom at each place of the new order."""
        wanted = permutation(self.atoms, seed=self.seed, epoch=self.epoch, first=self.first, arrays=arrays)
        return wanted if self.stored is None else reorder(self.stored.order(arrays), wanted, arrays)

    def keys(self, arrays: Arrays = IN_MEMORY) -> AtomKeys:
        """Make the keys that sort stored atoms into the new order, drawn as needed where they lie in corpus order."""
        if self.stored is not None:
            return ranked(self.order(arrays), arrays)
        return self._draw

    def _draw(self, first: int, count: int) -> npt.NDArray[np.uint64]:
        return keys(self.seed, Purpose.ATOM_ORDER, self.epoch, self.first + first, count)


def atom_shuffles(plans: Sequence[Plan], *, seed: int, epoch: int = 0) -> list[AtomShuffle]:
    """Set up the permutation of each plan; atoms are numbered across all plans."""
    atoms = [plan.movable_atoms for plan in plans]
    return [AtomShuffle(count, sum(atoms[:number]), seed, epoch) for number, count in enumerate(atoms)]


def reorder(stored: Ints, wanted: Ints, arrays: Arrays = IN_MEMORY) -> Ints:
    """Find the order that turns data stored in one order of the corpus into another.

    So a shuffle gives the same rows whether it starts from corpus order or from an earlier shuffle.

    Args:
        stored: corpus atom at each stored place.
        wanted: corpus atom at each place of the new order.

    Returns:
        The stored place of the atom for each place of the new order.

    >>> reorder(np.array([2, 0, 1]), np.array([0, 1, 2])).tolist()
    [1, 2, 0]
    """
    kind = index_type(len(stored))
    place = arrays.empty(len(stored), kind)
    for first, last in blocks(len(stored)):
        place[stored[first:last]] = np.arange(first, last)
    return arrays.filled(len(wanted), kind, lambda a, b: place[wanted[a:b]])


def ranked(order: Ints, arrays: Arrays = IN_MEMORY) -> AtomKeys:
    """Make keys for a known order; `order` is the stored atom at each place.

    >>> [int(key) >> 62 for key in ranked(np.array([2, 0, 1]))(0, 3)]
    [1, 2, 0]
    """
    rank, unused = arrays.empty(len(order), np.uint64), np.uint64(64 - len(order).bit_length())
    for first, last in blocks(len(order)):
        rank[order[first:last]] = np.arange(first, last, dtype=np.uint64) << unused
    return partial(_slice, rank)


def _slice(known: npt.NDArray[np.uint64], first: int, count: int) -> npt.NDArray[np.uint64]:
    return known[first : first + count]
