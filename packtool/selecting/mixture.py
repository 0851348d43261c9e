"""Mixtures: how often each document of a store is packed, from a weight in epochs or a share of a token budget."""

from __future__ import annotations

from fractions import Fraction
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from packtool.errors import UsageError
from packtool.plan import I64, Ints, offsets_of
from packtool.shuffling.permutation import SELECTION, keys, order_by

Keys = npt.NDArray[np.uint64]
Value = TypeVar("Value", bound=np.generic)


def passes(lengths: Ints, kept: I64, epochs: Fraction, seed: int) -> I64:
    """The documents of one store as often as they are packed: whole passes first, then the part of another.

    The part has the documents with the smallest keys, in corpus order, as many as come nearest to its share of the
    tokens; so larger fractions hold all of smaller ones.

    Args:
        lengths: of all documents of the store.
        kept: the documents to choose from, ascending.
        epochs: how often.
        seed: of the keys.

    >>> passes(np.array([5, 5, 5, 5]), np.array([0, 1, 3]), Fraction(2), seed=0)
    array([0, 1, 3, 0, 1, 3])
    >>> len(passes(np.array([5, 5, 5, 5]), np.arange(4), Fraction(1, 2), seed=0))
    2
    """
    whole, part = divmod(epochs, 1)
    chosen = [kept] * whole
    if part and len(kept):
        drawn = keys(seed, SELECTION, 0, 0, len(lengths))
        chosen.append(kept[_smallest(of_kept(drawn, kept), of_kept(lengths, kept), part)])
    return np.concatenate([np.empty(0, np.int64), *chosen])


def of_kept(values: npt.NDArray[Value], kept: I64) -> npt.NDArray[Value]:
    """The values of the documents that are kept, ascending; often that is all of them, and nothing is copied."""
    return values if len(kept) == len(values) else values[kept]


def _smallest(drawn: Keys, lengths: Ints, part: Fraction) -> npt.NDArray[np.bool_]:
    """Which documents have the smallest keys, as many as come nearest to a part of all tokens.

    Only those near the limit are sorted: keys with the same leading bits make a group, and one group holds the limit.
    """
    group = (drawn >> np.uint64(48)).astype(np.int64)
    held = np.bincount(group, weights=lengths, minlength=1 << 16).astype(np.int64)
    reached = np.cumsum(held)
    wanted = part * int(reached[-1])
    last = int(np.searchsorted(reached, int(wanted), side="right"))
    taken: npt.NDArray[np.bool_] = group < last
    near = np.flatnonzero(group == last)
    near = near[order_by(drawn[near])]
    sums = int(reached[last] - held[last]) + offsets_of(lengths[near])
    count = int(np.searchsorted(sums, int(wanted), side="right")) - 1
    if count < len(near):
        count += abs(int(sums[count + 1]) - wanted) < abs(int(sums[count]) - wanted)
    taken[near[:count]] = True
    return taken


def epochs_of(
    weights: dict[str, Fraction], tokens: dict[str, int], budget: int | None, most: Fraction
) -> dict[str, Fraction]:
    """Epochs of each source.

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
    total = sum(weights.values(), Fraction(0))
    if total != 1:
        what = f"the shares sum to {_shown(total)}"
        raise UsageError("bad-mixture", what, remedy="give shares of --tokens that sum to 1", where="--mix")
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


def _shown(value: Fraction) -> str:
    return f"{float(value):.6g}"
