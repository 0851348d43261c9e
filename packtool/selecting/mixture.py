"""Mixtures: how often to pack each document of a store, from a weight in epochs or a share of a token budget."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal, localcontext
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from packtool.arrays import IN_MEMORY, Arrays, blocks
from packtool.errors import UsageError
from packtool.plan import I64, Ints, index_type, offsets_of
from packtool.shuffling.permutation import SELECTION, keys, order_by

Mask = npt.NDArray[np.bool_]
Keys = npt.NDArray[np.uint64]

_GROUP_BITS = 16
_MILLION = 10**6


@dataclass(frozen=True, slots=True)
class Passes:
    """The documents of one store as often as they are packed: whole passes first, then the part of another.

    Attributes:
        kept: which documents there are to choose from.
        whole: passes over all of them.
        part: which of them are packed once more.
    """

    kept: Mask
    whole: int
    part: Mask

    def __len__(self) -> int:
        return self.whole * int(np.count_nonzero(self.kept)) + int(np.count_nonzero(self.part))

    @property
    def number(self) -> int:
        """Passes, the part of one among them."""
        return self.whole + bool(self.part.any())

    def documents(self, arrays: Arrays = IN_MEMORY) -> I64:
        """List their numbers in the store, in the order in which they are packed."""
        count, every = len(self.kept), [np.empty(0, np.int64)]
        if self.whole:
            every = [arrays.where(count, lambda a, b: self.kept[a:b], np.int64)] * self.whole
        every.append(arrays.where(count, lambda a, b: self.part[a:b], np.int64))
        return arrays.concatenated(every, np.int64, [0] * len(every))


def passes(lengths: Ints, kept: Mask, epochs: Fraction, seed: int, arrays: Arrays = IN_MEMORY) -> Passes:
    """Choose the documents of one store as often as they are packed.

    The part of a pass has the documents with the smallest keys, in corpus order, as many as come nearest to its share
    of the tokens; so larger fractions hold all of smaller ones.

    Args:
        lengths: of all documents of the store.
        kept: which of them there are to choose from.
        epochs: how often.
        seed: of the keys.
        arrays: makes those of the choice.

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
        arrays: makes that of the order.

    Returns:
        The document at each place, and the place at which each pass ends.

    >>> some, every = np.array([True, False]), np.array([True, True])
    >>> by_pass([Passes(every, 2, some), Passes(every, 1, some)])
    (array([0, 1, 5, 6, 2, 3, 7, 4], dtype=uint32), [4, 7, 8])
    """
    firsts = offsets_of(np.array([len(each) for each in chosen], np.int64)).tolist()
    order, at, ends = arrays.empty(firsts[-1], index_type(firsts[-1])), 0, []
    sizes = [(int(np.count_nonzero(each.kept)), each.whole, int(np.count_nonzero(each.part))) for each in chosen]
    for number in range(max(each.number for each in chosen)):
        for first, (kept, whole, part) in zip(firsts, sizes, strict=False):
            size = kept if number < whole else part if number == whole else 0
            for a, b in blocks(size):
                order[at + a : at + b] = np.arange(first + number * kept + a, first + number * kept + b)
            at += size
        ends.append(at)
    return order, ends


def passes_of(chosen: Sequence[I64]) -> tuple[Ints, list[int]]:
    """Split documents that were listed into passes, as `by_pass` does: one begins where their numbers stop to ascend.

    Args:
        chosen: of each store, the stored documents in the order in which they are packed.

    >>> passes_of([np.array([0, 1, 0, 1, 0]), np.array([0, 1])])
    (array([0, 1, 5, 6, 2, 3, 4]), [4, 6, 7])
    """
    numbers = np.concatenate([np.cumsum(np.diff(each, prepend=-1) <= 0) for each in chosen])
    return np.argsort(numbers, kind="stable"), np.cumsum(np.bincount(numbers)).tolist()


def _smallest(lengths: Ints, kept: Mask, part: Fraction, seed: int, arrays: Arrays) -> Mask:
    """Find which documents have the smallest keys, as many as come nearest to a part of all tokens.

    Only those near the limit are sorted: keys with the same leading bits make a group, and one group holds the limit.
    """
    out: Mask = arrays.filled(len(kept), np.bool_, lambda a, b: np.zeros(b - a, np.bool_))
    if not part or not kept.any():
        return out
    held = np.zeros(1 << _GROUP_BITS, np.int64)
    for a, b, drawn in _drawn(kept, seed):
        held += np.bincount(_group(drawn), weights=lengths[a:b][kept[a:b]], minlength=len(held)).astype(np.int64)
    reached = np.cumsum(held)
    wanted = part * int(reached[-1])
    last = int(np.searchsorted(reached, int(wanted), side="right"))
    near, near_drawn = [], []
    for a, b, drawn in _drawn(kept, seed):
        group = _group(drawn)
        out[a:b][kept[a:b]] = group < last
        near.append(a + np.flatnonzero(kept[a:b])[group == last])
        near_drawn.append(drawn[group == last])
    ordered = np.concatenate(near)[order_by(np.concatenate(near_drawn))]
    sums = int(reached[last] - held[last]) + offsets_of(lengths[ordered])
    count = int(np.searchsorted(sums, int(wanted), side="right")) - 1
    if count < len(ordered):
        count += abs(int(sums[count + 1]) - wanted) < abs(int(sums[count]) - wanted)
    out[ordered[:count]] = True
    return out


def _drawn(kept: Mask, seed: int) -> Iterator[tuple[int, int, Keys]]:
    """Yield ranges of documents ``first:last``, and the keys of those of them that are kept."""
    for a, b in blocks(len(kept)):
        yield a, b, keys(seed, SELECTION, 0, a, b - a)[kept[a:b]]


def _group(drawn: Keys) -> I64:
    return (drawn >> np.uint64(64 - _GROUP_BITS)).astype(np.int64)


def epochs_of(
    weights: dict[str, Fraction], tokens: dict[str, int], budget: int | None, most: Fraction
) -> dict[str, Fraction]:
    """Compute the epochs of each source.

    Args:
        weights: epochs, or shares of the budget where there is one.
        tokens: that each source has.
        budget: tokens in all, or None.
        most: epochs that a share may take.

    Raises:
        UsageError: shares that do not sum to 1, or that take more epochs than allowed.

    >>> epochs_of({"web": Fraction("0.75"), "wiki": Fraction("0.25")}, {"web": 900, "wiki": 100}, 400, Fraction(1))
    {'web': Fraction(1, 3), 'wiki': Fraction(1, 1)}
    """
    if budget is None:
        return weights
    require_whole(weights)
    out = {}
    for name, share in weights.items():
        if share and not tokens[name]:
            raise UsageError("bad-mixture", f"{name} has no tokens", remedy="leave it out", where="--mix")
        out[name] = share * budget / tokens[name] if share else Fraction(0)
        if out[name] > most:
            what = f"{_shown(share)} of {budget:,} tokens takes {_shown(out[name])} epochs of {name}"
            remedy = f"give fewer --tokens, a smaller share, or --max-epochs {-(-out[name] // 1)}"
            raise UsageError("bad-mixture", what, remedy=remedy, where="--mix")
    return out


def require_whole(shares: Mapping[str, Fraction]) -> None:
    """Refuse shares that do not sum to 1.

    Raises:
        UsageError: they sum to something else.
    """
    total = sum(shares.values(), Fraction(0))
    if total != 1:
        what = f"the shares sum to {_shown(total)}"
        raise UsageError("bad-mixture", what, remedy="give shares of --tokens that sum to 1", where="--mix")


def shares_by_temperature(tokens: Mapping[str, int], temperature: Decimal) -> dict[str, Fraction]:
    """Weigh each source by its tokens to the power of 1/T, as multilingual corpora are sampled (mT5).

    In decimal arithmetic of a fixed precision and rounded to millionths, so that they are the same on every machine;
    the largest share takes what rounding leaves.

    Args:
        tokens: that each source has.
        temperature: T; 1 leaves the proportions as they are, more brings them closer to each other.

    >>> shares_by_temperature({"en": 10_000, "is": 100}, Decimal(2))
    {'en': Fraction(909091, 1000000), 'is': Fraction(90909, 1000000)}
    """
    with localcontext(Context(prec=40)):
        powers = {
            name: (Decimal(count).ln() / temperature).exp() if count else Decimal(0) for name, count in tokens.items()
        }
        total = sum(powers.values()) or Decimal(1)
        shares = {name: Fraction(round(power / total * _MILLION), _MILLION) for name, power in powers.items()}
    largest = max(shares, key=lambda name: shares[name])
    shares[largest] += 1 - sum(shares.values(), Fraction(0))
    return shares


def _shown(value: Fraction) -> str:
    return f"{float(value):.6g}"
