"""The atom shuffle: a uniform permutation of atoms, the default everywhere.

Paper: Optimizing Packing and Shuffling Strategies for Enhanced Performance in Generative Language Models (section 2).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from packtool.plan import I64, Plan
from packtool.shuffling.permutation import permutation


def atom_orders(plans: Sequence[Plan], *, seed: int, epoch: int = 0) -> Iterator[I64]:
    """For each plan, the movable atom at each place of the new order; the atoms of all plans are numbered through."""
    first = 0
    for plan in plans:
        yield permutation(plan.movable_atoms, seed=seed, epoch=epoch, first=first)
        first += plan.movable_atoms


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
