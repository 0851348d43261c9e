"""The atom shuffle: a uniform permutation of atoms, the default everywhere.

Paper: Optimizing Packing and Shuffling Strategies for Enhanced Performance in Generative Language Models (section 2).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from packtool.plan import I64, Plan
from packtool.shuffling.permutation import ATOM_ORDER, keys, order_by, permutation

_SORT_BYTES = 64  # for each atom that is sorted: its key and index, twice over
_KEYS_AT_ONCE = 1 << 20

Keys = Callable[[int, int], npt.NDArray[np.uint64]]
"""(first atom, number of atoms) to the keys that sort them; ties go by index."""


@dataclass(frozen=True)
class AtomShuffle:
    """The permutation of one plan's movable atoms.

    Attributes:
        atoms: how many there are.
        first: index of the first in the stream of keys.
        stored: the shuffle they lie in already; None for corpus order.
    """

    atoms: int
    first: int
    seed: int
    epoch: int
    stored: AtomShuffle | None = None

    def order(self) -> I64:
        """The stored atom at each place of the new order."""
        wanted = permutation(self.atoms, seed=self.seed, epoch=self.epoch, first=self.first)
        return wanted if self.stored is None else reorder(self.stored.order(), wanted)

    def order_parts(self, memory: int) -> Iterator[I64]:
        """The order, piece by piece, each worked out in about so many bytes.

        What lies in an earlier shuffle's order needs that order, and so comes in one piece.
        """
        if self.stored is not None:
            yield self.order()
            return
        bits = (_SORT_BYTES * self.atoms // memory).bit_length()
        for part in range(1 << bits):
            chosen, drawn = [np.empty(0, np.int64)], [np.empty(0, np.uint64)]
            for first in range(0, self.atoms, _KEYS_AT_ONCE):
                some = self.keys()(first, min(_KEYS_AT_ONCE, self.atoms - first))
                mine = np.flatnonzero(some >> np.uint64(64 - bits) == part) if bits else np.arange(len(some))
                chosen.append(first + mine)
                drawn.append(some[mine])
            yield np.concatenate(chosen)[order_by(np.concatenate(drawn))]

    def keys(self) -> Keys:
        """What sorts the stored atoms into the new order, drawn as needed where they lie in corpus order."""
        if self.stored is not None:
            return ranked(self.order())
        return lambda first, count: keys(self.seed, ATOM_ORDER, self.epoch, self.first + first, count)


def atom_shuffles(plans: Sequence[Plan], *, seed: int, epoch: int = 0) -> list[AtomShuffle]:
    """The permutation of each plan; the atoms of all plans are numbered through."""
    atoms = [plan.movable_atoms for plan in plans]
    return [AtomShuffle(count, sum(atoms[:number]), seed, epoch) for number, count in enumerate(atoms)]


def reorder(stored: I64, wanted: I64) -> I64:
    """The order that turns data stored in one order of the corpus into another.

    So a shuffle gives the same rows whether it starts from corpus order or from an earlier shuffle.

    Args:
        stored: corpus atom at each stored place.
        wanted: corpus atom at each place of the new order.

    Returns:
        The stored place of the atom for each place of the new order.

    >>> reorder(np.array([2, 0, 1]), np.array([0, 1, 2]))
    array([1, 2, 0])
    """
    place = np.empty_like(stored)
    place[stored] = np.arange(len(stored))
    return place[wanted]


def ranked(order: I64) -> Keys:
    """Keys for an order that is known; `order` is the stored atom at each place.

    >>> [int(key) >> 62 for key in ranked(np.array([2, 0, 1]))(0, 3)]
    [1, 2, 0]
    """
    rank = np.empty(len(order), np.uint64)
    rank[order] = np.arange(len(order), dtype=np.uint64) << np.uint64(64 - len(order).bit_length())
    return lambda first, count: rank[first : first + count]
