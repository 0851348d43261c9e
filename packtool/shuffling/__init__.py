"""Shuffles: pure functions that decide an order, one file each. None of them touches a token.

`permutation` draws the keys behind all of them.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from typing import Literal

from packtool.errors import UsageError

__all__ = ["METHODS", "Method", "check", "method"]


@dataclass(frozen=True)
class Method:
    """One way to shuffle.

    Attributes:
        name: as on the command line.
        summary: what it does, in one line.
        paper: where it comes from.
        source: what it reads: a packed dataset or a token store.
        accepts: the options it takes beside seed and epoch.
        requires: those of them it can't do without.
    """

    name: str
    summary: str
    paper: str
    source: Literal["packed", "store"]
    accepts: frozenset[str]
    requires: frozenset[str] = frozenset()


METHODS: dict[str, Method] = {
    each.name: each
    for each in (
        Method(
            name="atom",
            summary="permute atoms; rows that belong together move together",
            paper="Optimizing Packing and Shuffling Strategies, section 2",
            source="packed",
            accepts=frozenset({"atom_size", "order_only"}),
        ),
        Method(
            name="partial",
            summary="rotate each of B lanes of the token stream at random",
            paper="Partially Shuffling the Training Data to Improve Language Models",
            source="store",
            accepts=frozenset({"sequence_length", "batch_size"}),
            requires=frozenset({"sequence_length", "batch_size"}),
        ),
        Method(
            name="bucket",
            summary="permute rows within buckets, and batches that each hold rows of one bucket",
            paper="Bucket Pre-training is All You Need, section 4.2",
            source="packed",
            accepts=frozenset({"batch_tokens", "remainder", "order_only"}),
            requires=frozenset({"batch_tokens"}),
        ),
    )
}


def method(name: str) -> Method:
    """The shuffle of this name.

    Raises:
        UsageError: there is none; lists those there are.
    """
    if name not in METHODS:
        raise UsageError(
            "unknown-method",
            f"there is no shuffle {name!r}",
            remedy=f"choose one of {', '.join(METHODS)}",
            where="--method",
        )
    return METHODS[name]


def check(chosen: Method, given: Set[str]) -> None:
    """Make sure that a shuffle gets what it needs, and nothing it would ignore.

    Args:
        given: names of the options that were given.

    Raises:
        UsageError: naming the option.

    >>> check(METHODS["atom"], {"batch_tokens"})
    Traceback (most recent call last):
    packtool.errors.UsageError: --batch-tokens: --method atom does not take this option. Leave it out, or use --method \
bucket.
    """
    for name in sorted(given - chosen.accepts):
        takers = " or ".join(f"--method {each.name}" for each in METHODS.values() if name in each.accepts)
        raise UsageError(
            "option-not-taken",
            f"--method {chosen.name} does not take this option",
            remedy=f"leave it out, or use {takers}",
            where=_flag(name),
        )
    for name in sorted(chosen.requires - given):
        raise UsageError(
            "missing-option",
            f"--method {chosen.name} needs {_flag(name)}",
            remedy=f"give {' and '.join(map(_flag, sorted(chosen.requires)))}",
            where="--method",
        )


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")
