"""Choose some of the documents: by the hash of their text, or as a sample that keeps the distribution of lengths.

A hash decides the same in any store, on any day, for all copies of a text.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import numpy.typing as npt

from packtool.planning.plan import I64, Ints, Mask, offsets_of
from packtool.planning.shuffling.permutation import SAMPLE, keys

U64 = npt.NDArray[np.uint64]

_HOLDOUT, _SHARD = 1, 2  # purposes: which side a text is on in one says nothing about the other


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


def bound_of_number(hashes: U64, lengths: Ints, *, seed: int, documents: int = 0, tokens: int = 0) -> int:
    """Return the bound below which as few of these documents are drawn as reach a number.

    Copies of a text are on the same side, so they may be a little more.

    Args:
        hashes: of the texts of all documents of all stores.
        lengths: of the documents.
        seed: of the draw.
        documents, tokens: how many to draw, one of the two.

    >>> texts = np.array([5, 6, 5, 7], np.uint64)
    >>> bound = bound_of_number(texts, np.array([3, 3, 3, 3]), seed=0, documents=1)
    >>> int(held_out(texts, seed=0, bound=bound).sum()) in (1, 2)
    True
    """
    if not len(hashes) or (not documents and not tokens):
        return 0
    drawn = _mixed(hashes, seed, _HOLDOUT)
    order = np.argsort(drawn, kind="stable")
    last = documents - 1
    if tokens:
        last = int(np.searchsorted(np.cumsum(lengths[order], dtype=np.int64), tokens))
    return int(drawn[order[min(last, len(order) - 1)]]) + 1


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
    """Find the documents of shard `number` of `shards`, from 1: each is in one of them, with all its copies.

    >>> texts = np.arange(100, dtype=np.uint64)
    >>> sum(int(in_shard(texts, number, 3).sum()) for number in (1, 2, 3))
    100
    """
    width = ((1 << 64) - 1) // shards + 1
    if shards == 1:
        return np.ones(len(hashes), np.bool_)
    inside: Mask = _mixed(hashes, 0, _SHARD) // np.uint64(width) == np.uint64(number - 1)
    return inside


def first_of_each(hashes: U64) -> Mask:
    """Find the first document with each text.

    >>> first_of_each(np.array([5, 6, 5], np.uint64)).tolist()
    [True, True, False]
    """
    keep = np.zeros(len(hashes), np.bool_)
    keep[np.unique(hashes, return_index=True)[1]] = True
    return keep


def sampled(lengths: Ints, kept: I64, share: Fraction, interval: int, seed: int) -> Mask:
    """Draw a stratified sample (Seamless Packing, appendix D.1); larger shares hold the documents of smaller ones.

    From each interval (k · interval, (k + 1) · interval] it takes the documents with the smallest keys, as many as come
    nearest to its share; halves are rounded up.

    Args:
        lengths: of all documents of the store, in tokens.
        kept: the documents to choose from, ascending.
        share: of the documents of each interval.
        interval: in tokens.
        seed: of the keys.

    >>> mask = sampled(np.array([3, 4, 4, 2, 9, 9]), np.arange(6), Fraction(1, 2), interval=4, seed=0)
    >>> int(mask[:4].sum()), int(mask[4:].sum())
    (2, 1)
    """
    taken = np.zeros(len(lengths), np.bool_)
    if not len(kept):
        return taken
    stratum = (np.asarray(lengths)[kept].astype(np.int64) - 1) // interval
    order = np.lexsort((keys(seed, SAMPLE, 0, 0, len(lengths))[kept], stratum))
    _, sizes = np.unique(stratum, return_counts=True)
    wanted = np.array([int(share * size + Fraction(1, 2)) for size in sizes.tolist()], np.int64)
    rank = np.arange(len(kept)) - np.repeat(offsets_of(sizes)[:-1], sizes)
    taken[kept[order[rank < np.repeat(wanted, sizes)]]] = True
    return taken
