"""A strategy: how it plans, and which options it takes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from packtool.options.declare import accepted, declared
from packtool.options.plans import PackOptions
from packtool.planning.plan import Plan

__all__ = ["PackOptions", "Strategy", "draws", "mixes"]


@dataclass(frozen=True)
class Strategy:
    """One way to turn document lengths into plans.

    Attributes:
        name: as on the command line.
        summary: what it does, in one line.
        recommended: its place in the order in which the verdict takes strategies whose figures are alike, the simplest
            first; 0 if the verdict never names it, whatever its figures.
        windowed: it plans windows of at most `window_tokens` tokens, one after the other; else the corpus at once.
        plan: function from lengths (EOS included, at least 1) and checked options to plans. A strategy that is not
            windowed is given an `Arrays`, too, for arrays as long as the corpus.
        check: function that refuses options that it can't obey; None where all that it takes can be obeyed.
        multi_bucket: it gives one plan for each row length, in ascending order, rather than one plan.
        mixes: rows are mixed unless ``mix_rows`` is false.
        random: its plans depend on the seed.
        whole: documents that fit a row (with `padding` an atom) are never cut.
        rounds: to begin pieces at multiples, it has to plan rounded lengths; else every unit begins with a document.
        keeps_eos: rows have the EOS of every document; without it nothing teaches a model to stop.
        omits_eos: pieces of EOS alone are left out.
        neighbours: documents that are neighbours in the order share rows.
        powers: the lengths of its rows are powers of two.
    """

    name: str
    summary: str
    windowed: bool
    plan: Callable[..., list[Plan]]
    check: Callable[[PackOptions], None] | None = None
    recommended: int = 0
    multi_bucket: bool = False
    mixes: bool = False
    random: bool = False
    whole: bool = False
    rounds: bool = True
    omits_eos: bool = False
    keeps_eos: bool = True
    neighbours: bool = False
    powers: bool = False

    def takes(self, option: str) -> bool:
        """Return whether it takes an option of `PackOptions`."""
        return declared(PackOptions)[option].taken(self.name)

    @property
    def accepts(self) -> frozenset[str]:
        """The options that it takes and that not every strategy takes."""
        return accepted(PackOptions, self.name)


def mixes(strategy: Strategy, options: PackOptions) -> bool:
    """Return whether rows are mixed."""
    return strategy.mixes if options.mix_rows is None else options.mix_rows


def draws(strategy: Strategy, *, mixed: bool, reordered: bool) -> bool:
    """Return whether rows depend on the seed before they are shuffled.

    Args:
        mixed: rows are mixed.
        reordered: documents are planned in the order of an epoch.
    """
    return strategy.random or mixed or reordered
