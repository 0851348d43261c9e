"""Load batches for this rank, in parallel, with a state of one number."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from itertools import tee
from pathlib import Path
from typing import Any, Literal

import torch.distributed
from torch.utils.data import DataLoader

from packtool.errors import UsageError
from packtool.reading.batch import FIELDS, check_options, make_batch
from packtool.reading.sampler import GlobalBatches
from packtool.reading.stream import Stream
from packtool.torch.samples import Samples, collate


class Loader:
    """An iterable of batches of tensors, which can stop at any batch and go on, on any number of ranks.

    Each loop is a pass over `epochs` epochs, and the next loop has the epochs that follow, each in its own order.
    Leaving a loop keeps the place: the next one goes on from there, unless `set_epoch` begins a pass.

    Args:
        source: path or URL of a packed dataset.
        batch_size: rows in a global batch, over all ranks; by default as many as make `batch_tokens`, or one. Not for
            datasets of several lengths.
        batch_tokens: tokens in a global batch; for datasets of several lengths by default as its own batches.
        micro_batch_size: rows that a rank gets at a time; by default its whole share of a global batch.
        epochs: how often every row comes in a pass.
        shuffle: each epoch in its own order, computed; else in stored order.
        seed: of these orders; by default the one the dataset was packed or shuffled with.
        orders: instead, a directory for each epoch, as ``packtool shuffle --order-only`` wrote it.
        rank, world_size: of this process; by default what `torch.distributed` says, or before it was initialised the
            variables RANK and WORLD_SIZE, which torchrun sets.
        drop_last: leave out what fills no global batch; `left_out` says how much. Else the last one is smaller, and on
            some ranks may be empty.
        balance: ``step`` or ``turn``: deal the rows of a global batch so that ranks attend equally long, as of
            `GlobalBatches`.
        fields: of a batch, from `FIELDS`; by default all of them.
        num_workers, multiprocessing_context, pin_memory, prefetch_factor: of PyTorch's `DataLoader`. Workers that
            read a URL are spawned by default.
        options: of `packtool.reading.make_batch`; `cache`, `cache_bytes` and `fetch`, as of `packtool.open`.

    Attributes:
        consumed: samples before the next global batch, of all passes. A global batch counts when the last of it is
            handed out, whatever workers read ahead.
        left_out: samples at the end of a pass that fill no global batch.
        sampler, batch_sampler: the samples of each batch, by the names that trainers look for to set the epoch.
    """

    def __init__(
        self,
        source: str | Path,
        *,
        batch_size: int | None = None,
        batch_tokens: int | None = None,
        micro_batch_size: int | None = None,
        epochs: int = 1,
        shuffle: bool = True,
        seed: int | None = None,
        orders: Sequence[str | Path] | None = None,
        rank: int | None = None,
        world_size: int | None = None,
        drop_last: bool = True,
        balance: Literal["step", "turn"] | None = None,
        fields: Sequence[str] = FIELDS,
        num_workers: int = 0,
        multiprocessing_context: str | None = None,
        pin_memory: bool = False,
        prefetch_factor: int | None = None,
        **options: Any,
    ) -> None:
        check_options(options, Loader, Stream, make_batch)
        found_rank, found_world = _place()
        self._samples = Samples(
            source,
            fields=fields,
            epochs=epochs,
            shuffle=shuffle,
            seed=seed,
            orders=orders,
            batch_tokens=batch_tokens,
            drop_rest=drop_last,
            **options,
        )
        self.sampler = self.batch_sampler = GlobalBatches(
            self._samples.stream,
            batch_size,
            rank=found_rank if rank is None else rank,
            world_size=found_world if world_size is None else world_size,
            micro_batch_size=micro_batch_size,
            drop_last=drop_last,
            balance=balance,
        )
        self._workers: dict[str, Any] = {"num_workers": num_workers, "pin_memory": pin_memory}
        if num_workers:
            if multiprocessing_context is None and not self._samples.stream.recipe.place.near:
                multiprocessing_context = "spawn"  # clients of object stores do not survive a fork
            self._workers |= {"multiprocessing_context": multiprocessing_context, "prefetch_factor": prefetch_factor}

    def __iter__(self) -> Iterator[dict[str, Any]]:
        # Workers read ahead. So the state follows what comes out, not what was asked of them.
        taken, asked = tee(self.sampler.begin())
        ahead = (keys for keys, _ in asked)
        batches = DataLoader(self._samples, batch_sampler=_Turns(ahead), collate_fn=collate, **self._workers)  # type: ignore[arg-type,unused-ignore]
        for batch, (_, consumed) in zip(batches, taken, strict=True):
            self.sampler.consumed = consumed
            yield batch

    def __len__(self) -> int:
        """Count the batches that this rank gets in a pass."""
        return len(self.sampler)

    def __repr__(self) -> str:
        sampler = self.sampler
        place = f"{sampler.passed} of {len(sampler.stream)} samples consumed, {sampler.left_out} left out"
        return f"<packtool loader: rank {sampler.rank} of {sampler.world_size}, {place}, {sampler.stream.epoch(0)!r}>"

    @property
    def consumed(self) -> int:
        return self.sampler.consumed

    @property
    def left_out(self) -> int:
        return self.sampler.left_out

    def reset(self) -> None:
        """Begin with the first sample again."""
        self.sampler.reset()

    def set_epoch(self, number: int) -> None:
        """Begin a pass, from 0, as trainers do before each of theirs; a state inside it is resumed."""
        self.sampler.set_epoch(number)

    def state_dict(self) -> dict[str, Any]:
        """Return the state for a checkpoint. It is the same on every rank."""
        return self.sampler.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where another run stopped, with any world size, batch size or number of epochs.

        Raises:
            DataError: not a state; or that of another dataset, order or seed.
        """
        self.sampler.load_state_dict(state)


class _Turns:
    """An iterator as the batch sampler that `DataLoader` wants."""

    def __init__(self, keys: Iterator[Any]) -> None:
        self._keys = keys

    def __iter__(self) -> Iterator[Any]:
        return self._keys


def _place() -> tuple[int, int]:
    """Rank and world size of this process."""
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        return torch.distributed.get_rank(), torch.distributed.get_world_size()
    given = [os.environ.get(name, default) for name, default in (("RANK", "0"), ("WORLD_SIZE", "1"))]
    if not all(each.isdecimal() for each in given):
        what, remedy = f"{' of '.join(given)} is no rank of a world", "set both to numbers, or give rank and world_size"
        raise UsageError("bad-option", what, remedy=remedy, where="RANK, WORLD_SIZE")
    return int(given[0]), int(given[1])
