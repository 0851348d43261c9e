"""A packed dataset through all its epochs, so that one number names an item and the epoch that it is in.

Item k is item ``k % n`` of epoch ``k // n``, n the items of an epoch. Where every epoch is packed anew, epochs may
differ in items, and each begins where the one before it ends.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from packtool.blending.blend import Blend
from packtool.errors import UsageError
from packtool.planning.plan import I64
from packtool.reading.costs import RowCosts
from packtool.reading.dataset import BucketDataset, Dataset, open_recipe
from packtool.reading.raw_batch import RawBatch
from packtool.reading.rows import Rows

BY_WEIGHTS = ", row lengths by weights "
"""In the order of an identity, before the digest of the weights."""


class Source:
    """A packed dataset through all its epochs. An item is a row; of several row lengths, a batch of rows of one.

    It pickles by path. It keeps one epoch open, and a worker process opens its own.

    Args:
        dataset: as it is stored.
        shuffle: each epoch in its own order, as ``packtool shuffle --seed --epoch`` writes it, computed; else every
            epoch in stored order.
        seed: of these orders; None for the one that the dataset was packed or shuffled with.
        repack: the documents are packed again for each epoch; for a dataset without tokens.
        batch_tokens: tokens in a batch of rows of several lengths; None for as many as the dataset's own batches have.
        drop_rest: rows of several lengths that do not fill a batch are in none.
        blend: says by its weights of row lengths when which length comes; None for as drawn.
        cache: directory for what rows cost.

    Raises:
        UsageError: an epoch that is packed anew, in stored order; else as `BucketDataset.epoch`.

    Attributes:
        recipe: with the digest of the dataset's manifest.
        items: in the first epoch, and in every other one that is not packed anew.
        lengths: of rows, in ascending order.
        several: rows have several lengths, so items are batches.
        fields: of a batch by default.
        names: of the token stores that the rows were packed from.
        identity: what a number of an item depends on, by name: items of an epoch; the digest of the dataset; the order,
            which is ``computed``, ``repacked`` or ``stored``; its seed; of several lengths what makes their batches.
    """

    def __init__(
        self,
        dataset: Dataset | BucketDataset,
        *,
        cache: Path,
        shuffle: bool = True,
        seed: int | None = None,
        repack: bool = False,
        batch_tokens: int | None = None,
        drop_rest: bool = False,
        blend: Blend | None = None,
    ) -> None:
        if repack and not shuffle:
            what, remedy = "an epoch that is packed anew has an order of its own", "leave one of the two out"
            raise UsageError("bad-option", what, remedy=remedy, where="repack")
        manifest = dataset.manifest
        self.recipe = dataset.recipe
        self.several = isinstance(dataset, BucketDataset)
        self._shuffle = shuffle
        self._repack = repack
        self._begins = [0]  # of epochs that are packed anew, as far as they are known
        self._costs = RowCosts(self.recipe, manifest.multiple, cache)
        self._wanted: dict[str, Any] = {"seed": seed, "repack": repack}
        if self.several:
            if batch_tokens is None and manifest.shuffle is not None:
                batch_tokens = manifest.shuffle.batch_tokens
            self._wanted |= {"batch_tokens": batch_tokens, "drop_rest": drop_rest, "blend": blend}
        first = self._in_order(dataset, 0)
        self._opened: tuple[int, Dataset | BucketDataset] | None = (0, first)
        self.items = len(first)
        self.lengths = sorted(first.buckets) if isinstance(first, BucketDataset) else [first.sequence_length]
        self.fields = first.fields
        self.names = first.sources
        order = "repacked" if repack else "computed" if shuffle else "stored"
        if blend is not None and self.several:
            order += f"{BY_WEIGHTS}{blend.digest()}"
        drawn = manifest.seed if seed is None else seed
        self.identity: dict[str, int | str | bool | None] = {
            "items": self.items,
            "dataset": self.recipe.digest,
            "order": order,
            "seed": drawn if shuffle else None,
        }
        if self.several:
            self.identity |= {"batch_tokens": batch_tokens, "drop_rest": drop_rest}

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_opened": None}

    @property
    def near(self) -> bool:
        """Whether it lies in a directory of this machine."""
        return self.recipe.place.near

    def epoch(self, number: int) -> Dataset | BucketDataset:
        """Return the dataset in the order of one epoch, from 0.

        Raises:
            DataError: the dataset was overwritten since it was opened first.
        """
        if self._opened is None or self._opened[0] != number:
            self._opened = None  # an order takes memory: let go of the last one before the next is made
            self._opened = number, self._in_order(open_recipe(self.recipe), number)
        return self._opened[1]

    def _in_order(self, dataset: Dataset | BucketDataset, number: int) -> Dataset | BucketDataset:
        """Return a dataset as it is stored in the order of an epoch."""
        if self._shuffle:
            return dataset.epoch(number, **self._wanted)
        if isinstance(dataset, BucketDataset) and dataset.batches is None:
            return dataset.epoch(0, **self._wanted)  # batches were not written, so each epoch has those of the first
        return dataset

    @property
    def columns(self) -> dict[str, list[str] | None]:
        """The columns that were kept of its documents, as of `Dataset`."""
        if self._opened is None:
            return self.epoch(0).columns
        return self._opened[1].columns

    def begin_of(self, epoch: int) -> int:
        """Return the first item of an epoch. Where epochs are packed anew, this plans those before it."""
        if not self._repack:
            return epoch * self.items
        while len(self._begins) <= epoch:
            self._begins.append(self._begins[-1] + len(self.epoch(len(self._begins) - 1)))
        return self._begins[epoch]

    def epochs_of(self, items: I64) -> tuple[I64, I64]:
        """Return the epoch of some items, and which of its items each is."""
        if not self._repack or not len(items):
            epoch, inside = np.divmod(items, self.items)
            return epoch, inside
        while self._begins[-1] <= items.max():
            self.begin_of(len(self._begins))
        epoch = np.searchsorted(self._begins, items, side="right") - 1
        return epoch, items - np.array(self._begins)[epoch]

    def addresses(self, items: I64) -> I64:
        """Return where the rows of some items lie: (rows, 3) of epoch, row length, and row of that length."""
        epoch, inside = self.epochs_of(items)
        if not self.several:
            out = np.empty((len(items), 3), np.int64)
            out[:, 0], out[:, 1], out[:, 2] = epoch, self.lengths[0], inside
            return out
        parts = [np.empty((0, 3), np.int64)]
        for number, item in zip(epoch.tolist(), inside.tolist(), strict=True):
            rows, first, count = self._batches(number).place(item)
            part = np.empty((count, 3), np.int64)
            part[:, 0], part[:, 1], part[:, 2] = number, rows.sequence_length, np.arange(first, first + count)
            parts.append(part)
        return np.concatenate(parts)

    def rows_of(self, item: int) -> int:
        """Count the rows of an item."""
        if not self.several:
            return 1
        epoch, inside = self.epochs_of(np.array([item]))
        _, _, count = self._batches(int(epoch[0])).place(int(inside[0]))
        return count

    def left_out(self, epoch: int) -> int:
        """Count the rows of an epoch that are in no batch, of several lengths."""
        dataset = self._batches(epoch)
        assert dataset.batches is not None
        return sum(map(len, dataset.buckets.values())) - int(dataset.batches["rows"].sum())

    def full_rows(self, length: int) -> int | None:
        """Return the rows of a batch of this length that its bucket fills; None where stored batches do not say."""
        tokens = self._wanted["batch_tokens"]
        return None if tokens is None else tokens // length

    def read(self, epoch: int, length: int, rows: I64, options: Mapping[str, Any]) -> RawBatch:
        """Read rows of one length of an epoch, for a batch with these options of `make_batch`."""
        return self.epoch(epoch).read_of(self._rows(epoch, length), rows, options)

    def pairs(self, epoch: int, length: int, rows: I64) -> I64:
        """Count what rows of one length of an epoch cost in attention, as `RowCosts.of` does."""
        return self._costs.of(self._rows(epoch, length), rows)

    def _batches(self, epoch: int) -> BucketDataset:
        dataset = self.epoch(epoch)
        assert isinstance(dataset, BucketDataset)
        return dataset

    def _rows(self, epoch: int, length: int) -> Rows:
        dataset = self.epoch(epoch)
        return dataset.buckets[length] if isinstance(dataset, BucketDataset) else dataset.rows
