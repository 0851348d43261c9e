"""Choose some of the documents: by the hash of their text, or as a sample that keeps the distribution of lengths.

A hash decides the same in any store, on any day, for all copies of a text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from packtool.planning.arrays import IN_MEMORY, Arrays, blocks
from packtool.planning.plan import I64, Ints, Mask, offsets_of
from packtool.planning.shuffling.permutation import SAMPLE, keys

U64 = npt.NDArray[np.uint64]

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


def bound_of_number(
    hashes: Sequence[U64], lengths: Sequence[Ints], *, seed: int, documents: int = 0, tokens: int = 0
) -> int:
    """Return the bound below which as few of these documents are drawn as reach a number.

    Copies of a text are on the same side, so they may be a little more. Memory: a block of documents.

    Args:
        hashes: of the texts of the documents of each store.
        lengths: of the documents of each store.
        seed: of the draw.
        documents, tokens: how many to draw, one of the two.

    >>> texts = np.array([5, 6, 5, 7], np.uint64)
    >>> bound = bound_of_number([texts], [np.array([3, 3, 3, 3])], seed=0, documents=1)
    >>> int(held_out(texts, seed=0, bound=bound).sum()) in (1, 2)
    True
    """

    def drawn() -> Iterator[tuple[U64, Ints]]:
        """Yield what blocks of texts draw, and what each counts."""
        for texts, sizes in zip(hashes, lengths, strict=True):
            for a, b in blocks(len(texts)):
                counted: Ints = np.ones(b - a, np.int64)
                if tokens:
                    counted = sizes[a:b]
                yield _mixed(texts[a:b], seed, _HOLDOUT), counted

    groups = np.zeros(1 << _GROUP_BITS, np.int64)
    for values, counted in drawn():
        groups += np.bincount(values >> _GROUP_SHIFT, weights=counted, minlength=len(groups)).astype(np.int64)
    ends = np.cumsum(groups)
    amount = min(documents or tokens, int(ends[-1]))
    if not amount:
        return 0
    group = int(np.searchsorted(ends, amount))  # the one that holds the last document to be drawn
    in_group: list[U64] = []
    counts: list[Ints] = []
    for values, counted in drawn():
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


def first_of_each(
    hashes: Sequence[U64],
    wanted: Callable[[int, slice], Mask] | None = None,
    arrays: Arrays = IN_MEMORY,
    most: int = 1 << 22,
) -> list[Mask]:
    """Find the first wanted document with each text, over all stores.

    Args:
        hashes: of the texts of the documents of each store.
        wanted: function from the number of a store and a slice of its documents to whether they are wanted; None for
            all documents.
        arrays: allocates the results, which are as long as the stores.
        most: texts that are sorted at a time, which bounds memory; more texts take several passes over the hashes.

    >>> [first] = first_of_each([np.array([5, 6, 5, 5])], lambda store, part: np.array([False, True, True, True]))
    >>> first.tolist()
    [False, True, True, False]
    """
    firsts: list[Mask] = []
    for texts in hashes:
        firsts.append(arrays.filled(len(texts), np.bool_, lambda a, b: np.zeros(b - a, np.bool_)))
    bits = (sum(map(len, hashes)) // most).bit_length()
    for group in range(1 << bits):
        seen = [np.empty(0, np.uint64)]
        places = [np.empty((0, 2), np.int64)]
        for store, texts in enumerate(hashes):
            for a, b in blocks(len(texts)):
                block = texts[a:b].astype(np.uint64)
                mask: Mask = np.ones(b - a, np.bool_)
                if wanted is not None:
                    mask &= wanted(store, slice(a, b))
                if bits:
                    mask &= block >> np.uint64(64 - bits) == np.uint64(group)
                here = np.flatnonzero(mask)
                found, at = np.unique(block[here], return_index=True)
                seen.append(found)
                places.append(np.column_stack([np.full(len(at), store), a + here[at]]))
        _, at = np.unique(np.concatenate(seen), return_index=True)
        for store, document in _by_store(np.concatenate(places)[at], len(hashes)):
            firsts[store][document] = True
    return firsts


def _by_store(places: I64, stores: int) -> Iterator[tuple[int, I64]]:
    """Yield the documents of each store, from pairs of store and document."""
    for store in range(stores):
        yield store, places[places[:, 0] == store, 1]


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
    stratum = (np.asarray(lengths)[kept].astype(np.int64) - 1) // interval
    drawn = keys(seed, SAMPLE, 0, 0, len(lengths))[kept]
    order = np.lexsort((drawn, stratum))  # stratum by stratum, the smallest keys first
    _, sizes = np.unique(stratum, return_counts=True)
    wanted = np.array([int(share * size + Fraction(1, 2)) for size in sizes.tolist()], np.int64)
    rank = np.arange(len(kept)) - np.repeat(offsets_of(sizes)[:-1], sizes)
    chosen = order[rank < np.repeat(wanted, sizes)]
    taken[kept[chosen]] = True
    return taken
