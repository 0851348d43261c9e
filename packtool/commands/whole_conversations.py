"""Keep conversations whole when documents are packed: `--too-long` says what becomes of one longer than a row."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from packtool.commands.pack_recipe import PackRecipe
from packtool.errors import DataError, UsageError
from packtool.formats.known import KnownDataset
from packtool.formats.token_store import Corpus
from packtool.planning.packing import STRATEGIES
from packtool.planning.packing.strategy import Strategy
from packtool.planning.selecting.mixture import Passes
from packtool.support.sizes import plural

KEEPING = tuple(name for name, strategy in STRATEGIES.items() if strategy.whole and strategy.keeps_eos)
"""The strategies that take conversations."""


def cut_by(strategy: Strategy, held: str, where: str) -> UsageError:
    """Return the error for a strategy that would cut conversations, or leave out what ends them.

    Args:
        held: what holds them.
        where: the option that names the strategy.
    """
    cuts = "cuts" if strategy.keeps_eos else "leaves out the EOS of"
    what = f"{strategy.name} {cuts} documents that would fit a row, and {held}"
    remedy = f"give --too-long=cut, or a strategy that keeps documents whole: {', '.join(KEEPING)}"
    return UsageError("conversations-cut", what, remedy=remedy, where=where)


def longest_conversation(stores: Sequence[KnownDataset], recipe: PackRecipe) -> int | None:
    """Return the length in tokens above which conversations of the stores are dropped; None to drop none.

    Raises:
        UsageError: the strategy would cut conversations without `--too-long cut`; or there are none to drop or cut.
    """
    options = recipe.options
    held = [store for store in stores if store.conversations]
    if not held and options.too_long in ("drop", "cut"):
        remedy = "leave it out; texts are cut, --too-long=first takes their first tokens, --max-tokens leaves them out"
        raise UsageError("bad-option", "no store holds conversations", remedy=remedy, where="--too-long")
    if not held or options.too_long == "cut":
        return None
    strategy = recipe.strategy
    if strategy.name not in KEEPING:
        raise cut_by(strategy, f"{held[0].place} holds conversations", "--strategy")
    if options.too_long == "drop":
        return recipe.options.longest_row
    return None


def require_fit(corpus: Corpus, recipe: PackRecipe, chosen: Sequence[Passes] | None) -> None:
    """Require that the chosen conversations fit rows, if no option says what becomes of longer ones.

    Args:
        chosen: the documents of each store; None for all.

    Raises:
        DataError: one of them is too long for a row.
    """
    if recipe.options.too_long != "error":
        return
    for number, store in enumerate(corpus.stores):
        if not store.manifest.conversations:
            continue
        row, lengths = recipe.options.longest_row, store.lengths()
        if chosen is not None:
            lengths = lengths[chosen[number].taken]
        longer = int(np.count_nonzero(lengths > row))
        if longer:
            what = f"{plural(longer, 'conversation')} of {len(lengths):,} do not fit a row of {row:,} tokens"
            longest = int(lengths.max())
            remedy = f"give --too-long=drop, or cut or first, or longer rows: the longest has {longest:,} tokens"
            raise DataError("conversations-too-long", what, remedy=remedy, where=str(store.place))
