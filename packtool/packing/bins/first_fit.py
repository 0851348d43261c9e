"""First fit of items in any order: a tree over the room in bins finds the first bin that an item fits."""

from __future__ import annotations

import numpy as np

from packtool.plan import I64, Ints


def first_fit_in_order(lengths: Ints, capacity: int) -> I64:
    """Put each item into the first bin that has room for it, in the order of the items.

    Time for each item grows with the logarithm of the number of bins.

    Args:
        lengths: of the items, from 1 to `capacity`.
        capacity: tokens in a bin.

    >>> first_fit_in_order(np.array([5, 6, 3, 2]), capacity=8)
    array([0, 1, 0, 1])
    """
    # Node 1 is the root, node k the parent of 2k and 2k + 1; a leaf has the room of a bin, a node the most below it.
    # Bins not opened yet have all their room, so they need no case of their own.
    leaves = 1
    room = [capacity] * 2
    bins: list[int] = []
    for length in lengths.tolist():
        if room[1] < length:
            # Every bin is opened and too full: as many again.
            leaves, room = 2 * leaves, _twice(room, capacity)
        node = 1
        while node < leaves:
            node *= 2
            if room[node] < length:
                node += 1
        bins.append(node - leaves)
        left = room[node] - length
        # Upwards, as long as the most below a node changes.
        while node:
            room[node] = left
            if node == 1:
                break
            other = room[node ^ 1]
            left = left if left > other else other
            node >>= 1
            if room[node] == left:
                break
    return np.array(bins, np.int64)


def _twice(room: list[int], capacity: int) -> list[int]:
    """Double the bins: the tree becomes the left half of a larger one."""
    grown = [capacity, capacity]
    width = 1
    while width < len(room):
        grown += room[width : 2 * width] + [capacity] * width
        width *= 2
    return grown
