"""First fit in random order: documents cut to chunks of at most a row, each put into the first bin with room for it.

Rows as mixed as the corpus, at the price of some padding and of planning document by document.
Known as first-fit-shuffle in NVIDIA NeMo; first fit is Johnson's, Near-optimal bin packing algorithms (1973).
"""

from __future__ import annotations

import numpy as np

from packtool.planning.packing.bins.filled import cut_documents
from packtool.planning.packing.plans import Bins, LongRows, RowsPlan
from packtool.planning.packing.strategy import PackOptions, Strategy
from packtool.planning.plan import I64, Ints, Plan, offsets_of
from packtool.planning.shuffling.permutation import Purpose, keys, permutation


def plan(lengths: Ints, options: PackOptions) -> list[Plan]:
    """Put chunks, in a random order of the seed, into the first bin of L tokens with room; EOS alone is left out.

    A chunk of L tokens fills a bin whenever it comes, so rows of long documents are taken first. Inside a bin the order
    is random again: long chunks open bins, and would come first.

    >>> bins, = plan(np.array([5, 6, 3, 2]), PackOptions(sequence_length=8))
    >>> bins.segments(np.arange(bins.rows)).document
    array([3, 0, 2, 1])
    """
    sequence_length = options.row_length
    documents = cut_documents(lengths, sequence_length)
    order = permutation(len(lengths), seed=options.seed, purpose=Purpose.FIRST_FIT_ORDER)
    tails = sequence_length - documents.shortfall[order].astype(np.int64)
    order, tails = order[tails > 0], tails[tails > 0]
    bin = first_fit_in_order(tails, sequence_length)
    return [
        RowsPlan(
            sequence_length,
            lengths,
            long=LongRows.of(documents.long, documents.rows, lengths, sequence_length),
            bins=Bins(order[_grouped(bin, options.seed)], offsets_of(np.bincount(bin))),
            eos_omitted=documents.eos_alone,
        )
    ]


def _grouped(bin: I64, seed: int) -> I64:
    """Sort items by their bin, in random order inside it.

    One number for each item sorts fastest: its bin in the high bits, then random bits, and its index in the low bits.
    """
    items = len(bin)
    bin_bits = int(bin.max(initial=0)).bit_length()
    index_bits = max(1, items.bit_length())
    packed = keys(seed, Purpose.FIRST_FIT_INSIDE, 0, 0, items)
    packed >>= np.uint64(bin_bits + index_bits)  # room for the bin and the index
    packed <<= np.uint64(index_bits)
    packed |= bin.astype(np.uint64) << np.uint64(64 - bin_bits)
    packed |= np.arange(items, dtype=np.uint64)
    packed.sort()
    index = packed & np.uint64((1 << index_bits) - 1)
    return index.view(np.int64)


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


STRATEGY = Strategy(
    name="first-fit-shuffle",
    summary="whole documents in bins, first fit in random order",
    recommended=4,
    windowed=True,
    plan=plan,
    random=True,
    whole=True,
    omits_eos=True,
)
