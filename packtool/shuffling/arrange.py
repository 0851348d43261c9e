"""The rows of plans under one permutation of their atoms: what `pack` writes and what `stats` foresees."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from packtool.layout import Layout
from packtool.plan import Plan
from packtool.shuffling.permutation import permutation


def arrange(plans: Sequence[Plan], seed: int | None, epoch: int = 0) -> Iterator[Layout]:
    """The layout of each plan; the atoms of all plans are numbered through. No seed: the plans' own order."""
    first = 0
    for plan in plans:
        if seed is None:
            yield Layout(plan)
        else:
            yield Layout(plan, permutation(plan.movable_atoms, seed=seed, epoch=epoch, first=first))
        first += plan.movable_atoms
