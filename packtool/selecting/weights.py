"""Parse the weights of `--mix`: how often to take each store, or its share of the tokens."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from fractions import Fraction

from packtool.errors import UsageError

_MOST_EPOCHS = 1_000_000


def weights_of(mix: Iterable[str], names: Sequence[str], *, shares: bool = False) -> dict[str, Fraction]:
    """Return the weight of each store, in the order of the names; 1 if none is given.

    Args:
        shares: weights are shares of a number of tokens, so percentages make sense.

    Raises:
        UsageError: what is given are not weights, one for each of these stores.

    >>> weights_of(["web=0.4", "wiki=3"], ["wiki", "web"])
    {'wiki': Fraction(3, 1), 'web': Fraction(2, 5)}
    """
    if not mix:
        return dict.fromkeys(names, Fraction(1))
    if len(set(names)) < len(names):
        remedy = "name each store once, with a weight above 1 to take it more often"
        raise UsageError("bad-mixture", "a store is named twice among the inputs", remedy=remedy, where="--mix")
    out: dict[str, Fraction] = {}
    for name, weight in (weight_of(each, shares=shares) for each in mix):
        if name not in names:
            what = f"there is no store {name!r} among the inputs"
            raise UsageError("bad-mixture", what, remedy=f"give {names[0]}=1 and so on", where="--mix")
        if name in out:
            raise UsageError("bad-mixture", f"{name} has two weights", remedy="keep one of them", where="--mix")
        out[name] = weight
    missing = [name for name in names if name not in out]
    if missing:
        what = f"{missing[0]} has no weight"
        raise UsageError("bad-mixture", what, remedy="give every store a weight, 0 to leave it out", where="--mix")
    return {name: out[name] for name in names}


def weight_of(text: str, *, shares: bool) -> tuple[str, Fraction]:
    """Parse a store's name and weight.

    >>> weight_of("wiki=70%", shares=True)
    ('wiki', Fraction(7, 10))

    Raises:
        UsageError: it is not a weight.
    """
    name, separator, weight = text.rpartition("=")
    if not separator:
        raise UsageError("bad-mixture", f"{text!r} is not a weight", remedy="write it like web=1", where="--mix")
    if not re.fullmatch(r"\s*(\d+(\.\d+)?\s*%?|\d+/[1-9]\d*)\s*", weight):
        what = f"the weight of {name} is {weight!r}, not a number from 0"
        raise UsageError("bad-mixture", what, remedy="give a number such as 0.4 or 3", where="--mix")
    number = Fraction(weight.strip().rstrip("% "))
    if "%" in weight:
        if not shares:
            what = f"{name} has a share, {weight.strip()}, but not of what"
            remedy = "give --tokens, or how often to take it, such as 0.4"
            raise UsageError("bad-mixture", what, remedy=remedy, where="--mix")
        number /= 100
    if number > _MOST_EPOCHS:
        raise UsageError("bad-mixture", f"{weight} epochs of {name}", remedy="give fewer", where="--mix")
    return name, number
