"""Reorder documents before packing, so that rows have other neighbours in each epoch."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from packtool.arrays import IN_MEMORY, Arrays, blocks
from packtool.plan import Ints, index_type
from packtool.shuffling.permutation import DOCUMENT_ORDER, permutation


def document_order(
    order: Ints | int, *, seed: int, epoch: int, ends: Sequence[int] = (), arrays: Arrays = IN_MEMORY
) -> Ints:
    """Draw the order in which documents are planned; those of each pass stay together.

    Args:
        order: of the documents as they lie, pass by pass; or how many they are, where that is by their numbers.
        seed, epoch: of the draw.
        ends: where each pass ends.
        arrays: makes that of the order.

    Returns:
        The document at each place.

    >>> sorted(document_order(5, seed=42, epoch=1).tolist())
    [0, 1, 2, 3, 4]
    >>> sorted(document_order(5, seed=42, epoch=1, ends=[2])[:2].tolist())
    [0, 1]
    """
    documents = order if isinstance(order, int) else len(order)
    out: Ints = arrays.empty(documents, index_type(documents))
    for first, last in pairwise(sorted({0, *ends, documents})):
        places = permutation(last - first, seed=seed, epoch=epoch, purpose=DOCUMENT_ORDER, first=first, arrays=arrays)
        for a, b in blocks(last - first):
            lying = places[a:b] + first
            out[first + a : first + b] = lying if isinstance(order, int) else order[lying]
    return out
