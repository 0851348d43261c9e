"""How often to pack each store: what `--mix` asks of it, and what `--tokens` divides among all of them.

    --mix "web=1x,wiki=2.5x,code=5000 documents"     epochs, or an amount
    --tokens 10B --mix web=3,wiki=1                  weights, of any sum, as in a blend
    --tokens 10B --mix web=75%,wiki=25%              shares
    --tokens 10B                                     by size; --temperature 3.3 favours small stores

A weight or a share means nothing without a total, and is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from typing import Literal

from packtool.choosing.names import StoreNames
from packtool.errors import UsageError
from packtool.options.kinds import parse_part, shown

_MILLION = 10**6
_NUMBER = re.compile(r"\s*(\d{1,100}(?:\.\d{1,100})?|\d{1,100}/[1-9]\d{0,99})\s*(%|x|)\s*")
_UNITS: dict[str, Unit] = {"": "weight", "%": "share", "x": "epochs"}
_MOST_EPOCHS = 1_000_000
_FORMS = "write web=2x for epochs, web=5000 documents, or with --tokens web=3 or web=75%"

Unit = Literal["weight", "share", "epochs", "documents", "tokens"]


@dataclass(frozen=True)
class Weight:
    """What is asked of a store."""

    number: Fraction  # how many units
    unit: Unit  # a weight among the stores, a share of all tokens, epochs, or documents or tokens of the store

    def __str__(self) -> str:
        """Return it as manifests record it."""
        if self.unit in ("documents", "tokens"):
            return f"{self.number} {self.unit}"
        return str(self.number)


ONCE = Weight(Fraction(1), "epochs")


def weights_in(mix: Iterable[str], *, divided: bool) -> list[tuple[str, Weight]]:
    """Parse the epochs, share or amount of each store, by name.

    Args:
        divided: there is a number of tokens that weights or shares divide.

    Raises:
        UsageError: it can't be parsed, or does not go together.

    >>> weights_in(["web=3", "wiki=1"], divided=True)[0]
    ('web', Weight(number=Fraction(3, 1), unit='weight'))
    """
    weights = [_weight(text, divided=divided) for text in mix]
    units = {weight.unit for _, weight in weights if weight.number}
    if len(units) > 1 and divided:
        raise _bad_mixture("some stores have a weight, and others a percentage", "write all of them in one way")
    if units == {"share"}:
        total = sum((weight.number for _, weight in weights), Fraction(0))
        if total != 1:
            what = f"the shares sum to {_percent(total)}"
            raise _bad_mixture(what, "let them sum to 100%, or give weights, such as web=3,wiki=1")
    if weights and not units and divided:
        raise _bad_mixture("all weights are zero", "give a store a weight")
    return weights


def _weight(text: str, *, divided: bool) -> tuple[str, Weight]:
    """Parse the name of a store, and its epochs, share or amount."""
    name, separator, written = text.rpartition("=")
    if not separator:
        raise _bad_mixture(f"{text!r} asks nothing of a store", _FORMS)
    weight = _parse(written)
    if weight is None:
        raise _bad_mixture(f"what is asked of {name} is {shown(written)}", _FORMS)
    if not weight.number:
        return name, weight
    if divided and weight.unit not in ("weight", "share"):
        what = f"{name}={written} is no part of --tokens"
        raise _bad_mixture(what, "give weights, such as web=3,wiki=1, or leave out --tokens")
    if not divided and weight.unit == "share":
        what = f"{name}={written} is a share, but there is no total"
        raise _bad_mixture(what, "give --tokens, or say how often to take it, such as 0.4x")
    if not divided and weight.unit == "weight":
        what = f"{name}={written} is a weight, but there is no total"
        remedy = f"write {name}={written}x for epochs, or give --tokens, which weights divide"
        raise _bad_mixture(what, remedy)
    if weight.unit == "epochs" and weight.number > _MOST_EPOCHS:
        raise _bad_mixture(f"{weight.number} epochs of {name}", "give fewer")
    return name, weight


def _parse(written: str) -> Weight | None:
    """Parse the epochs, share or amount of a store; None if the text is none of these."""
    match = _NUMBER.fullmatch(written)
    if match is None:
        return _amount(written)
    unit = _UNITS[match[2]]
    if unit == "share":
        return Weight(Fraction(match[1]) / 100, unit)
    return Weight(Fraction(match[1]), unit)


def _amount(written: str) -> Weight | None:
    """Parse a number of documents or tokens, as `--holdout` takes it."""
    if not written.strip().endswith(("document", "documents", "token", "tokens")):
        return None
    try:
        amount = parse_part(written)
    except ValueError:
        return None
    if amount.tokens:
        return Weight(Fraction(amount.tokens), "tokens")
    return Weight(Fraction(amount.documents), "documents")


def by_store(weights: Sequence[tuple[str, Weight]], names: StoreNames) -> list[tuple[str, Weight]]:
    """Return the shortest name of each store and its weight, in their order; each once if none is given.

    Raises:
        UsageError: not one weight for each store.

    >>> asked = weights_in(["web=0.5x", "wiki=3x"], divided=False)
    >>> [(name, str(weight)) for name, weight in by_store(asked, StoreNames(["/data/wiki", "/data/web"]))]
    [('wiki', '3'), ('web', '1/2')]
    """
    if not weights:
        return [(name, ONCE) for name in names.shortest]
    by_number: dict[int, Weight] = {}
    for name, weight in weights:
        number = names.number(name, "--mix")
        if number in by_number:
            raise _bad_mixture(f"{name} is named twice", "keep one of them")
        by_number[number] = weight
    for number, name in enumerate(names.shortest):
        if number not in by_number:
            raise _bad_mixture(f"nothing is asked of {name}", "name every store, with 0 to leave it out")
    return [(name, by_number[number]) for number, name in enumerate(names.shortest)]


def shares_of(weights: Sequence[Fraction | int]) -> list[Fraction]:
    """Return the share of each store in proportion to the weights, which may all be zero.

    >>> shares_of([60, 20])
    [Fraction(3, 4), Fraction(1, 4)]
    """
    total = sum(weights) or 1
    return [Fraction(weight) / total for weight in weights]


def shares_by_temperature(tokens: Sequence[int], temperature: Decimal) -> list[Fraction]:
    """Return the share of each store by its tokens to the power of 1/T, as multilingual corpora are sampled (mT5).

    Shares are computed in decimal arithmetic of a fixed precision and rounded to millionths, so that they are the same
    on every machine; the largest share takes the rounding error.

    Args:
        tokens: of each store.
        temperature: T; 1 leaves the proportions as they are, a higher one makes them more even.

    >>> shares_by_temperature([10_000, 100], Decimal(2))
    [Fraction(909091, 1000000), Fraction(90909, 1000000)]
    """
    with localcontext(Context(prec=40)):
        powers = [Decimal(0)] * len(tokens)
        for number, count in enumerate(tokens):
            if count:
                powers[number] = (Decimal(count).ln() / temperature).exp()
        total = sum(powers) or Decimal(1)
        shares = [Fraction(round(power / total * _MILLION), _MILLION) for power in powers]
    shares[shares.index(max(shares))] += 1 - sum(shares, Fraction(0))
    return shares


def epochs_of(weight: Weight, documents: int, tokens: int, name: str, most: int | None) -> Fraction:
    """Return the epochs in which a store gives what is asked of it.

    Args:
        documents, tokens: of the store.
        name: of the store.
        most: epochs that are allowed; None for one of an amount, and as many as are asked for.

    Raises:
        UsageError: it takes more.

    >>> epochs_of(Weight(Fraction(30), "documents"), 40, 1000, "web", None)
    Fraction(3, 4)
    """
    if weight.unit not in ("documents", "tokens") or not weight.number:
        if most is not None and weight.number > most:
            what = f"{_shown(weight.number)} epochs of {name} are more than --max-epochs={most}"
            raise _bad_mixture(what, "change one of the two")
        return weight.number
    count = documents
    if weight.unit == "tokens":
        count = tokens
    if weight.number > (most or 1) * count:
        what = f"{int(weight.number):,} {weight.unit} of {name}, which has {count:,}"
        remedy = f"give {(most or 1) * count} or fewer"
        if count:
            remedy += f", or --max-epochs={-(-weight.number // count)}"
        raise _bad_mixture(what, remedy)
    return weight.number / count


def epochs_of_shares(
    shares: Sequence[Fraction], tokens: Sequence[int], names: Sequence[str], budget: int, most: int, *, stop: bool
) -> list[Fraction]:
    """Compute the epochs in which stores give their shares of a number of tokens.

    Args:
        shares: that sum to 1.
        tokens: of each store.
        names: of the stores.
        budget: tokens in all.
        most: epochs of a store.
        stop: a store whose share takes more is packed as often as it may be, and the others share what is lacking.

    Raises:
        UsageError: a share takes more epochs, without `stop`; all stores together have too few tokens.

    >>> epochs_of_shares([Fraction(3, 4), Fraction(1, 4)], [900, 100], ["web", "wiki"], 400, 1, stop=False)
    [Fraction(1, 3), Fraction(1, 1)]
    >>> epochs_of_shares([Fraction(3, 4), Fraction(1, 4)], [900, 100], ["web", "wiki"], 800, 1, stop=True)
    [Fraction(7, 9), Fraction(1, 1)]
    """
    limits = [most * count for count in tokens]
    wanted = [share * budget for share in shares]
    if stop:
        wanted = _up_to(limits, shares, budget)
    for number, tokens_wanted in enumerate(wanted):
        if tokens_wanted > limits[number]:
            raise _too_few(number, shares, tokens, names, budget, most)
    return [tokens_wanted / max(count, 1) for tokens_wanted, count in zip(wanted, tokens, strict=True)]


def _up_to(limits: Sequence[int], shares: Sequence[Fraction], budget: int) -> list[Fraction]:
    """Divide a number of tokens by shares. A store gives its limit at most, and the others what it lacks, by theirs."""
    full: set[int] = set()
    while True:
        rest, going = Fraction(budget), Fraction(0)
        for number, share in enumerate(shares):
            if number in full:
                rest -= limits[number]
            else:
                going += share
        if not going:
            what = f"the stores with a share give {budget - int(rest):,} of {budget:,} tokens"
            raise _too_many_tokens(what, "give fewer --tokens, or more --max-epochs")
        wanted = list(map(Fraction, limits))
        before = len(full)
        for number, share in enumerate(shares):
            if number not in full:
                wanted[number] = rest * share / going
        full |= {number for number, limit in enumerate(limits) if wanted[number] > limit}
        if len(full) == before:
            return wanted


def _too_few(
    number: int, shares: Sequence[Fraction], tokens: Sequence[int], names: Sequence[str], budget: int, most: int
) -> UsageError:
    """Return the error for a store that has too few tokens for its share; it says what there are enough for."""
    epochs, in_all = Fraction(0), 0  # the most epochs that a share takes of its store; tokens of all these stores
    for name, share, count in zip(names, shares, tokens, strict=True):
        if not share:
            continue
        if not count:
            return _bad_mixture(f"{name} has no tokens", "leave it out")
        epochs = max(epochs, share * budget / count)
        in_all += count
    name, share, count = names[number], shares[number], tokens[number]
    what = f"{_percent(share)} of {budget:,} tokens takes {float(share * budget / count):.6g} epochs of {name}"
    ways = [f"--tokens={int(most * budget / epochs)} or fewer", f"--max-epochs={-(-epochs // 1)}"]
    if most * in_all >= budget:  # else the others can't give what it lacks
        fits = int(Fraction(most * count, budget) * _MILLION)  # rounded down
        ways.append(f"{_percent(Fraction(fits, _MILLION))} of {name} or less")
        ways.append("--stop=True, so that the others give what it lacks")
    remedy = f"give {', '.join(ways[:-1])}, or {ways[-1]}"
    return _too_many_tokens(what, remedy)


def _percent(share: Fraction) -> str:
    return f"{_shown(100 * share)}%"


def _shown(value: Fraction) -> str:
    return f"{float(value):.6g}"


def _bad_mixture(what: str, remedy: str) -> UsageError:
    return UsageError("bad-mixture", what, remedy=remedy, where="--mix")


def _too_many_tokens(what: str, remedy: str) -> UsageError:
    return UsageError("bad-mixture", what, remedy=remedy, where="--tokens")
