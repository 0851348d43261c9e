"""The loader: batches for this rank, in parallel, with a state of one number."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch.distributed
from torch.utils.data import DataLoader

from packtool.places.url import is_remote
from packtool.reading.sampler import GlobalBatches
from packtool.torch.samples import FIELDS, Samples, collate


class Loader:
    """An iterable of batches of tensors, which can stop at any batch and go on, on any number of ranks.

    Leaving the loop keeps the place: the next loop goes on from there. After the end it begins again.

    Args:
        source: path or URL of a packed dataset.
        batch_size: rows in a global batch, over all ranks. Not for datasets of several lengths, which have
            `batch_tokens`.
        batch_tokens: for datasets of several lengths: tokens in a global batch; by default as its own batches.
        micro_batch_size: rows that a rank gets at a time; by default its whole share of a global batch.
        epochs: how often every row comes.
        shuffle: each epoch in its own order, computed; else in stored order.
        seed: of these orders; by default the one the dataset was packed or shuffled with.
        orders: instead, a directory for each epoch, as ``packtool shuffle --order-only`` wrote it.
        rank, world_size: of this process; by default what `torch.distributed` says, if it was initialised.
        drop_last: leave out what fills no global batch; `left_out` says how much. Else the last one is smaller, and on
            some ranks may be empty.
        fields: of a batch, from `FIELDS`; by default all of them.
        num_workers, multiprocessing_context, pin_memory, prefetch_factor: of PyTorch's `DataLoader`. Workers that
            read a URL are spawned by default.
        options: of `packtool.reading.make_batch`; `cache`, `cache_bytes` and `fetch`, as of `packtool.open`.

    Attributes:
        consumed: samples of the run before the next global batch. A global batch counts when the last of it is handed
            out, whatever workers read ahead.
        left_out: samples at the end of the run that fill no global batch.
    """

    def __init__(
        self,
        source: str | Path,
        *,
        batch_size: int = 1,
        batch_tokens: int | None = None,
        micro_batch_size: int | None = None,
        epochs: int = 1,
        shuffle: bool = True,
        seed: int | None = None,
        orders: Sequence[str | Path] | None = None,
        rank: int | None = None,
        world_size: int | None = None,
        drop_last: bool = True,
        fields: Sequence[str] = FIELDS,
        num_workers: int = 0,
        multiprocessing_context: str | None = None,
        pin_memory: bool = False,
        prefetch_factor: int | None = None,
        **options: Any,
    ) -> None:
        distributed = torch.distributed.is_available() and torch.distributed.is_initialized()
        if world_size is None:
            world_size = torch.distributed.get_world_size() if distributed else 1
        if rank is None:
            rank = torch.distributed.get_rank() if distributed else 0
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
        self._sampler = GlobalBatches(
            self._samples.stream,
            batch_size,
            rank=rank,
            world_size=world_size,
            micro_batch_size=micro_batch_size,
            drop_last=drop_last,
        )
        self._workers: dict[str, Any] = {"num_workers": num_workers, "pin_memory": pin_memory}
        if num_workers:
            if multiprocessing_context is None and is_remote(self._samples.stream.recipe.path):
                multiprocessing_context = "spawn"  # clients of object stores do not survive a fork
            self._workers |= {"multiprocessing_context": multiprocessing_context, "prefetch_factor": prefetch_factor}

    def __iter__(self) -> Iterator[dict[str, Any]]:
        sampler = self._sampler
        if sampler.finished:
            sampler.reset()
        # Workers read ahead. So the state follows what comes out, not what was asked of them.
        ahead = (keys for keys, _ in sampler.turns(sampler.consumed))
        batches = DataLoader(self._samples, batch_sampler=_Turns(ahead), collate_fn=collate, **self._workers)  # type: ignore[arg-type,unused-ignore]
        for batch, (_, consumed) in zip(batches, sampler.turns(sampler.consumed), strict=True):
            sampler.consumed = consumed
            yield batch
        sampler.finished = True

    def __len__(self) -> int:
        """Batches that this rank gets in the whole run."""
        return len(self._sampler)

    def __repr__(self) -> str:
        sampler = self._sampler
        place = f"{sampler.consumed} of {len(sampler.stream)} samples consumed, {sampler.left_out} left out"
        return f"<packtool loader: rank {sampler.rank} of {sampler.world_size}, {place}, {sampler.stream.epoch(0)!r}>"

    @property
    def consumed(self) -> int:
        return self._sampler.consumed

    @property
    def left_out(self) -> int:
        return self._sampler.left_out

    def reset(self) -> None:
        """Begin with the first sample again."""
        self._sampler.reset()

    def state_dict(self) -> dict[str, Any]:
        """What a checkpoint must keep. It is the same on every rank."""
        return self._sampler.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on where another run stopped, with any world size, batch size or number of epochs.

        Raises:
            DataError: the state is of a dataset with another number of samples.
        """
        self._sampler.load_state_dict(state)


class _Turns:
    """An iterator as the batch sampler that `DataLoader` wants."""

    def __init__(self, keys: Iterator[Any]) -> None:
        self._keys = keys

    def __iter__(self) -> Iterator[Any]:
        return self._keys
