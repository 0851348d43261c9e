"""Strategies: pure functions from document lengths to plans, one file each.

lengths ─windows─▶ lengths of a window ─strategy─▶ one plan for each row length ─join─▶ plans of the corpus
"""

from __future__ import annotations

from packtool.errors import UsageError
from packtool.packing import concat, padding
from packtool.packing.options import PackOptions, Strategy, check
from packtool.plan import Ints, Plan

__all__ = ["STRATEGIES", "PackOptions", "Strategy", "plan", "strategy"]

STRATEGIES: dict[str, Strategy] = {module.STRATEGY.name: module.STRATEGY for module in (concat, padding)}


def strategy(name: str) -> Strategy:
    """The strategy of this name.

    Raises:
        UsageError: there is none; lists those there are.
    """
    if name not in STRATEGIES:
        raise UsageError(
            "unknown-strategy",
            f"there is no strategy {name!r}",
            remedy=f"choose one of {', '.join(STRATEGIES)}",
            where="--strategy",
        )
    return STRATEGIES[name]


def plan(name: str, lengths: Ints, options: PackOptions) -> list[Plan]:
    """The plans of a corpus, one for each row length in ascending order.

    Args:
        name: a strategy of `STRATEGIES`.
        lengths: tokens of each document with its EOS, at least 1 each.
        options: what the strategy takes.

    Raises:
        UsageError: the name or an option makes no sense.

    >>> import numpy as np
    >>> whole, = plan("concat", np.array([5, 4]), PackOptions(sequence_length=4))
    >>> whole.rows, whole.segments(np.array([1])).document
    (3, array([0, 1]))
    """
    chosen = strategy(name)
    check(chosen, options)
    if len(lengths) and int(lengths.min()) < 1:
        raise ValueError("a stored document has at least one token, its EOS")
    return chosen.plan(lengths, options)
