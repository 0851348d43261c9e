"""Shuffles: pure functions that decide an order, one file each. None of them touches a token.

`permutation` draws the keys behind all of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from packtool.errors import UsageError

__all__ = ["METHODS", "Method", "method"]


@dataclass(frozen=True)
class Method:
    """One way to shuffle.

    Attributes:
        name: as on the command line.
        summary: what it does, in one line.
        paper: where it comes from.
        source: what it reads: a packed dataset or a token store.
    """

    name: str
    summary: str
    paper: str
    source: Literal["packed", "store"]


METHODS: dict[str, Method] = {
    each.name: each
    for each in (
        Method(
            name="atom",
            summary="permute atoms; rows that belong together move together",
            paper="Optimizing Packing and Shuffling Strategies, section 2",
            source="packed",
        ),
        Method(
            name="partial",
            summary="rotate each of B lanes of the token stream at random",
            paper="Partially Shuffling the Training Data to Improve Language Models",
            source="store",
        ),
        Method(
            name="bucket",
            summary="permute rows within buckets, and batches that each hold rows of one bucket",
            paper="Bucket Pre-training is All You Need, section 4.2",
            source="packed",
        ),
    )
}


def method(name: str) -> Method:
    """Look up a shuffle by its name.

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
