"""Strategies: pure functions from document lengths to plans, one file each.

`strategy` looks one up by its name, `check` checks its options, `plan_corpus` plans with both; `plan` does all three.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from importlib import import_module

from packtool.errors import UsageError
from packtool.options import names
from packtool.options.check import check_taken, checked, out_of_range
from packtool.planning.arrays import IN_MEMORY, Arrays
from packtool.planning.packing.strategy import PackOptions, Strategy
from packtool.planning.packing.windows import plan_corpus, row_counts
from packtool.planning.plan import Ints, Plan

__all__ = [
    "STRATEGIES",
    "PackOptions",
    "Strategy",
    "check",
    "plan",
    "plan_corpus",
    "require_fit",
    "row_counts",
    "strategy",
]

_modules = [import_module(f"{__name__}.{name.replace('-', '_')}") for name in names.STRATEGIES]
STRATEGIES: dict[str, Strategy] = {module.STRATEGY.name: module.STRATEGY for module in _modules}
"""Every strategy by its name, in the order of the documentation."""


OTHER_STRATEGIES = {
    "bestfit": "bfd",
    "best-fit-decreasing": "bfd",
    "bfd-m": "bfd-extra",
    "bfd-split": "bfd",
    "bucket": "buckets",
    "firstfit": "ffd",
    "first-fit-decreasing": "ffd",
    "fixed": "concat",
    "group-texts": "concat",
    "packed": "concat",
    "packing": "bfd",
    "pad": "padding",
    "sp": "seamless",
    "stream": "concat",
    "wrapped": "concat",
}
"""Names of strategies in papers and other tools, and here; with or without hyphens."""


def strategy(name: str, where: str = "--strategy", **others: str) -> Strategy:
    """Look up a strategy by its name.

    Args:
        where: the option that names it.
        others: other names that the option takes, and their meanings.

    Raises:
        UsageError: there is no such strategy; the message lists the names.
    """
    if name not in STRATEGIES:
        meanings = {each.name: each.summary for each in STRATEGIES.values()} | others
        what, remedy = f"there is no strategy {name!r}", _meant_strategy(name, meanings)
        raise UsageError("unknown-strategy", what, remedy=remedy, where=where)
    return STRATEGIES[name]


def _meant_strategy(word: str, meanings: Mapping[str, str]) -> str:
    """Suggest the strategy that was meant, with its description; or list all strategies.

    Args:
        word: what was given.
        meanings: the strategies and what they do.

    >>> _meant_strategy("group_texts", {"concat": "one stream of tokens, cut"})
    'did you mean concat (one stream of tokens, cut)?'
    >>> _meant_strategy("xyz", {"concat": "", "bfd": ""})
    'choose one of concat, bfd'
    """
    name = word.strip().lower().replace("_", "-").replace(" ", "-")
    known = {
        **OTHER_STRATEGIES,
        **{known_name.replace("-", ""): known_name for known_name in OTHER_STRATEGIES.values()},
    }
    meant = name if name in meanings else known.get(name) or known.get(name.replace("-", ""))
    if meant is None:
        close = difflib.get_close_matches(name, [*meanings, *OTHER_STRATEGIES], n=1)
        meant = OTHER_STRATEGIES.get(close[0], close[0]) if close else None
    if meant is None or meant not in meanings:
        return f"choose one of {', '.join(meanings)}"
    return f"did you mean {meant} ({meanings[meant]})?"


def check(strategy: Strategy, options: PackOptions) -> None:
    """Refuse options that the strategy does not take, lacks, or cannot obey.

    Raises:
        UsageError: names the option and the remedy.
    """
    checked(options)
    check_taken(options, "--strategy", strategy.name)
    if options.atom_size is not None:
        require_fit(options.atom, options.row_length)
    if options.multiple > 1:
        _require_multiples(strategy, options)
    if not options.buckets or len(set(options.buckets)) < len(options.buckets):
        remedy = "name each size once, such as 2048,4096"
        raise UsageError("bad-option", "the sizes must differ", remedy=remedy, where="--buckets")
    if options.sequence_length is not None:
        for name, value, most in (
            ("--extra-capacity", options.extra, options.row_length - 1),
            ("--min-bucket", options.min_bucket, options.row_length),
        ):
            if value > most:
                raise out_of_range(name, value, 0, most)
    if strategy.check is not None:
        strategy.check(options)


def _require_multiples(strategy: Strategy, options: PackOptions) -> None:
    """Refuse rows and atoms that are not multiples of the document multiple."""
    multiple, accepts = options.multiple, strategy.accepts
    sizes = [("--buckets", size) for size in sorted(options.buckets) if "buckets" in accepts]
    sizes += [("--sequence-length", options.row_length)] if "sequence_length" in accepts else []
    sizes += [("--atom-size", options.atom)] if "atom_size" in accepts else []
    for name, size in sizes:
        if size % multiple:
            what = f"{size} is not a multiple of {multiple}, where documents are to begin"
            remedy = f"give {-(-size // multiple) * multiple}, or another --document-multiple"
            raise UsageError("bad-option", what, remedy=remedy, where=name)
    if strategy.powers and multiple & (multiple - 1):
        what = f"{multiple} is not a power of two, and {strategy.name} makes rows of powers of two"
        remedy = f"give {1 << multiple.bit_length()}, or another strategy"
        raise UsageError("bad-option", what, remedy=remedy, where="--document-multiple")


def require_fit(atom: int, row: int) -> None:
    """Refuse atoms that neither divide rows nor are divided by them.

    Raises:
        UsageError: naming the atom size.
    """
    if row % atom and atom % row:
        remedy = "give a divisor or a multiple of the sequence length"
        what = f"{atom} does not fit the sequence length {row}"
        raise UsageError("bad-atom-size", what, remedy=remedy, where="--atom-size")


def plan(name: str, lengths: Ints, options: PackOptions, arrays: Arrays = IN_MEMORY) -> list[Plan]:
    """Plan a corpus: one plan for each row length, ascending.

    Args:
        name: a strategy of `STRATEGIES`.
        lengths: tokens of each document with its EOS, at least 1.
        options: what the strategy takes.
        arrays: allocates arrays as long as the corpus.

    Raises:
        UsageError: the name or an option is invalid.

    >>> import numpy as np
    >>> whole, = plan("concat", np.array([5, 4]), PackOptions(sequence_length=4))
    >>> whole.rows, whole.segments(np.array([1])).document
    (3, array([0, 1]))
    """
    chosen = strategy(name)
    check(chosen, options)
    return plan_corpus(chosen, lengths, options.normalized(), arrays)
