"""Choose some of the documents: by the hash of their text, or as a sample that keeps the distribution of lengths.

A hash decides the same in any store, on any day, for all copies of a text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from packtool.planning.arrays import IN_MEMORY, Arrays
from packtool.planning.plan import I64, Ints, Mask, offsets_of
from packtool.planning.shuffling.permutation import Purpose, keys

U64 = npt.NDArray[np.uint64]
TextBlocks = Callable[[], Iterator[tuple[U64, Any]]]
"""Function that yields the hashes of documents, block by block, with a number for each document."""

_HOLDOUT, _SHARD = 1, 2  # purposes: which side a text is on in one says nothing about the other
_GROUP_BITS = 16
_GROUP_SHIFT = np.uint64(64 - _GROUP_BITS)


def _mixed(hashes: U64, seed: int, purpose: int) -> U64:
    """Rehash the hashes by a seed, with the finalizer of SplitMix64 (Steele, Lea, Flood 2014)."""
    step = (0x9E3779B97F4A7C15 * (1 + 2 * (seed % (1 << 62)) + purpose * (1 << 32))) % (1 << 64)
    value = hashes + np.uint64(step)
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))


def bound_of_share(share: Fraction) -> int:
    """Return the bound below which a share of all texts is drawn, whatever they are.

    >>> bound_of_share(Fraction(1, 2)) == 1 << 63
    True
    """
    return int(share * (1 << 64))


def bound_of_number(texts: TextBlocks, amount: int, *, seed: int) -> int:
    """Return the bound below which as few of these documents are drawn as reach a number.

    Copies of a text are on the same side, so they may be a little more. Memory: a block of documents.

    Args:
        texts: function that yields the hashes of documents, and what each counts, block by block.
        amount: how much to draw.
        seed: of the draw.

    >>> texts = np.array([5, 6, 5, 7], np.uint64)
    >>> bound = bound_of_number(lambda: iter([(texts, np.ones(4, np.int64))]), 1, seed=0)
    >>> int(held_out(texts, seed=0, bound=bound).sum()) in (1, 2)
    True
    """
    groups = np.zeros(1 << _GROUP_BITS, np.int64)
    for hashes, counted in texts():
        group_of = _mixed(hashes, seed, _HOLDOUT) >> _GROUP_SHIFT
        groups += np.bincount(group_of, weights=counted, minlength=len(groups)).astype(np.int64)
    ends = np.cumsum(groups)
    amount = min(amount, int(ends[-1]))
    if not amount:
        return 0
    group = int(np.searchsorted(ends, amount))  # the one that holds the last document to be drawn
    in_group: list[U64] = []
    counts: list[Ints] = []
    for hashes, counted in texts():
        values = _mixed(hashes, seed, _HOLDOUT)
        mask = values >> _GROUP_SHIFT == np.uint64(group)
        in_group.append(values[mask])
        counts.append(counted[mask])
    last = np.concatenate(in_group)
    order = np.argsort(last, kind="stable")
    reached = ends[group] - groups[group] + np.cumsum(np.concatenate(counts)[order], dtype=np.int64)
    return int(last[order[np.searchsorted(reached, amount)]]) + 1


def held_out(hashes: U64, *, seed: int, bound: int) -> Mask:
    """Choose documents to hold out. Larger hold-outs contain smaller ones of the same seed.

    Args:
        hashes: of the documents' texts.
        seed: of the draw.
        bound: below which a text is held out, from 0 to 2^64.

    >>> texts = np.array([5, 6, 5, 7], np.uint64)
    >>> held = held_out(texts, seed=0, bound=bound_of_share(Fraction(1, 2)))
    >>> bool(held[0] == held[2])
    True
    """
    if bound >> 64:
        return np.ones(len(hashes), np.bool_)
    held: Mask = _mixed(hashes, seed, _HOLDOUT) < np.uint64(bound)
    return held


def in_shard(hashes: U64, number: int, shards: int) -> Mask:
    """Find the documents of shard `number` of `shards`, from 1: a document is in one shard, with all its copies.

    >>> texts = np.arange(100, dtype=np.uint64)
    >>> sum(int(in_shard(texts, number, 3).sum()) for number in (1, 2, 3))
    100
    """
    width = ((1 << 64) - 1) // shards + 1
    if shards == 1:
        return np.ones(len(hashes), np.bool_)
    inside: Mask = _mixed(hashes, 0, _SHARD) // np.uint64(width) == np.uint64(number - 1)
    return inside


def first_of_each(texts: TextBlocks, count: int, arrays: Arrays = IN_MEMORY, most: int = 1 << 20) -> Mask:
    """Mark the first document with each text.

    Args:
        texts: function that yields the hashes of documents, and their numbers, block by block; numbers ascend.
        count: of all documents; those that are not yielded are not marked.
        arrays: allocates the result, which is as long as the documents.
        most: texts that are sorted at a time, which bounds memory; more texts take several passes over the hashes.

    >>> hashes, numbers = np.array([6, 5, 5], np.uint64), np.array([1, 2, 3])
    >>> first_of_each(lambda: iter([(hashes, numbers)]), 4).tolist()
    [False, True, True, False]
    """
    firsts: Mask = arrays.filled(count, np.bool_, lambda a, b: False)
    bits = (count // most).bit_length()
    for group in range(1 << bits):
        seen = [np.empty(0, np.uint64)]
        places = [np.empty(0, np.int64)]
        for hashes, numbers in texts():
            here: Any = slice(None)
            if bits:
                here = hashes >> np.uint64(64 - bits) == np.uint64(group)
            found, at = np.unique(hashes[here], return_index=True)
            seen.append(found)
            places.append(numbers[here][at])
        _, at = np.unique(np.concatenate(seen), return_index=True)
        firsts[np.concatenate(places)[at]] = True
    return firsts


def sampled(lengths: Ints, kept: I64, share: Fraction, interval: int, seed: int) -> Mask:
    """Draw a stratified sample (Seamless Packing, appendix D.1); larger shares hold the documents of smaller ones.

    Of the documents with lengths in an interval (k · interval, (k + 1) · interval] it takes those with the smallest
    keys, as many as come nearest to the share; halves are rounded up.

    Args:
        lengths: of all documents of the store, in tokens.
        kept: the documents to choose from, ascending.
        share: of the documents in every interval.
        interval: length of an interval, in tokens.
        seed: of the keys.

    >>> mask = sampled(np.array([3, 4, 4, 2, 9, 9]), np.arange(6), Fraction(1, 2), interval=4, seed=0)
    >>> int(mask[:4].sum()), int(mask[4:].sum())
    (2, 1)
    """
    taken = np.zeros(len(lengths), np.bool_)
    if not len(kept):
        return taken
    stratum = (np.asarray(lengths)[kept] - 1) // interval
    drawn = keys(seed, Purpose.SAMPLE, 0, 0, len(lengths))[kept]
    order = np.lexsort((drawn, stratum))  # stratum by stratum, the smallest keys first
    del drawn  # the arrays of a large store take much of the memory that is granted
    _, sizes = np.unique(stratum, return_counts=True)
    for first, size in zip(offsets_of(sizes).tolist(), sizes.tolist(), strict=False):
        wanted = int(share * size + Fraction(1, 2))
        taken[kept[order[first : first + wanted]]] = True
    return taken
