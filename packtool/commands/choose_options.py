"""How the options that choose documents are written: weights, numbers of tokens, shares, sides, shards."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from packtool.errors import UsageError

_FACTORS = {"": 1, "k": 10**3, "m": 10**6, "b": 10**9, "g": 10**9, "t": 10**12}


@dataclass(frozen=True)
class Holdout:
    """How much to hold out: a share of the texts, or a number of documents or tokens."""

    share: Fraction | None = None
    documents: int = 0
    tokens: int = 0


def weights_of(mix: Sequence[str], names: Sequence[str]) -> dict[str, Fraction]:
    """The weight of each store, in the order of the names; 1 where none is given.

    Raises:
        UsageError: what is given are not weights, one for each of these stores.

    >>> weights_of(["web=0.4", "wiki=3"], ["wiki", "web"])
    {'wiki': Fraction(3, 1), 'web': Fraction(2, 5)}
    """
    if not mix:
        return dict.fromkeys(names, Fraction(1))
    if len(set(names)) < len(names):
        remedy = "name each store once, with a weight above 1 to pack it more often"
        raise UsageError("bad-mixture", "a store is named twice among the inputs", remedy=remedy, where="--mix")
    out: dict[str, Fraction] = {}
    for each in mix:
        name, separator, weight = str(each).rpartition("=")
        if not separator or name not in names:
            what = f"{each!r} is not a weight" if not separator else f"there is no store {name!r} among the inputs"
            raise UsageError("bad-mixture", what, remedy=f"give {names[0]}=1 and so on", where="--mix")
        if name in out:
            raise UsageError("bad-mixture", f"{name} has two weights", remedy="keep one of them", where="--mix")
        if not re.fullmatch(r"\s*\d+(\.\d+)?(/[1-9]\d*)?\s*", weight) or ("." in weight and "/" in weight):
            what = f"the weight of {name} is {weight!r}, not a number from 0"
            raise UsageError("bad-mixture", what, remedy="give a number such as 0.4 or 3", where="--mix")
        out[name] = Fraction(weight.strip())
        if out[name] > 1_000_000:
            raise UsageError("bad-mixture", f"{weight} epochs of {name}", remedy="give fewer", where="--mix")
    missing = [name for name in names if name not in out]
    if missing:
        what = f"{missing[0]} has no weight"
        raise UsageError("bad-mixture", what, remedy="give every store a weight, 0 to leave it out", where="--mix")
    return {name: out[name] for name in names}


def parse_tokens(value: str | int, option: str) -> int:
    """A number of tokens (or documents), such as 300B.

    >>> parse_tokens("1.5M", "--tokens"), parse_tokens(7, "--tokens")
    (1500000, 7)
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmbgt]?)\s*", str(value).lower())
    if match is None or not 0 < Decimal(match[1]) * _FACTORS[match[2]] < 1 << 62:
        what = f"{value!r} is not a number of tokens"
        raise UsageError("bad-option", what, remedy="write it like 300B, 5M or 1000000", where=option)
    return int(Decimal(match[1]) * _FACTORS[match[2]])


def holdout_of(value: str | int) -> Holdout:
    """What `--holdout` asks for.

    >>> holdout_of("0.5%"), holdout_of("2k tokens").tokens, holdout_of(30).documents
    (Holdout(share=Fraction(1, 200), documents=0, tokens=0), 2000, 30)
    """
    text = str(value).lower()
    if share := re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*%\s*", text):
        return Holdout(share=Fraction(share[1]) / 100)
    if number := re.fullmatch(r"\s*(\d+(?:\.\d+)?\s*[kmbgt]?)\s*(tokens?|documents?)?\s*", text):
        count = parse_tokens(number[1], "--holdout")
        return Holdout(tokens=count) if (number[2] or "").startswith("token") else Holdout(documents=count)
    remedy = "write it like 0.5%, 1000 documents or 2M tokens"
    raise UsageError("bad-option", f"{value!r} is not a part to hold out", remedy=remedy, where="--holdout")


def share_of(value: str | float) -> Fraction:
    """What `--sample` asks for: 0.17 or 17%.

    >>> share_of("17%"), share_of(0.25)
    (Fraction(17, 100), Fraction(1, 4))
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(%?)\s*", str(value))
    share = Fraction(match[1]) / (100 if match[2] else 1) if match else Fraction(0)
    if not 0 < share <= 1:
        remedy = "write it like 17% or 0.17"
        raise UsageError("bad-option", f"{value!r} is not a share above 0", remedy=remedy, where="--sample")
    return share


def shard_of(text: str) -> tuple[int, int]:
    """The number of a shard, from 1, and how many there are.

    >>> shard_of("1/8")
    (1, 8)
    """
    match = re.fullmatch(r"(\d+)/(\d+)", text.strip())
    number, shards = (int(match[1]), int(match[2])) if match else (0, 0)
    if not 1 <= number <= shards < 1 << 31:
        remedy = "give a number and how many there are, such as 1/8 to 8/8"
        raise UsageError("bad-option", f"{text!r} is not a shard", remedy=remedy, where="--shard-of")
    return number, shards
