"""Load batches of tensors for this rank, in parallel, with a state that resumes anywhere.

A worker reads a batch as a whole. PyTorch would send every tensor of it through shared memory of its own, which takes a
handshake between the two processes, and costs more than making small tensors. So a worker sends stored tokens and the
segments of their rows through the pipe, as one message. They become tensors where they are unpacked: in the training
process, or in its thread that pins memory.

Without workers several batches are read at once, about a million tokens, and become tensors one by one: the overhead of
a read is larger than the time for a few rows, all the more in a blend, whose sources are read one by one.
"""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain, tee
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np
import torch
import torch.distributed
from torch.utils.data import DataLoader, Dataset, IterableDataset, get_worker_info

from packtool.blending.blend import Blend
from packtool.errors import PacktoolError, UsageError
from packtool.reading.batch import IGNORED, check_options, make_batch
from packtool.reading.batches import GlobalBatches
from packtool.reading.column_fields import Names
from packtool.reading.raw_batch import RawBatch
from packtool.reading.sharing import MicroBatch
from packtool.reading.stream import LENGTH, Stream
from packtool.torch.labels import KINDS, TensorBatch
from packtool.torch.launched import rank_and_world_size, require_known
from packtool.torch.mesh import data_rank

if TYPE_CHECKING:
    from torch.distributed.device_mesh import DeviceMesh

GLOBAL_TARGETS = "global_targets"
"""The field of a batch that counts the targets of all ranks and micro-batches."""
_FREED_ONCE = 31 << 20  # bytes; of pieces of 32 MiB and more the GNU C library learns nothing


