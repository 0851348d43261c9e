"""The rows of plans under one permutation of their atoms: what `pack` writes and what `stats` foresees."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from packtool.layout import Layout
from packtool.plan import Plan
from packtool.shuffling.atom import atom_shuffles


def arrange(plans: Sequence[Plan], seed: int | None, epoch: int = 0) -> Iterator[Layout]:
    """The layout of each plan under the atom shuffle. No seed: the plans' own order."""
    if seed is None:
        return map(Layout, plans)
    shuffles = atom_shuffles(plans, seed=seed, epoch=epoch)
    return (Layout(plan, shuffle.order()) for plan, shuffle in zip(plans, shuffles, strict=True))
