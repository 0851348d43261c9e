"""Mixtures: find how often to pack each document of a store, for a number of epochs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from packtool.planning.arrays import IN_MEMORY, Arrays, blocks
from packtool.planning.plan import I64, Ints, Mask, index_type, offsets_of
from packtool.planning.shuffling.permutation import Purpose, keys, order_by

_GROUP_BITS = 16


@dataclass(frozen=True, slots=True)
class Passes:
    """The documents of one store in the passes in which they are packed: whole passes, then a partial one."""

    kept: Mask  # whether each document may be packed
    whole: int  # number of passes over all these documents
    part: Mask  # whether each document is in the partial pass, which comes last

    def __len__(self) -> int:
        return self.whole * int(np.count_nonzero(self.kept)) + int(np.count_nonzero(self.part))

    @property
    def number(self) -> int:
        """Number of passes, a partial one included."""
        return self.whole + bool(self.part.any())

    @property
    def taken(self) -> Mask:
        """Whether each document of the store is packed at least once."""
        if self.whole:
            return self.kept
        return self.part

    def documents(self, arrays: Arrays = IN_MEMORY) -> I64:
        """List their numbers in the store, in the order in which they are packed."""
        count, every = len(self.kept), []
        if self.whole:
            every = [arrays.where(count, lambda a, b: self.kept[a:b], np.int64)] * self.whole
        every.append(arrays.where(count, lambda a, b: self.part[a:b], np.int64))
        return arrays.concatenated(every, np.int64)


def passes(lengths: Ints, kept: Mask, epochs: Fraction, seed: int, arrays: Arrays = IN_MEMORY) -> Passes:
    """Choose the documents of one store for a number of epochs.

    A partial pass has the documents with the smallest keys, in corpus order, as many as come nearest to its share of
    the tokens; so a larger fraction holds all documents of a smaller one.

    Args:
        lengths: of all documents of the store.
        kept: the documents to choose from.
        epochs: how often they are packed.
        seed: of the keys.
        arrays: allocates the arrays of the choice.

    >>> passes(np.array([5, 5, 5, 5]), np.array([True, True, False, True]), Fraction(2), seed=0).documents()
    array([0, 1, 3, 0, 1, 3])
    >>> len(passes(np.array([5, 5, 5, 5]), np.ones(4, np.bool_), Fraction(1, 2), seed=0).documents())
    2
    """
    whole, part = divmod(epochs, 1)
    return Passes(kept, int(whole), _smallest(lengths, kept, part, seed, arrays))


def by_pass(chosen: Sequence[Passes], arrays: Arrays = IN_MEMORY) -> tuple[Ints, list[int]]:
    """Order the documents of a mixture pass by pass over all stores, so that no pass holds a document twice.

    Args:
        chosen: the documents of each store, which are numbered store by store.
        arrays: allocates the array of the order.
    Returns:
        The document at each place, and the place at which each pass ends.

    >>> some, every = np.array([True, False]), np.array([True, True])
    >>> by_pass([Passes(every, 2, some), Passes(every, 1, some)])
    (array([0, 1, 5, 6, 2, 3, 7, 4], dtype=uint32), [4, 7, 8])
    """
    firsts = offsets_of(np.array(list(map(len, chosen)), np.int64)).tolist()
    order, at, ends = arrays.empty(firsts[-1], index_type(firsts[-1])), 0, []
    sizes = [(int(np.count_nonzero(each.kept)), each.whole, int(np.count_nonzero(each.part))) for each in chosen]
    for number in range(max(each.number for each in chosen)):
        for first, (kept, whole, part) in zip(firsts, sizes, strict=False):
            size = 0
            if number < whole:
                size = kept
            elif number == whole:
                size = part
            for a, b in blocks(size):
                order[at + a : at + b] = np.arange(first + number * kept + a, first + number * kept + b)
            at += size
        ends.append(at)
    return order, ends


def by_pass_in_order(chosen: Sequence[Passes], stored: I64, arrays: Arrays = IN_MEMORY) -> tuple[Ints, list[int]]:
    """Order the documents of a mixture pass by pass over all stores, each pass as the stored documents are ordered.

    Args:
        chosen: the passes of each store; documents are numbered store by store, as they are packed.
        stored: the packed documents of all stores, by their stored numbers, once and in order.
        arrays: allocates arrays as long as the corpus.
    Returns:
        The document at each place, and the place at which each pass ends.

    >>> some, every = np.array([True, False]), np.array([True, True])
    >>> by_pass_in_order([Passes(every, 2, some), Passes(every, 1, some)], np.array([2, 1, 3, 0]))
    (array([5, 1, 6, 0, 7, 3, 2, 4], dtype=uint32), [4, 7, 8])
    """
    documents, count = sum(map(len, chosen)), sum(len(each.kept) for each in chosen)
    order, at, ends = arrays.empty(documents, index_type(documents)), 0, []
    numbers = arrays.empty(count, np.int64)
    for number in range(max(each.number for each in chosen)):
        first, begin = 0, 0  # the first document of a store: as it is packed, and as it is stored
        for each in chosen:
            _number_pass(each, number, first, numbers[begin : begin + len(each.kept)])
            first += len(each)
            begin += len(each.kept)
        for a, b in blocks(len(stored)):
            here = numbers[stored[a:b]]
            here = here[here >= 0]
            order[at : at + len(here)] = here
            at += len(here)
        ends.append(at)
    return order, ends


def _number_pass(passes: Passes, number: int, first: int, numbers: I64) -> None:
    """Write the numbers of the documents of one pass over a store; -1 for documents that are not in it.

    Args:
        first: number of the first document in the first pass; documents of all passes are numbered through.
        numbers: (documents of the store), to be filled.
    """
    taken = passes.kept if number < passes.whole else passes.part
    next_number = first + min(number, passes.whole) * int(np.count_nonzero(passes.kept))
    for a, b in blocks(len(taken)):
        some = taken[a:b] & (number <= passes.whole)
        numbers[a:b] = np.where(some, next_number + np.cumsum(some) - 1, -1)
        next_number += int(np.count_nonzero(some))


def passes_of(chosen: Sequence[I64]) -> tuple[Ints, list[int]]:
    """Split listed documents into passes, as `by_pass` does: a pass begins where their numbers stop ascending.

    Args:
        chosen: of each store, the stored documents in the order in which they are packed.

    >>> passes_of([np.array([0, 1, 0, 1, 0]), np.array([0, 1])])
    (array([0, 1, 5, 6, 2, 3, 4]), [4, 6, 7])
    """
    parts = []
    for documents in chosen:
        goes_back = np.diff(documents, prepend=-1) <= 0  # not at the first document: every number is above -1
        parts.append(np.cumsum(goes_back))
    numbers = np.concatenate(parts)  # the pass of each document
    ends = np.cumsum(np.bincount(numbers))
    # A stable sort: inside a pass, documents stay store by store, and in their order.
    return np.argsort(numbers, kind="stable"), ends.tolist()


def _smallest(lengths: Ints, kept: Mask, part: Fraction, seed: int, arrays: Arrays) -> Mask:
    """Find the documents with the smallest keys, as many as come nearest to a part of all tokens.

    Only documents near the limit are sorted: keys with the same leading bits make a group, and the limit lies in one
    group.
    """
    out: Mask = arrays.filled(len(kept), np.bool_, lambda a, b: np.zeros(b - a, np.bool_))
    if not part or not kept.any():
        return out
    sizes = np.zeros(1 << _GROUP_BITS, np.int64)
    for a, b, drawn in _kept_keys(kept, seed):
        sizes += np.bincount(_group(drawn), weights=lengths[a:b][kept[a:b]], minlength=len(sizes)).astype(np.int64)
    reached = np.cumsum(sizes)
    wanted = part * int(reached[-1])
    last = int(np.searchsorted(reached, int(wanted), side="right"))
    near, near_drawn = [], []
    for a, b, drawn in _kept_keys(kept, seed):
        group = _group(drawn)
        out[a:b][kept[a:b]] = group < last
        near.append(a + np.flatnonzero(kept[a:b])[group == last])
        near_drawn.append(drawn[group == last])
    ordered = np.concatenate(near)[order_by(np.concatenate(near_drawn))]
    sums = int(reached[last] - sizes[last]) + offsets_of(lengths[ordered])
    count = int(np.searchsorted(sums, int(wanted), side="right")) - 1
    if count < len(ordered):
        count += abs(int(sums[count + 1]) - wanted) < abs(int(sums[count]) - wanted)
    out[ordered[:count]] = True
    return out


def _kept_keys(kept: Mask, seed: int) -> Iterator[tuple[int, int, npt.NDArray[np.uint64]]]:
    """Yield ranges of documents ``first:last`` and the keys of the kept documents."""
    for a, b in blocks(len(kept)):
        yield a, b, keys(seed, Purpose.SELECTION, 0, a, b - a)[kept[a:b]]


def _group(drawn: npt.NDArray[np.uint64]) -> I64:
    return (drawn >> np.uint64(64 - _GROUP_BITS)).astype(np.int64)