class Loader:
    """An iterable of batches of tensors, which can stop at any batch and go on, on any number of ranks.

    A loop is a pass over `epochs` epochs, each in an order of its own. A loop has the rest of the pass if a batch is
    left, in this run or in the run whose state was loaded; otherwise it has the next pass, or the pass that
    `set_epoch` named.

    Args:
        source: path or URL of a packed dataset; or a blend: a TOML file or a `packtool.Blend`, which has the length of
            the run, and the epochs, orders and seed of every source.
        batch_size: rows in a global batch, over all ranks; by default as many as make `batch_tokens`, or one. Not for
            datasets of several lengths.
        batch_tokens: tokens in a global batch; for a dataset of several lengths by default as in its stored batches.
        micro_batch_size: rows that a rank gets at a time; by default its whole share of a global batch.
        epochs: how often every row comes in a pass.
        shuffle: each epoch in its own order, computed; else in stored order.
        seed: of these orders; by default the seed that the dataset was packed or shuffled with.
        rank, world_size: of this process; by default as in `torch.distributed` when a loop begins, or, if that is not
            initialised, the variables RANK and WORLD_SIZE, which torchrun sets. A loop in one of several processes of
            srun or mpirun that has neither is refused.
        mesh: in place of rank and world_size, the device mesh that the model lies on: ranks that hold one model
            together get the same rows, as of `packtool.torch.mesh.data_rank`.
        drop_last: leave out rows that fill no global batch; `left_out` counts them. Otherwise the last global batch is
            smaller, and may be empty on some ranks.
        fill: if ranks can't share the last global batch equally, give all ranks the same number of rows: some ranks
            get its first row again, with labels that are all −100. So sum losses and targets: a mean over such a row
            alone is no number.
        balance: ``step`` or ``turn``: deal the rows of a global batch so that ranks attend equally long, as of
            `GlobalBatches`.
        fields: of a batch; None for the default fields of `Dataset.batch`, and in a blend `source`. With
            ``labels="same"`` the default has no `source`, since models of Transformers take the fields as keywords and
            have another use for the name: name `source` among fields, and take it out of the batch. The field
            `global_targets` is the number of targets in the global batch, over all ranks and micro-batches. Divide the
            sum of losses by this number: the gradient is that of the whole batch, however the batch is split. To count
            targets, each rank reads all rows of the global batch.
        num_workers, multiprocessing_context, pin_memory, prefetch_factor: of PyTorch's `DataLoader`. Workers that
            read a URL are spawned by default.
        options: of `packtool.reading.make_batch`; `cache`, `cache_bytes` and `fetch`, as in `packtool.open`.

    Attributes:
        consumed: number of samples before the next global batch, in all passes. A global batch counts when its last
            micro-batch is handed out, whatever workers read ahead.
        rows: number of samples that each source of a blend has given so far, by name; for a dataset all samples, by "".
        left_out: number of rows of a pass, of every length, that fill no global batch.
        labels: the kind of labels of its batches, ``next`` or ``same``; their type shows it, too.
        counts_targets: batches have the field `global_targets`.
        sources: names of the sources of a blend, or of the token stores that a dataset was packed from; `source` in a
            batch is a place in this list.
        columns: kept columns of documents by name (`pack --keep`), which `fields` may ask for as `column.NAME`: for a
            column of categories the list of names; None for numbers.
        sampler, batch_sampler: the `GlobalBatches`, by the names that trainers look for to set the epoch.
    """

    def __init__(
        self,
        source: str | Path | Blend,
        *,
        batch_size: int | None = None,
        batch_tokens: int | None = None,
        micro_batch_size: int | None = None,
        epochs: int = 1,
        shuffle: bool = True,
        seed: int | None = None,
        rank: int | None = None,
        world_size: int | None = None,
        mesh: DeviceMesh | None = None,
        drop_last: bool = True,
        fill: bool = False,
        balance: Literal["step", "turn"] | None = None,
        fields: Sequence[str] | None = None,
        num_workers: int = 0,
        multiprocessing_context: str | None = None,
        pin_memory: bool = False,
        prefetch_factor: int | None = None,
        **options: Any,
    ) -> None:
        if num_workers < 0:
            remedy = "give 0 or more"
            raise UsageError("bad-option", f"{num_workers} is out of range", remedy=remedy, where="num_workers")
        if "steps" in options:
            what, remedy = "a loader has epochs, not steps", "leave the loop after as many, or give epochs"
            raise UsageError("bad-option", what, remedy=remedy, where="steps")
        check_options(options, Loader, Stream, make_batch)
        if mesh is not None:
            if rank is not None or world_size is not None:
                what, remedy = "a mesh says rank and world_size", "leave out the mesh, or these two"
                raise UsageError("bad-option", what, remedy=remedy, where="mesh")
            rank, world_size = data_rank(mesh)
        if fill and drop_last:
            what, remedy = "has no effect with drop_last: ranks have equally many rows", "give drop_last=False with it"
            raise UsageError("bad-option", what, remedy=remedy, where="fill")
        self._rank, self._world_size = rank, world_size
        self.counts_targets = fields is not None and GLOBAL_TARGETS in fields
        if self.counts_targets:
            fields = [name for name in fields or () if name != GLOBAL_TARGETS]
        self._samples = Samples(
            source,
            fields=fields,
            epochs=epochs,
            shuffle=shuffle,
            seed=seed,
            batch_tokens=batch_tokens,
            drop_rest=drop_last,
            **options,
        )
        self.sampler = self.batch_sampler = GlobalBatches(
            self._samples,
            batch_size,
            micro_batch_size=micro_batch_size,
            drop_last=drop_last,
            balance=balance,
            fill=fill,
        )
        self._settle()
        self._workers: dict[str, Any] = {"num_workers": num_workers, "pin_memory": pin_memory}
        if num_workers:
            if multiprocessing_context is None and not self._samples.is_local:
                multiprocessing_context = "spawn"  # clients of object stores do not survive a fork
            self._workers |= {"multiprocessing_context": multiprocessing_context, "prefetch_factor": prefetch_factor}

    def __iter__(self) -> Iterator[TensorBatch]:
        self._settle_for_good()
        _keep_memory()
        # Workers read ahead, so the state follows the batches that come out, not the batches that workers begin.
        position = self.sampler.position
        returned, sent = tee(self.sampler.begin())
        generation = position.generation
        if self._workers["num_workers"]:
            alone: Any = (micro_batch for (micro_batch,) in self.sampler.grouped(sent, 0))
            sending = _SendingErrors(self._samples)
            batches = DataLoader(sending, batch_sampler=alone, collate_fn=collate, **self._workers)
        else:
            read = _ReadAhead(self._samples, self.sampler.grouped(sent, self._samples.rows_ahead))
            batches = DataLoader(read, batch_size=None, collate_fn=collate, **self._workers)
        targets = counted = 0  # of the global batch that ends before this sample
        for batch, micro_batch in zip(batches, returned, strict=True):
            position.require_unmoved(generation)
            if isinstance(batch, PacktoolError):
                raise batch
            if micro_batch.filled:
                ignore_last(batch, micro_batch.filled)
            if self.counts_targets:
                # Only the first of a global batch differs, which counts as consumed with its last micro-batch.
                if micro_batch.ahead != counted:
                    counted = micro_batch.ahead
                    targets = self._targets(position.samples, counted)
                batch[GLOBAL_TARGETS] = targets
            position.advance(micro_batch.consumed)
            yield batch

    def __len__(self) -> int:
        """Count the batches that this rank gets in a pass."""
        self._settle_for_good()
        return len(self.sampler)

    def __repr__(self) -> str:
        sampler = self.sampler
        passed = sampler.consumed - sampler.position.whole[0]
        place = f"{passed} of {len(sampler.stream)} samples consumed, {sampler.left_out} left out"
        rank = f"rank {sampler.sharing.rank} of {sampler.sharing.world_size}"
        return f"<packtool loader: {rank}, {place}, labels {self.labels!r}, {sampler.stream!r}>"

    @property
    def consumed(self) -> int:
        return self.sampler.consumed

    @property
    def rows(self) -> dict[str, int]:
        return self.sampler.rows

    @property
    def left_out(self) -> int:
        return self.sampler.left_out

    @property
    def remaining(self) -> int:
        """Batches that this rank has yet to get in this pass."""
        self._settle_for_good()
        return self.sampler.remaining

    @property
    def labels(self) -> Literal["next", "same"]:
        return cast("Literal['next', 'same']", self.sampler.stream.options.get("labels", "next"))

    @property
    def dataset(self) -> Any:
        """None, to trainers that would skip batches of a dataset to resume: a loader goes on from its own state."""
        what = "a Loader has no dataset whose batches could be skipped: it goes on from its own state"
        raise AttributeError(f"{what}; with Transformers, set ignore_data_skip=True in TrainingArguments")

    @property
    def sources(self) -> list[str]:
        return list(self.sampler.stream.names)

    @property
    def columns(self) -> dict[str, Names]:
        return self.sampler.stream.columns

    def reweight(self, weights: Mapping[str, float], ramp_rows: int = 0) -> int:
        """Change the weights of a blend's sources while training, from the next block of 4,096 rows on.

        The weights apply until the next stage of the blend begins, and are in the state. Call `reweight` on every rank
        at the same step. Batches that workers have read ahead stay as they are, so all ranks need as many workers.

        Args:
            weights: by source; a source that is not named gets no rows.
            ramp_rows: number of rows over which weights change in a straight line; 0 to change them at once.

        Returns:
            The first row of the run to which the weights apply.

        Raises:
            UsageError: not a blend; no such source; more rows would be needed than there are; the run ends before.
        """
        return self.sampler.reweight(weights, ramp_rows)

    def reset(self) -> None:
        """Begin with the first sample again."""
        self.sampler.position.reset()

    def set_epoch(self, number: int) -> None:
        """Have the pass of this number, from 0, in the next loop: from its start, or from a loaded state inside it.

        If nothing is left of the pass of a loaded state, the loop is empty. A trainer that counts epochs calls it
        before each epoch, and a run of one pass calls ``set_epoch(0)`` after it has loaded a state.

        Raises:
            UsageError: the loaded state lies in the middle of another pass, so the run would train other samples than
                its user expects.
        """
        self.sampler.position.set_epoch(number)

    def skip(self, samples: int) -> None:
        """Skip the next samples, as after a spike of the loss. Call it on every rank; the state includes it.

        Raises:
            UsageError: the run of a blend has fewer samples left.
        """
        self.sampler.position.skip(samples)

    def _targets(self, first: int, last: int) -> int:
        """Count the targets of a global batch, the samples ``first:last``.

        All of its rows are read here, though other ranks train on most of them. Adding up the counts of ranks instead
        would take a message among them for every batch, which a loader must not send: some ranks read ahead, or stop.
        """
        options = {**self._samples.options, "fields": ("loss_mask",)}
        read = self._samples.read(self._samples.addresses(first, last), options)
        return int(np.count_nonzero(read.batch(**options)["loss_mask"]))

    def _settle(self) -> None:
        """Take the rank that this process has by now, if no rank was given: a loader may be made before it is known."""
        rank, world_size = rank_and_world_size()
        if self._rank is not None:
            rank = self._rank
        if self._world_size is not None:
            world_size = self._world_size
        self.sampler.settle(rank, world_size)

    def _settle_for_good(self) -> None:
        """Take the rank that this process has, before anything is said or read that depends on it."""
        if self._rank is None or self._world_size is None:
            require_known()
        self._settle()

    def state_dict(self) -> dict[str, Any]:
        """Return the state for a checkpoint: one text, by the key "packtool". It is the same on every rank."""
        return self.sampler.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue where another run stopped, with any world size, batch size or number of epochs.

        The future of a blend may have changed: its weights, stages, length and sources.

        Raises:
            DataError: not a state; a state of another dataset, order or seed, or of a blend with another past. The
                place stays as it is.
        """
        self.sampler.load_state_dict(state)


def _keep_memory() -> None:
    """Let the C library keep the memory of dropped batches for the next batches.

    It returns free memory to the system beyond twice the largest piece that it has ever freed, and getting it back page
    by page takes longer than making a batch. So a large piece is freed once, to which nothing was written.
    """
    np.empty(_FREED_ONCE, np.uint8)


class Samples(Stream):
    """The samples of all epochs, for PyTorch's `DataLoader` with `GlobalBatches` and `collate`.

    A worker makes whole batches from the memory-mapped shards. Workers of any start method receive the path, not the
    tokens.

    Args:
        source: as in `Loader`.
        fields: of a batch; None for the default fields of `Dataset.batch`, and in a blend `source`.
        options: as in `packtool.reading.stream.Stream`.
    """

    def __init__(self, source: str | Path | Blend, *, fields: Sequence[str] | None = None, **options: Any) -> None:
        if fields is not None:
            options["fields"] = tuple(fields)
        super().__init__(source, **options)
        self._watched = False

    def __getitem__(self, number: int) -> Mapping[str, Any]:
        """Return one sample: a batch of one row, or, if samples are batches, of all its rows."""
        addresses = self.addresses(number, number + 1)
        return self.__getitems__(MicroBatch(addresses, int(addresses[0, LENGTH]), number + 1, number + 1))

    def __getitems__(self, micro_batch: MicroBatch) -> Mapping[str, Any]:
        """Return the batch of a micro-batch of `GlobalBatches`; in a worker, in the form in which it is sent."""
        read = self.read(micro_batch.addresses, length=micro_batch.length)
        if get_worker_info() is None:
            return tensors(read, self.options)
        if not self._watched:
            end_with_parent()
            self._watched = True
        return Parcel(read, self.options)


class _SendingErrors(Dataset[Any]):  # type: ignore[misc,unused-ignore]
    """Samples in a worker, which sends an error of packtool in place of a batch.

    PyTorch makes an error of the text of a traceback, by an `__init__` with one argument, so it would be another error.
    """

    def __init__(self, samples: Samples) -> None:
        self._samples = samples

    def __getitems__(self, micro_batch: MicroBatch) -> Mapping[str, Any] | PacktoolError:
        try:
            return self._samples.__getitems__(micro_batch)
        except PacktoolError as error:
            return error


class _ReadAhead(IterableDataset[TensorBatch]):  # type: ignore[misc,unused-ignore]
    """Batches that are made in this process, several of which are read at once.

    Args:
        stream: their samples.
        groups: lists of micro-batches that are read at once.
    """

    def __init__(self, stream: Stream, groups: Iterable[Sequence[MicroBatch]]) -> None:
        self._stream = stream
        self._groups = groups

    def __iter__(self) -> Iterator[TensorBatch]:
        return chain.from_iterable(map(self._batches, self._groups))

    def _batches(self, group: Sequence[MicroBatch]) -> Iterator[TensorBatch]:
        addresses = np.concatenate([micro_batch.addresses for micro_batch in group])
        read = self._stream.read(addresses, length=group[0].length)
        for part in read.split([len(micro_batch.addresses) for micro_batch in group]):
            yield tensors(part, self._stream.options)


def collate(batch: Any) -> Any:
    """Return the batch that `Samples` made."""
    if isinstance(batch, list) and len(batch) == 1:
        return batch[0]
    return batch


class Parcel(Mapping[str, Any]):
    """A batch in a worker: a mapping of fields to tensors, which are made where it is unpacked.

    Args:
        read: rows that the batch is made of.
        options: of `packtool.reading.make_batch`.
    """

    def __init__(self, read: RawBatch, options: Mapping[str, Any]) -> None:
        self._read = read
        self._options = options

    @cached_property
    def _made(self) -> TensorBatch:
        return tensors(self._read, self._options)

    def __getitem__(self, name: str) -> Any:
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._made)

    def __len__(self) -> int:
        return len(self._made)

    def __reduce__(self) -> tuple[Callable[..., TensorBatch], tuple[Any, ...]]:
        return tensors, (self._read, self._options)


def end_with_parent() -> None:
    """End this worker within a second or two of the training process, however that ended.

    PyTorch's own watchdog lets a worker return, but a worker waits for what it has sent to be read. Nobody reads a
    batch in a pipe whose other end is gone, or is kept open by other workers.
    """
    parent, number = multiprocessing.parent_process(), os.getppid()

    def wait() -> None:
        while parent is not None and parent.is_alive() and os.getppid() == number:
            parent.join(1)
        os._exit(1)

    if parent is not None:
        threading.Thread(target=wait, name="end with parent", daemon=True).start()


def ignore_last(batch: Mapping[str, Any], rows: int) -> None:
    """Remove the targets of the last `rows` rows of a batch, in place: these rows only fill its shape."""
    if "labels" in batch:
        batch["labels"][-rows:] = IGNORED
    if "loss_mask" in batch:
        batch["loss_mask"][-rows:] = 0


def tensors(read: RawBatch, options: Mapping[str, Any]) -> TensorBatch:
    """Return a batch of tensors, of the type of its labels; `options` as in `packtool.reading.make_batch`."""
    fields: dict[str, Any] = dict(read.batch(**options))
    for name, value in fields.items():
        if isinstance(value, np.ndarray):
            fields[name] = torch.from_numpy(value)
    kind = KINDS[options.get("labels", "next")]
    return kind(fields)
