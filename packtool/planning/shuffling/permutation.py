"""The one permutation behind every shuffle.

Every atom draws a 64-bit key from a counter-based bit generator, at the atom's own index. Atoms are ordered by key,
ties by index. So any worker can draw the keys of any range, and the order does not depend on how the work is divided.
NumPy guarantees the streams of `SeedSequence` and of its bit generators' `random_raw`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import IntEnum, unique
from functools import partial
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from packtool.planning.arrays import IN_MEMORY, Arrays, blocks
from packtool.planning.plan import I64, Ints, index_type


@unique
class Purpose(IntEnum):
    """What random numbers are for, so that one seed serves several independent draws. No number is ever used again."""

    ATOM_ORDER = 1  # order of atoms
    ROTATION = 2  # rotations of the partial shuffle
    BATCH_ORDER = 3  # order of batches
    ROW_MIX = 4  # rows that are mixed
    FIRST_FIT_ORDER = 5  # order of documents for first fit in random order
    SELECTION = 6  # documents of a partial pass
    SAMPLE = 7  # documents of a stratified sample
    FIRST_FIT_INSIDE = 8  # order of documents in the bins of first fit
    DOCUMENT_ORDER = 9  # order of documents before they are packed
    COMPARED = 10  # documents on which strategies are compared


_DRAWN_AT_ONCE = 1 << 17  # keys that stay in the processor's cache
_PER_COUNT = 4  # Philox yields four 64-bit numbers for each step of its counter.


def stream(seed: int, purpose: Purpose, *place: int) -> np.random.Philox:
    """Make the bit generator of one purpose at one place, such as an epoch; independent of all others.

    Args:
        seed: 0 or more, below 2^64.
        place: numbers of 0 or more, as many for every place of a purpose.
    """
    return np.random.Philox(np.random.SeedSequence(seed, spawn_key=(purpose, *place)))


def keys(seed: int, purpose: Purpose, epoch: int, first: int, count: int) -> npt.NDArray[np.uint64]:
    """Draw the 64-bit keys of `count` atoms from atom `first`.

    Args:
        seed: 0 or more, below 2^64.
        epoch: 0 or more, below 2^32.

    >>> whole = keys(42, Purpose.ATOM_ORDER, 0, 0, 10)
    >>> bool((keys(42, Purpose.ATOM_ORDER, 0, 3, 5) == whole[3:8]).all())
    True
    """
    generator = stream(seed, purpose, epoch)
    skip = first % _PER_COUNT
    generator.advance(first // _PER_COUNT)
    drawn: npt.NDArray[np.uint64] = generator.random_raw(skip + count)
    return drawn[skip:]


def permutation(
    atoms: int,
    *,
    seed: int,
    epoch: int = 0,
    purpose: Purpose = Purpose.ATOM_ORDER,
    first: int = 0,
    arrays: Arrays = IN_MEMORY,
) -> Ints:
    """Draw a uniform permutation of ``range(atoms)``: the atom at each place of the new order.

    The keys are divided into equal ranges, one after the other. For each range all keys are drawn again, which takes
    less time than sorting, and those in it are sorted: so memory holds the keys of a range alone.

    Args:
        first: index of atom 0 in the stream of keys, where several sets of atoms share one stream.
        arrays: allocates arrays as long as the permutation.
    """
    order: Ints = arrays.empty(atoms, index_type(atoms))
    ranges = max(1, -(-atoms // arrays.sorted_at_once))
    width = -(-(1 << 64) // ranges)
    place = 0
    for lowest in range(0, 1 << 64, width):
        chosen, drawn = _within(partial(keys, seed, purpose, epoch), first, atoms, lowest, lowest + width - 1)
        order[place : place + len(chosen)] = chosen[order_by(drawn)]
        place += len(chosen)
    return order


def _within(
    draw: Callable[[int, int], npt.NDArray[np.uint64]], first: int, atoms: int, lowest: int, highest: int
) -> tuple[Ints, npt.NDArray[np.uint64]]:
    """Return the atoms whose keys lie in a range, ascending, and their keys."""
    chosen = [np.empty(0, index_type(atoms))]
    drawn = [np.empty(0, np.uint64)]
    for a in range(0, atoms, _DRAWN_AT_ONCE):
        part = draw(first + a, min(_DRAWN_AT_ONCE, atoms - a))
        # A key below the lowest wraps around, to a number above all that are in the range.
        here = np.flatnonzero(part - np.uint64(lowest) <= np.uint64(highest - lowest))
        chosen.append((here + a).astype(index_type(atoms)))
        drawn.append(part[here])
    return np.concatenate(chosen), np.concatenate(drawn)


def order_by(drawn: npt.NDArray[np.uint64]) -> I64:
    """Sort indices by their keys, ties by index.

    Sorting numbers is several times as fast as sorting indices, so the index takes the place of a key's low bits; where
    the high bits are equal, which is rare, the whole keys decide.

    >>> order_by(np.array([5, 1, 5, 0], np.uint64))
    array([3, 1, 0, 2])
    """
    low = np.uint64((1 << max(1, (len(drawn) - 1).bit_length())) - 1)
    packed = drawn & ~low
    for a, b in blocks(len(packed)):
        packed[a:b] |= np.arange(a, b, dtype=np.uint64)
    packed.sort()
    # Neighbours that are equal above the index may be in the wrong order: they are sorted again, by their whole keys.
    unsure = [np.empty(0, np.int64)]
    for a, b in blocks(len(packed)):
        first, last = max(a, 1), min(b, len(packed) - 1)
        differ = packed[first : last + 1] ^ packed[first - 1 : last]
        # Whether the item at each place from a to b equals the item before it; b is the first of the next block.
        equal = np.zeros(b - a + 1, np.bool_)
        equal[first - a : last - a + 1] = differ <= low
        unsure.append(a + np.flatnonzero(equal[1:] | equal[:-1]))
    packed &= low
    order = packed.view(np.int64)
    places = np.concatenate(unsure)
    if len(places):
        indices = order[places]
        order[places] = indices[np.lexsort((indices, drawn[indices]))]
    return order


def document_order(
    order: Ints | int, *, seed: int, epoch: int, ends: Sequence[int] = (), arrays: Arrays = IN_MEMORY
) -> Ints:
    """Draw the order in which documents are planned; each pass stays together.

    Args:
        order: the documents as stored, pass by pass; or how many there are, if they are in the order of their numbers.
        seed, epoch: of the draw.
        ends: where each pass ends.
        arrays: allocates the array of the order.

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
        places = permutation(
            last - first, seed=seed, epoch=epoch, purpose=Purpose.DOCUMENT_ORDER, first=first, arrays=arrays
        )
        for a, b in blocks(last - first):
            lying = places[a:b].astype(np.int64) + first
            out[first + a : first + b] = lying if isinstance(order, int) else order[lying]
    return out
