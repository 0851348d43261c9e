"""Divide work among tasks that share no engine: each does its share of the pieces, and `merge` the rest.

A run is made of numbered pieces, blocks of a corpus or shards of rows. Which of them a task does follows from two
numbers alone, so tasks need not know of each other.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from packtool.errors import UsageError

MERGE = "merge"
"""In place of a share: no piece, but all that is left once tasks have done them."""


@dataclass(frozen=True)
class Share:
    """The share of one task.

    Attributes:
        number: of the task, from 1; 0 for the merge, which does no piece.
        count: of tasks; 0 for the merge.
    """

    number: int
    count: int

    @property
    def merges(self) -> bool:
        """Puts together what tasks did."""
        return self.number == 0

    def has(self, piece: int) -> bool:
        """Return whether a piece belongs to this task.

        >>> [piece for piece in range(8) if Share(2, 3).has(piece)]
        [1, 4, 7]
        """
        return not self.merges and piece % self.count == self.number - 1

    def __str__(self) -> str:
        return MERGE if self.merges else f"{self.number}/{self.count}"


def parse_share(text: str) -> Share:
    """Parse a share in the form that `--task` takes.

    Raises:
        UsageError: it is something else.

    >>> parse_share("3/8")
    Share(number=3, count=8)
    """
    if text == MERGE:
        return Share(0, 0)
    match = re.fullmatch(r"(\d{1,6})/(\d{1,6})", text)
    number, count = map(int, match.groups()) if match else (0, 0)
    if 1 <= number <= count:
        return Share(number, count)
    remedy = "give one such as 3/8, the third of eight tasks; they are counted from 1"
    raise UsageError("bad-option", f"{text!r} is not a task", remedy=remedy, where="--task")


def tasks_of(pieces: Iterable[int], count: int) -> list[int]:
    """Return the numbers of the tasks whose shares hold any of these pieces.

    >>> tasks_of([1, 4, 5], 3)
    [2, 3]
    """
    return sorted({piece % count + 1 for piece in pieces})
