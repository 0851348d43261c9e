"""First fit in random order: documents cut to chunks of at most a row, each put into the first bin with room for it.

Rows as mixed as the corpus, at the price of some padding and of planning document by document.
Known as first-fit-shuffle in NVIDIA NeMo; first fit is Johnson's, Near-optimal bin packing algorithms (1973).
"""

from __future__ import annotations

import numpy as np

from packtool.packing.bins.cut import cut_documents
from packtool.packing.bins.first_fit import first_fit_in_order
from packtool.packing.options import PackOptions, Strategy
from packtool.packing.plans.bins_and_rows import Bins, LongRows, RowsPlan
from packtool.plan import I64, Ints, Plan, index_type, offsets_of
from packtool.shuffling.permutation import FIRST_FIT_INSIDE, FIRST_FIT_ORDER, keys, permutation


def plan(lengths: Ints, options: PackOptions) -> list[Plan]:
    """Put chunks, in a random order of the seed, into the first bin of L tokens with room; EOS alone is left out.

    A chunk of L tokens fills a bin of its own whenever it comes, so rows of long documents are taken first. What lies
    in a bin is in another random order: long chunks open bins, and would come first.

    >>> bins, = plan(np.array([5, 6, 3, 2]), PackOptions(sequence_length=8))
    >>> bins.segments(np.arange(bins.rows)).document
    array([3, 0, 2, 1])
    """
    sequence_length = options.row_length
    documents = cut_documents(lengths, sequence_length)
    order = permutation(len(lengths), seed=options.seed, purpose=FIRST_FIT_ORDER).astype(index_type(len(lengths)))
    tails = sequence_length - documents.keys[order].astype(np.int64)
    order, tails = order[tails > 0], tails[tails > 0]
    bin = first_fit_in_order(tails, sequence_length)
    return [
        RowsPlan(
            sequence_length,
            lengths,
            long=LongRows.of(documents.long, offsets_of(documents.rows)),
            bins=Bins(order[_grouped(bin, options.seed)], offsets_of(np.bincount(bin))),
            eos_omitted=documents.eos_alone,
        )
    ]


def _grouped(bin: I64, seed: int) -> I64:
    """Sort items by their bin, in random order inside it: numbers of bin, random bits and index sort fastest."""
    items, bits = len(bin), int(bin.max(initial=0)).bit_length()
    index_bits = max(1, items.bit_length())
    drawn = keys(seed, FIRST_FIT_INSIDE, 0, 0, items) >> np.uint64(bits + index_bits) << np.uint64(index_bits)
    packed = bin.astype(np.uint64) << np.uint64(64 - bits) | drawn | np.arange(items, dtype=np.uint64)
    packed.sort()
    return (packed & np.uint64((1 << index_bits) - 1)).view(np.int64)


STRATEGY = Strategy(
    name="first-fit-shuffle",
    summary="whole documents in bins, first fit in random order",
    paper="NVIDIA NeMo's first_fit_shuffle; first fit is Johnson's (1973)",
    windowed=True,
    plan=plan,
    random=True,
    whole=True,
)
