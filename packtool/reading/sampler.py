"""Which samples a rank reads, batch by batch: the same global order for any number of ranks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from packtool.errors import DataError, UsageError
from packtool.reading.stream import Key, Stream


class GlobalBatches:
    """The batches of one rank: a batch sampler, as PyTorch calls it, whose state is one number.

    A global batch is the next `batch_size` samples of the stream; its sample i goes to rank ``i % world_size``. Where
    samples are batches of a bucket, a global batch is one sample, and its rows are dealt out the same way. So what a
    step trains on does not depend on the number of ranks, and a run that stopped goes on with any other number.

    Args:
        stream: the samples.
        batch_size: samples in a global batch, a multiple of `world_size`; 1 where samples are batches.
        rank, world_size: of this process.
        micro_batch_size: rows that a rank reads at a time; a global batch then takes several turns.
        drop_last: leave out what does not fill a global batch, at the end of the stream. Else the last is smaller, on
            some ranks by a row, or empty.

    Attributes:
        consumed: samples of the stream before the next global batch, whatever the rank.
        finished: the last iteration came to the end.
    """

    def __init__(
        self,
        stream: Stream,
        batch_size: int = 1,
        *,
        rank: int = 0,
        world_size: int = 1,
        micro_batch_size: int | None = None,
        drop_last: bool = True,
    ) -> None:
        _require(batch_size > 0, f"{batch_size} is not a positive number", "give 1 or more", "batch_size")
        _require(0 <= rank < world_size, f"{rank} is not a rank of {world_size}", "give a rank from 0", "rank")
        micro = micro_batch_size is None or micro_batch_size > 0
        _require(micro, f"{micro_batch_size} is not a positive number", "give 1 or more", "micro_batch_size")
        if stream.bucketed:
            _require(
                batch_size == 1, "the dataset's batches are the global batches", "give batch_tokens alone", "batch_size"
            )
        else:
            _require(
                batch_size % world_size == 0,
                f"{batch_size} samples can't be dealt out evenly to {world_size} ranks",
                "give a multiple of the world size",
                "batch_size",
            )
        self.stream = stream
        self.batch_size = batch_size
        self.rank = rank
        self.world_size = world_size
        self.micro_batch_size = micro_batch_size
        self.drop_last = drop_last
        self.consumed = 0
        self.finished = False

    def __iter__(self) -> Iterator[list[Key]]:
        """From where the last iteration stopped; from the beginning, if that had come to the end."""
        if self.finished:
            self.reset()
        for keys, consumed in self.turns(self.consumed):
            self.consumed = consumed
            yield keys
        self.finished = True

    def __len__(self) -> int:
        """Batches that this rank reads of the whole stream."""
        if self.stream.bucketed or self.micro_batch_size is not None:
            return sum(1 for _ in self.turns(0))
        whole, rest = divmod(len(self.stream), self.batch_size)
        return whole + (rest > 0 and not self.drop_last)

    @property
    def left_out(self) -> int:
        """Samples at the end that fill no global batch, and are dropped."""
        return len(self.stream) % self.batch_size if self.drop_last else 0

    def reset(self) -> None:
        """Begin with the first sample again."""
        self.consumed = 0
        self.finished = False

    def state_dict(self) -> dict[str, Any]:
        """What a run must keep to go on: samples consumed, and how many there are, to tell another dataset apart."""
        return {"samples": self.consumed, "items": self.stream.items}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on where another run stopped, with any world size, batch size or number of epochs.

        Raises:
            DataError: the state is of a dataset with another number of samples.
        """
        if state["items"] != self.stream.items:
            raise DataError(
                "state-differs",
                f"the state is of a dataset of {state['items']} samples, this one has {self.stream.items}",
                remedy="resume with the dataset that the run began with",
                where=str(self.stream.recipe.path),
            )
        self.consumed = state["samples"]
        self.finished = False

    def turns(self, consumed: int) -> Iterator[tuple[list[Key], int]]:
        """What this rank reads at each turn, and the samples consumed when it has been trained on.

        All ranks take the same number of turns.
        """
        total = len(self.stream)
        while consumed < total:
            after = min(consumed + self.batch_size, total)
            if self.drop_last and after - consumed < self.batch_size:
                return
            keys = self._keys(consumed, after)
            most = -(-len(keys) // self.world_size)
            size = self.micro_batch_size or max(most, 1)
            mine = keys[self.rank :: self.world_size]
            for first in range(0, max(most, 1), size):
                chosen = mine[first : first + size]
                if not chosen and self.stream.bucketed:
                    chosen = [(consumed, -1)]
                yield chosen, after if first + size >= most else consumed
            consumed = after

    def _keys(self, first: int, last: int) -> list[Key]:
        if not self.stream.bucketed:
            return list(range(first, last))
        rows = self.stream.rows_of(first)
        full = self.stream.full_rows_of(first)
        if rows == full and rows % self.world_size:
            raise UsageError(
                "bad-option",
                f"batch {first} has {rows} rows, which can't be dealt out evenly to {self.world_size} ranks",
                remedy="give batch_tokens so that every batch has a multiple of the world size",
                where="batch_tokens",
            )
        return [(first, row) for row in range(rows)]


def _require(holds: bool, what: str, remedy: str, where: str) -> None:
    if not holds:
        raise UsageError("bad-option", what, remedy=remedy, where=where)
