"""Who gets which rows of a global batch, and in which micro-batches. It needs no stream: addresses and costs are given.

Row i of a global batch goes to rank ``i % world_size``; or rows are dealt by their costs, so that ranks attend equally
long.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from packtool.errors import UsageError
from packtool.options.check import is_whole
from packtool.planning.plan import I64
from packtool.planning.shuffling.balance import STEP, TURN, dealt_in


class GlobalBatch(NamedTuple):
    """A global batch: the samples ``first:last`` of a stream."""

    first: int
    last: int
    length: int  # length of its rows
    addresses: I64  # addresses of its rows: (rows, 4), as in `Stream.addresses`


class MicroBatch(NamedTuple):
    """The rows that a rank trains on at a time: its share of a global batch, or a part of its share."""

    addresses: I64  # (rows, 4); (0, 4) for one without rows
    length: int  # length of its rows
    consumed: int  # samples of the stream consumed after it, the same on every rank
    ahead: int  # samples of the stream up to the end of the global batch
    filled: int = 0  # rows at the end that only make up the number that other ranks have: they train nothing


@dataclass(frozen=True)
class Sharing:
    """The share of one rank in global batches. Every rank has the same number of micro-batches.

    Args:
        rank, world_size: of this process.
        micro_batch_size: rows of a micro-batch; None for all rows of the share.
        balance: deal rows by their costs: ``step`` or ``turn``, as in `GlobalBatches`.
        fill: ranks with fewer rows of a global batch get its first row again.

    Raises:
        UsageError: there is no such rank, balance or size of a micro-batch.

    >>> rows = np.array([[0, 0, 32, row] for row in range(5)])
    >>> one, two = Sharing(1, 2, micro_batch_size=2, fill=True).micro_batches(GlobalBatch(10, 15, 32, rows), rows[1::2])
    >>> one.addresses[:, 3], one.consumed, one.filled
    (array([1, 3]), 10, 0)
    >>> two.addresses[:, 3], two.consumed, two.filled
    (array([0]), 15, 1)
    """

    rank: int = 0
    world_size: int = 1
    micro_batch_size: int | None = None
    balance: Literal["step", "turn"] | None = None
    fill: bool = False

    def __post_init__(self) -> None:
        whole = is_whole(self.rank) and is_whole(self.world_size)
        if not whole or not 0 <= self.rank < self.world_size:
            what = f"{self.rank} is not a rank of {self.world_size}"
            raise UsageError("bad-option", what, remedy="give a rank from 0", where="rank")
        if self.balance not in (None, STEP, TURN):
            what = f"unknown balance {self.balance!r}"
            raise UsageError("bad-option", what, remedy="give 'step' or 'turn'", where="balance")
        require_size(self.micro_batch_size, "micro_batch_size")

    def count(self, rows: int) -> int:
        """Count the micro-batches of a global batch of this many rows: at least one, even for a rank without rows."""
        return -(-max(1, self._most(rows)) // self._size(rows))

    def fewest(self, rows: int) -> Iterator[int]:
        """Yield for each micro-batch of a global batch of this many rows the fewest rows that a rank gets."""
        size = self._size(rows)
        # Rounded down: the last rank gets the fewest rows, so it runs out first.
        least = rows // self.world_size
        for number in range(self.count(rows)):
            yield max(0, min(size, least - number * size))

    def shares(self, batches: Sequence[GlobalBatch], costs: Callable[[I64], I64]) -> list[I64]:
        """Return the addresses of this rank's rows in each global batch.

        Args:
            costs: function that returns what some rows of one length cost, by their addresses: (rows). It is asked only
                to balance. A batch that ranks can't share equally is dealt without costs.
        """
        shares = [batch.addresses[self.rank :: self.world_size] for batch in batches]
        if self.balance is None:
            return shares
        for size, alike in self._alike(batches):
            rows = np.concatenate([batches[number].addresses for number in alike])
            dealt = dealt_in(self.balance, costs(rows).reshape(-1, size), self.world_size, self.micro_batch_size)
            # dealt: (batches, ranks, rows of a rank), numbers of rows in their global batch
            for number, mine in zip(alike, dealt[:, self.rank], strict=True):
                shares[number] = batches[number].addresses[mine]
        return shares

    def micro_batches(self, batch: GlobalBatch, share: I64) -> Iterator[MicroBatch]:
        """Yield the micro-batches of this rank's share of a global batch.

        Args:
            share: addresses of the rows of this rank, as `shares` returns them.
        """
        rows = len(batch.addresses)
        size, count, most = self._size(rows), self.count(rows), self._most(rows)
        for number in range(count):
            mine = share[number * size : (number + 1) * size]
            filled = 0
            if self.fill:
                filled = min(size, most - number * size) - len(mine)
                mine = np.concatenate([mine, np.repeat(batch.addresses[:1], filled, axis=0)])
            # A global batch counts as consumed with its last micro-batch: until then a resumed run reads it again.
            consumed = batch.last if number + 1 == count else batch.first
            yield MicroBatch(mine, batch.length, consumed, batch.last, filled)

    def _most(self, rows: int) -> int:
        """Return the number of rows that the first rank gets of a global batch: no other rank gets more."""
        return -(-rows // self.world_size)

    def _size(self, rows: int) -> int:
        """Return the rows of a micro-batch: as given, or all rows of the first rank in a global batch of `rows`."""
        return self.micro_batch_size or max(1, self._most(rows))

    def _alike(self, batches: Sequence[GlobalBatch]) -> Iterator[tuple[int, list[int]]]:
        """Yield a number of rows, and the numbers of the batches that have as many of one length, if ranks share them.

        Their costs are one array, and are dealt at once.
        """
        groups: dict[tuple[int, int], list[int]] = {}
        for number, batch in enumerate(batches):
            rows = len(batch.addresses)
            if rows % self.world_size == 0:
                groups.setdefault((rows, batch.length), []).append(number)
        for (size, _), alike in groups.items():
            yield size, alike


def require_size(value: Any, where: str) -> None:
    """Refuse a size of a batch that is neither None nor a whole number from 1.

    Raises:
        UsageError: it is something else; True is, too.
    """
    if value is None or (is_whole(value) and value > 0):
        return
    what = f"{value!r} is not a positive whole number"
    raise UsageError("bad-option", what, remedy="give 1 or more", where=where)
