"""The atom shuffle: a uniform permutation of atoms, the default everywhere.

Paper: Optimizing Packing and Shuffling Strategies for Enhanced Performance in Generative Language Models (section 2).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from packtool.plan import I64, Plan, offsets_of
from packtool.shuffling.permutation import permutation


def first_keys(plans: Sequence[Plan]) -> list[int]:
    """Where each plan's atoms begin in the stream of keys: the atoms of all buckets are numbered through."""
    return offsets_of(np.array([plan.movable_atoms for plan in plans], np.int64))[:-1].tolist()


def atom_order(plan: Plan, *, seed: int, epoch: int, first: int) -> I64:
    """The movable atom at each place of the new order; `first` as of `first_keys`."""
    return permutation(plan.movable_atoms, seed=seed, epoch=epoch, first=first)


def reorder(stored: I64 | None, wanted: I64) -> I64:
    """The order that turns data stored in one order of the corpus into another.

    So a shuffle gives the same rows whether it starts from corpus order or from an earlier shuffle.

    Args:
        stored: corpus atom at each stored place, or None for corpus order.
        wanted: corpus atom at each place of the new order.

    Returns:
        The stored place of the atom for each place of the new order.

    >>> reorder(np.array([2, 0, 1]), np.array([0, 1, 2]))
    array([1, 2, 0])
    """
    if stored is None:
        return wanted
    place = np.empty_like(stored)
    place[stored] = np.arange(len(stored))
    return place[wanted]
