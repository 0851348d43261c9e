"""A packed dataset through all its epochs, whose items are numbered from the first epoch on, without end.

Item k is item ``k % n`` of epoch ``k // n`` if an epoch has n items. Epochs that are packed anew may differ in their
number of items; then an epoch begins where the one before it ends.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from packtool.errors import UsageError
from packtool.formats.schema import PackedManifest
from packtool.planning.plan import I64
from packtool.reading.costs import RowCosts
from packtool.reading.dataset import BucketDataset, Dataset, open_recipe
from packtool.reading.raw_batch import RawBatch
from packtool.reading.recipe import EpochOptions, count_items

BY_WEIGHTS = ", row lengths by weights "
"""Text in the `order` of an identity, before the digest of the weights."""


class Source:
    """A packed dataset through all its epochs. An item is a row, or a batch of rows of one length if there are several.

    It is pickled without its open epoch: a worker process opens the dataset again, by its path.

    Args:
        dataset: as it is stored.
        options: of the orders of its epochs.
        shuffle: compute for each epoch the order that ``packtool shuffle --seed --epoch`` would write; else read every
            epoch in stored order.
        cache: directory for the costs of rows.

    Raises:
        UsageError: `repack` without `shuffle`; and as `BucketDataset.epoch`.

    Attributes:
        recipe: of the dataset, with the digest of its manifest.
        items: number of items in the first epoch, and in every epoch that is not packed anew.
        lengths: row lengths, ascending.
        bucketed: whether rows have several lengths, so that items are batches.
        fields: default fields of a batch.
        names: of the token stores that the rows were packed from.
        identity: everything that decides which rows item k has, by name: items of an epoch; digest of the dataset; the
            order, ``computed``, ``repacked`` or ``stored``; its seed; for several lengths the options of batches.
    """

    def __init__(self, dataset: Dataset | BucketDataset, options: EpochOptions, *, cache: Path, shuffle: bool) -> None:
        if options.repack and not shuffle:
            what, remedy = "an epoch that is packed anew has an order of its own", "leave one of the two out"
            raise UsageError("bad-option", what, remedy=remedy, where="repack")
        manifest = dataset.manifest
        self.recipe = dataset.recipe
        self.bucketed = isinstance(dataset, BucketDataset)
        self._shuffle = shuffle
        self._options = options.of(manifest)
        self._begins = [0]  # first items of epochs that are packed anew, as far as they have been counted
        self._costs = RowCosts(self.recipe, manifest.multiple, cache)
        first = self._open_epoch(dataset, 0)
        self._first = first.recipe.epoch  # the order of the first epoch; None if epochs are read as stored
        self._opened: tuple[int, Dataset | BucketDataset] | None = (0, first)
        self.items = len(first)
        self.lengths = sorted(first.buckets)
        self.fields = first.fields
        self.names = first.sources
        order = "stored"
        if options.repack:
            order = "repacked"
        elif shuffle:
            order = "computed"
        if options.blend is not None and self.bucketed:
            order += f"{BY_WEIGHTS}{options.blend.digest()}"
        self.identity: dict[str, int | str | bool | None] = {
            "items": self.items,
            "dataset": self.recipe.digest,
            "order": order,
            "seed": self._options.seed if shuffle else None,
        }
        if self.bucketed:
            self.identity |= {"batch_tokens": self._options.batch_tokens, "drop_rest": options.drop_rest}

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_opened": None}

    @property
    def is_local(self) -> bool:
        """Whether the dataset lies in a directory of this machine."""
        return self.recipe.place.is_local

    def epoch(self, number: int) -> Dataset | BucketDataset:
        """Return the dataset in the order of one epoch, from 0.

        Raises:
            DataError: the dataset was overwritten since it was opened first.
        """
        if self._opened is None or self._opened[0] != number:
            self._opened = None  # the order of an epoch takes memory: free it before the next one is made
            self._opened = number, self._open_epoch(open_recipe(self.recipe), number)
        return self._opened[1]

    def _open_epoch(self, dataset: Dataset | BucketDataset, number: int) -> Dataset | BucketDataset:
        """Return a dataset in the order of an epoch, given the dataset in stored order."""
        if self._shuffle:
            return dataset.in_epoch(number, self._options)
        if isinstance(dataset, BucketDataset) and dataset.batches is None:
            # Stored order needs batches, and none were written: so every epoch has the batches of the first.
            return dataset.in_epoch(0, self._options)
        return dataset

    @property
    def columns(self) -> dict[str, list[str] | None]:
        """The kept columns of documents, as `Dataset.columns`."""
        return self._any_epoch().columns

    @property
    def manifest(self) -> PackedManifest:
        """The manifest of the dataset."""
        return self._any_epoch().manifest

    def _any_epoch(self) -> Dataset | BucketDataset:
        """Return the epoch that is open, which stays open, where all have the same."""
        if self._opened is None:
            return self.epoch(0)
        return self._opened[1]

    def begin_of(self, epoch: int) -> int:
        """Return the first item of an epoch. If epochs are packed anew, this counts the items of all before it."""
        if not self._options.repack:
            return epoch * self.items
        while len(self._begins) <= epoch:
            last = len(self._begins) - 1
            self._begins.append(self._begins[last] + self._count(last))
        return self._begins[epoch]

    def _count(self, number: int) -> int:
        """Count the items of an epoch that is packed anew; the epoch that is open stays open."""
        if number == 0:
            return self.items
        assert self._first is not None
        return count_items(replace(self.recipe, epoch=replace(self._first, number=number)))

    def epochs_of(self, items: I64) -> tuple[I64, I64]:
        """Return the epochs of some items, and the numbers of the items in their epochs."""
        # Without items there is no largest one, up to which epochs would be counted below.
        if not self._options.repack or not len(items):
            epoch, inside = np.divmod(items, self.items)
            return epoch, inside
        while self._begins[-1] <= items.max():
            self.begin_of(len(self._begins))
        # "right": the item with which an epoch begins is of this epoch, not of the one before.
        epoch = np.searchsorted(self._begins, items, side="right") - 1
        return epoch, items - np.array(self._begins)[epoch]

    def addresses(self, items: I64) -> I64:
        """Return the places of the rows of some items: (rows, 3), epoch, row length, and row of that length."""
        epoch, inside = self.epochs_of(items)
        if not self.bucketed:
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
        if not self.bucketed:
            return 1
        epoch, inside = self.epochs_of(np.array([item]))
        _, _, count = self._batches(int(epoch[0])).place(int(inside[0]))
        return count

    def left_out(self, epoch: int) -> int:
        """Count the rows of an epoch that are in no batch, for rows of several lengths."""
        dataset = self._batches(epoch)
        assert dataset.batches is not None
        return sum(map(len, dataset.buckets.values())) - int(dataset.batches["rows"].sum())

    def full_rows(self, length: int) -> int | None:
        """Return the rows of a full batch of this row length; None if the size of stored batches is unknown."""
        tokens = self._options.batch_tokens
        if tokens is None:
            return None
        return int(tokens // length)

    def read(self, epoch: int, length: int, rows: I64, options: Mapping[str, Any]) -> RawBatch:
        """Read rows of one length in an epoch, for a batch with these options of `make_batch`."""
        dataset = self.epoch(epoch)
        return dataset.read_of(dataset.buckets[length], rows, options)

    def pairs(self, epoch: int, length: int, rows: I64) -> I64:
        """Count the query-key pairs of rows of one length in an epoch, as `RowCosts.of` does."""
        return self._costs.of(self.epoch(epoch).buckets[length], rows)

    def _batches(self, epoch: int) -> BucketDataset:
        """Return an epoch of a dataset with rows of several lengths."""
        dataset = self.epoch(epoch)
        assert isinstance(dataset, BucketDataset)
        return dataset
