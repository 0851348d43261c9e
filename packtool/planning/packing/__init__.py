"""Strategies: pure functions from document lengths to plans, one file each.

`strategy` looks one up by its name, `check` checks its options, `plan_corpus` plans with both; `plan` does all three.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module

from packtool.errors import UsageError
from packtool.options import names
from packtool.planning.arrays import IN_MEMORY, Arrays
from packtool.planning.packing.strategy import PackOptions, Strategy, check
from packtool.planning.packing.windows import plan_corpus
from packtool.planning.plan import Ints, Plan

__all__ = [
    "STRATEGIES",
    "PackOptions",
    "Strategy",
    "check",
    "plan",
    "plan_corpus",
    "strategy",
]

_modules = [import_module(f"{__name__}.{name.replace('-', '_')}") for name in names.STRATEGIES]
STRATEGIES: dict[str, Strategy] = {module.STRATEGY.name: module.STRATEGY for module in _modules}
"""Every strategy by its name, in the order of the documentation."""


def strategy(name: str) -> Strategy:
    """Look up a strategy by its name.

    Raises:
        UsageError: there is none; lists those there are.
    """
    if name not in STRATEGIES:
        raise UsageError(
            "unknown-strategy",
            f"there is no strategy {name!r}",
            remedy=names.meant_strategy(name, {each.name: each.summary for each in STRATEGIES.values()}),
            where="--strategy",
        )
    return STRATEGIES[name]


def plan(
    name: str, lengths: Ints, options: PackOptions, arrays: Arrays = IN_MEMORY, ends: Sequence[int] = ()
) -> list[Plan]:
    """Plan a corpus, one for each row length in ascending order.

    Args:
        name: a strategy of `STRATEGIES`.
        lengths: tokens of each document with its EOS, at least 1 each.
        options: what the strategy takes.
        arrays: makes those that are as long as the corpus.
        ends: where a window of documents ends in any case, if the strategy plans windows.

    Raises:
        UsageError: the name or an option makes no sense.

    >>> import numpy as np
    >>> whole, = plan("concat", np.array([5, 4]), PackOptions(sequence_length=4))
    >>> whole.rows, whole.segments(np.array([1])).document
    (3, array([0, 1]))
    """
    chosen = strategy(name)
    check(chosen, options)
    return plan_corpus(chosen, lengths, options, arrays, ends)
