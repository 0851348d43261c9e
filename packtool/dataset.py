"""The trainer's reader: rows and their segments, memory-mapped, with NumPy only.

>>> import packtool
>>> dataset = packtool.open("packed")            # doctest: +SKIP
>>> row = dataset[0]                             # doctest: +SKIP
>>> dataset.segments(0)                          # doctest: +SKIP
array([(0, 0, 812, 0), (1, 0, 212, 0)], dtype=[('document', '<i8'), ('start', '<u4'), ...])
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from packtool.errors import DataError, UsageError
from packtool.plan import I64, Segments, offsets_of
from packtool.storage import manifest as manifests
from packtool.storage.files import open_array
from packtool.storage.manifest import OrderManifest
from packtool.storage.packed import PackedBucket, PackedDataset, to_table
from packtool.writing.layout import Layout, join
from packtool.writing.stored_plan import StoredPlan, stored_plans


class Rows:
    """The rows of one length, in stored order.

    Attributes:
        sequence_length: tokens in a row.
    """

    def __init__(self, bucket: PackedBucket) -> None:
        self._bucket = bucket
        self.sequence_length = bucket.sequence_length

    def __len__(self) -> int:
        return self._bucket.rows

    def __getitem__(self, row: int) -> npt.NDArray[Any]:
        """The tokens of one row: a view of the memory-mapped shard. Negative rows count from the end."""
        row = self._index(row)
        tokens: npt.NDArray[Any] = self._bucket.tokens(row, row + 1)[0]
        return tokens

    def __iter__(self) -> Iterator[npt.NDArray[Any]]:
        for shard in self._bucket.shards:
            yield from shard

    def tokens(self, first: int, last: int) -> npt.NDArray[Any]:
        """Rows ``first:last``, (rows, sequence_length)."""
        return self._bucket.tokens(first, last)

    def segments(self, row: int) -> npt.NDArray[Any]:
        """The pieces of one row, in order; document -1 is padding, -2 an EOS that the strategy inserted."""
        row = self._index(row)
        return to_table(self._bucket.segments(row, row + 1))

    def _index(self, row: int) -> int:
        index = row + len(self) if row < 0 else row
        if not 0 <= index < len(self):
            raise IndexError(f"row {row} of {len(self)}")
        return index


class OrderedRows(Rows):
    """The rows of one length in another order, put together from the stored ones as they are asked for."""

    def __init__(self, plan: StoredPlan, order: I64, pad_id: int) -> None:
        super().__init__(plan.bucket)
        self._plan = plan
        self._layout = Layout(plan, order)
        self._pad_id = pad_id

    def __getitem__(self, row: int) -> npt.NDArray[Any]:
        row = self._index(row)
        tokens: npt.NDArray[Any] = self.tokens(row, row + 1)[0]
        return tokens

    def __iter__(self) -> Iterator[npt.NDArray[Any]]:
        return (self[row] for row in range(len(self)))

    def tokens(self, first: int, last: int) -> npt.NDArray[Any]:
        unit = self._plan.unit
        out = np.full((last - first, self.sequence_length), self._pad_id, self._bucket.dtype)
        places = out.reshape(-1, unit)
        for place, number in enumerate(self._units(first, last)):
            row, part = divmod(int(number) * unit, self.sequence_length)
            places[place] = self._bucket.tokens(row, row + 1)[0, part : part + unit]
        return out

    def segments(self, row: int) -> npt.NDArray[Any]:
        row = self._index(row)
        pieces = [self._plan.stretch(int(number), int(number) + 1) for number in self._units(row, row + 1)]
        units = Segments(
            document=np.concatenate([piece.document for piece in pieces]),
            start=np.concatenate([piece.start for piece in pieces]),
            length=np.concatenate([piece.length for piece in pieces]),
            repeated=np.concatenate([piece.repeated for piece in pieces]),
            offsets=offsets_of(np.array([len(piece) for piece in pieces])),
        )
        return to_table(join(units, self._plan.unit, self.sequence_length))

    def _units(self, first: int, last: int) -> I64:
        per_row = self.sequence_length // self._plan.unit
        return self._layout.units(first * per_row, min(last * per_row, self._plan.units))


class Dataset:
    """A packed dataset of one sequence length: a sequence of rows.

    Attributes:
        rows: of the dataset.
        sequence_length: tokens in a row.
        manifest: everything the manifest says.
        pad_id, eos_id: token ids.
    """

    def __init__(self, packed: PackedDataset, rows: list[Rows]) -> None:
        (self.rows,) = rows
        self.sequence_length = self.rows.sequence_length
        self.manifest = packed.manifest
        self.pad_id = packed.manifest.pad_id
        self.eos_id = packed.manifest.tokenizer.eos_id

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, row: int) -> npt.NDArray[Any]:
        """The tokens of one row; a view of the memory-mapped shard where possible. Negative rows count from the end."""
        return self.rows[row]

    def __iter__(self) -> Iterator[npt.NDArray[Any]]:
        return iter(self.rows)

    def segments(self, row: int) -> npt.NDArray[Any]:
        """The pieces of one row, in order; document -1 is padding, -2 an EOS that the strategy inserted."""
        return self.rows.segments(row)


class BucketDataset:
    """A packed dataset of several sequence lengths.

    Attributes:
        buckets: maps each length to its rows.
        batches: the batches of the ``bucket`` shuffle, in order: an array of (bucket, first_row, rows), where bucket
            is the sequence length; None if it was not shuffled so.
        manifest: everything the manifest says.
        pad_id, eos_id: token ids.
    """

    def __init__(self, packed: PackedDataset, rows: list[Rows], batches: npt.NDArray[Any] | None) -> None:
        self.buckets = {each.sequence_length: each for each in rows}
        self.batches = batches
        self.manifest = packed.manifest
        self.pad_id = packed.manifest.pad_id
        self.eos_id = packed.manifest.tokenizer.eos_id

    def batch(self, number: int) -> npt.NDArray[Any]:
        """The tokens of one batch, (rows, sequence length of its bucket).

        Raises:
            UsageError: the dataset has no batches.
        """
        if self.batches is None:
            raise UsageError(
                "no-batches",
                "the dataset has no batches",
                remedy="make them with packtool shuffle --method bucket --batch-tokens N",
            )
        bucket, first, rows = self.batches[number].tolist()
        return self.buckets[bucket].tokens(first, first + rows)


def open(path: str | Path, *, order: str | Path | None = None) -> Dataset | BucketDataset:
    """Open a packed dataset for reading.

    Args:
        order: what ``packtool shuffle --order-only`` wrote for this dataset; rows and batches then follow it.

    Raises:
        DataError: it is missing, unfinished or damaged; the order was made for another dataset.
        UsageError: it is a token store; the order is none.
    """
    packed = PackedDataset(path)
    rows: list[Rows] = [Rows(bucket) for bucket in packed.buckets]
    where, batches = packed.path, packed.manifest.batches
    if order is not None:
        where = Path(order)
        manifest, orders = read_order(where, packed)
        batches = manifest.batches
        rows = [OrderedRows(plan, each, packed.manifest.pad_id) for plan, each in orders]
    if len(rows) == 1 and not packed.manifest.buckets[0].directory:
        return Dataset(packed, rows)
    return BucketDataset(packed, rows, None if batches is None else open_array(where, batches))


def read_order(path: Path, base: PackedDataset) -> tuple[OrderManifest, list[tuple[StoredPlan, I64]]]:
    """What ``packtool shuffle --order-only`` wrote: its manifest, and the plan and order of each bucket of the base."""
    manifest = _order_of(path, base)
    plans = stored_plans(base, manifest.shuffle.atom_size)
    orders = [open_array(path, entry) for entry in manifest.orders]
    return manifest, list(zip(plans, orders, strict=True))


def _order_of(path: Path, base: PackedDataset) -> OrderManifest:
    manifest = manifests.read(path)
    if not isinstance(manifest, OrderManifest):
        raise UsageError(
            "not-an-order",
            f"{manifests.called(manifest)}, where an order is needed",
            remedy="give what packtool shuffle --order-only wrote",
            where=str(path),
        )
    if manifest.base.xxh3_128 != manifests.input_entry(base.path).xxh3_128:
        raise DataError(
            "order-differs",
            f"made for {manifest.base.name}, which is not what lies at {base.path}",
            remedy="open it with the dataset it was made for, or make it again",
            where=str(path),
        )
    return manifest
