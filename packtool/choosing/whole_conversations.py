"""Keep conversations whole when documents are packed: `--too-long` says what becomes of one longer than a row."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from packtool.errors import DataError, UsageError
from packtool.formats.known import KnownDataset
from packtool.formats.token_store import Corpus
from packtool.options.pack import PackArguments
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


def no_conversations() -> UsageError:
    """Return the error for stores that hold none, where it is said what becomes of long ones."""
    remedy = "leave it out; texts are cut, --too-long=first takes their first tokens, --max-tokens leaves them out"
    return UsageError("bad-option", "no store holds conversations", remedy=remedy, where="--too-long")


def longest_conversation(stores: Sequence[KnownDataset], strategy: Strategy, options: PackArguments) -> int | None:
    """Return the length in tokens above which conversations of the stores are dropped; None to drop none.

    Raises:
        UsageError: the strategy would cut conversations without `--too-long cut`; or there are none to drop or cut.
    """
    holding = [store for store in stores if store.conversations]
    if not holding and options.too_long in ("drop", "cut"):
        raise no_conversations()
    if not holding or options.too_long == "cut":
        return None
    if strategy.name not in KEEPING:
        raise cut_by(strategy, f"{holding[0].place} holds conversations", "--strategy")
    if options.too_long == "drop":
        return options.longest_row
    return None


def require_fit(corpus: Corpus, row: int, chosen: Sequence[Passes] | None) -> None:
    """Require that the chosen conversations fit a row of so many tokens.

    Args:
        chosen: the documents of each store; None for all.

    Raises:
        DataError: one of them is too long for a row.
    """
    for number, store in enumerate(corpus.stores):
        if not store.manifest.conversations:
            continue
        lengths = store.lengths()
        if chosen is not None:
            lengths = lengths[chosen[number].taken]
        longer = int(np.count_nonzero(lengths > row))
        if longer:
            what = f"{plural(longer, 'conversation')} of {len(lengths):,} do not fit a row of {row:,} tokens"
            longest = int(lengths.max())
            remedy = f"give --too-long=drop, or cut or first, or longer rows: the longest has {longest:,} tokens"
            raise DataError("conversations-too-long", what, remedy=remedy, where=str(store.place))
