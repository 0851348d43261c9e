"""List the candidates to compare: each strategy, with every combination of the values given."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from typing import Any

from packtool.errors import UsageError
from packtool.options.declare import flag
from packtool.options.names import meant_strategy
from packtool.packing import STRATEGIES, PackOptions
from packtool.packing.strategy import check

ALL = "all"

_SHORT = {
    "atom_size": "A",
    "extra_capacity": "c",
    "max_repetition": "r",
    "padding_threshold": "P",
    "min_bucket": "min",
    "buckets": "",
    "remainder": "",
    "mix_rows": "",
    "even_cost": "",
}
"""How labels name the options that differ."""
_NAMED = {"mix_rows": ("unmixed", "mixed"), "even_cost": ("uneven", "even")}
"""How they name switches that are off and on."""


@dataclass(frozen=True)
class Candidate:
    """A strategy and the options it is tried with.

    Attributes:
        strategy: its registered name.
        options: the sequence length for strategies that take one, else the buckets.
        label: its name and, where it is tried in several ways, the options in which these differ.
        asked: the strategy was named, not only meant by ``all``.
    """

    strategy: str
    options: PackOptions
    label: str = ""
    asked: bool = True

    def arguments(self) -> list[str]:
        """List the arguments with which `packtool pack` does the same.

        >>> Candidate("seamless", PackOptions(sequence_length=512, max_repetition=Fraction(1, 10))).arguments()
        ['--strategy', 'seamless', '--sequence-length', '512', '--max-repetition', '0.1']
        """
        words = ["--strategy", self.strategy]
        for field in fields(self.options):
            value = getattr(self.options, field.name)
            if isinstance(value, bool):
                if value != field.default:
                    words.append(flag(field.name) if value else flag(f"no_{field.name}"))
            elif value != field.default:
                words += [flag(field.name), _written(value)]
        return words


def candidates(
    names: Sequence[str],
    sequence_lengths: Sequence[int],
    grid: Mapping[str, Sequence[Any]] | None = None,
) -> list[Candidate]:
    """Combine every strategy with every sequence length (those of several row lengths once), and with every combination
    of the values of those options in the grid that it takes.
    Args:
        names: strategies, or ``all`` among them for every one.
        sequence_lengths: for the strategies that take one.
        grid: values to try, by the name of the option in `PackOptions`.

    Raises:
        UsageError: an unknown strategy, a sequence length is missing, an option makes no sense or no strategy takes it.

    >>> [tried.label for tried in candidates(["concat", "bfd-extra"], [64], grid={"extra_capacity": [5, 10]})]
    ['concat', 'bfd-extra c=5', 'bfd-extra c=10']
    """
    chosen = list(STRATEGIES) if ALL in names else list(dict.fromkeys(names))
    for name in chosen:
        if name not in STRATEGIES:
            raise UsageError(
                "unknown-strategy",
                f"there is no strategy {name!r}",
                remedy=meant_strategy(name, {**{each.name: each.summary for each in STRATEGIES.values()}, ALL: "each"}),
                where="--compare",
            )
    values = grid or {}
    for option in values:
        if not any(option in STRATEGIES[name].accepts for name in chosen):
            takers = [name for name, strategy in STRATEGIES.items() if option in strategy.accepts]
            what = "none of the strategies compared takes this option"
            remedy = f"leave it out, or compare {' or '.join(takers) or 'other strategies'}, too"
            raise UsageError("option-not-taken", what, remedy=remedy, where=flag(option))
    return [
        replace(candidate, asked=name in names)
        for name in chosen
        for candidate in _variants(name, sequence_lengths, values)
    ]


def _variants(name: str, sequence_lengths: Sequence[int], values: Mapping[str, Sequence[Any]]) -> list[Candidate]:
    """Try one strategy in every way."""
    strategy = STRATEGIES[name]
    axes = {option: tried for option, tried in values.items() if option in strategy.accepts}
    if "sequence_length" in strategy.accepts:
        if not sequence_lengths:
            raise UsageError(
                "missing-option",
                f"the strategy {name} needs the length of a row",
                remedy="give --sequence-length, such as 2048 or 2048,8192",
                where="--sequence-length",
            )
        axes = {"sequence_length": list(dict.fromkeys(sequence_lengths)), **axes}
    variants = []
    for combination in itertools.product(*axes.values()):
        given = dict(zip(axes, combination, strict=True))
        options = replace(PackOptions(), **given)
        check(strategy, options)
        differing = [_named(option, given[option]) for option in axes if option in _SHORT and len(axes[option]) > 1]
        variants.append(Candidate(name, options, " ".join([name, *differing])))
    return variants


def _named(option: str, value: Any) -> str:
    """Write an option and its value, short."""
    if isinstance(value, bool):
        return _NAMED[option][value]
    name = _SHORT[option]
    return f"{name}={_written(value)}" if name else _written(value)


def _written(value: Any) -> str:
    """Write a value as a user types it."""
    if isinstance(value, tuple | list):
        return ",".join(map(str, value))
    return str(float(value)) if isinstance(value, Fraction) else str(value)
