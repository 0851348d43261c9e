"""The rows of a dataset as they are opened: stored, by an order file, or in the order of an epoch that is computed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from packtool.errors import UsageError
from packtool.plan import I64
from packtool.reading.cache import CACHE_BYTES, Cache, cache_of, directory_of
from packtool.reading.rows import ReorderedRows, RotatedRows, RowPlan, Rows
from packtool.reading.shards import Files, StoredRows
from packtool.shuffling.atom import atom_shuffles
from packtool.shuffling.bucket import batches
from packtool.shuffling.partial import rotations
from packtool.storage import manifest as manifests
from packtool.storage.manifest import PackedManifest
from packtool.storage.order import read_batches, read_order, require_orders
from packtool.writing.rotated_plan import RotatedPlan, lane_of, require_rotation


@dataclass(frozen=True)
class Epoch:
    """An order that is computed, as ``packtool shuffle`` would.

    Attributes:
        number, seed: of the order.
        batch_tokens: tokens in a batch, for a dataset of several lengths; None for the others.
        drop_rest: rows that do not fill a batch are in none.
    """

    number: int
    seed: int
    batch_tokens: int | None = None
    drop_rest: bool = False


@dataclass(frozen=True)
class Recipe:
    """What opens a dataset, here or in another process.

    Attributes:
        path: absolute, or a URL.
        order: directory or URL of an order; None for none.
        dtype: of the tokens that are handed out; None as stored.
        epoch: an order to compute; None for none.
        cache: for what lies at a URL.
    """

    path: str
    order: str | None = None
    dtype: str | None = None
    epoch: Epoch | None = None
    cache: Cache = field(default_factory=lambda: cache_of(None, CACHE_BYTES))


@dataclass(frozen=True)
class Opened:
    """The rows of each length, and the batches of a dataset of several lengths, if it has any."""

    manifest: PackedManifest
    rows: list[Rows]
    batches: npt.NDArray[Any] | None


def read(recipe: Recipe) -> Opened:
    """Open what a recipe says.

    Raises:
        DataError: it is missing, unfinished or damaged; the order was made for another dataset.
        UsageError: not a packed dataset; not an order; the epoch can't be computed.
    """
    path = directory_of(recipe.path, recipe.cache)
    manifest = manifests.read(path)
    if not isinstance(manifest, PackedManifest):
        raise UsageError(
            "not-packed",
            f"{manifests.describe(manifest)}, where a packed dataset is needed",
            remedy="give what packtool pack or packtool shuffle wrote",
            where=recipe.path,
        )
    files, stored_dtype = Files(path), np.dtype(manifest.dtype)
    stored = [StoredRows(files, bucket, stored_dtype) for bucket in manifest.buckets]
    dtype = None if recipe.dtype is None else np.dtype(recipe.dtype)
    if recipe.order is not None:
        directory = directory_of(recipe.order, recipe.cache)
        order, orders = read_order(directory, path)
        if order.shuffle.method == "partial":
            require_rotation(orders[0], order.shuffle, manifest, recipe.order)
            return Opened(manifest, [_rotated(stored[0], manifest, orders[0], dtype)], None)
        plans = _plans(stored, manifest, order.shuffle.atom_size)
        require_orders(directory, order, orders, plans)
        table = None if order.batches is None else read_batches(directory, order.batches, manifest.buckets)
        return Opened(manifest, _ordered(plans, orders, manifest, dtype), table)
    if recipe.epoch is not None:
        table = None if single(manifest) else _batches(stored, recipe.epoch)
        if _lies_so(manifest, recipe.epoch):
            return Opened(manifest, [Rows(each, dtype) for each in stored], table)
        if manifest.shuffle is not None and manifest.shuffle.method == "partial":
            lanes = manifest.shuffle.batch_size or 1
            drawn = rotations(lanes, lane_of(manifest), seed=recipe.epoch.seed, epoch=recipe.epoch.number)
            return Opened(manifest, [_rotated(stored[0], manifest, drawn, dtype)], None)
        plans = _plans(stored, manifest, None)
        return Opened(manifest, _ordered(plans, _computed(plans, manifest, recipe), manifest, dtype), table)
    table = None if manifest.batches is None else read_batches(path, manifest.batches, manifest.buckets)
    return Opened(manifest, [Rows(each, dtype) for each in stored], table)


def single(manifest: PackedManifest) -> bool:
    """Whether all rows have one length."""
    return len(manifest.buckets) == 1 and not manifest.buckets[0].directory


def _plans(stored: Sequence[StoredRows], manifest: PackedManifest, atom_size: int | None) -> list[RowPlan]:
    if atom_size is None or not single(manifest):
        return [RowPlan(each) for each in stored]
    if atom_size == manifest.options.get("atom_size", stored[0].sequence_length):
        return [RowPlan(each) for each in stored]
    return [RowPlan(each, atom_size, manifest.ledger.output - manifest.ledger.padding) for each in stored]


def _ordered(
    plans: Sequence[RowPlan], orders: Sequence[I64], manifest: PackedManifest, dtype: np.dtype[Any] | None
) -> list[Rows]:
    return [ReorderedRows(plan, order, manifest.pad_id, dtype) for plan, order in zip(plans, orders, strict=True)]


def _rotated(stored: StoredRows, manifest: PackedManifest, rotation: I64, dtype: np.dtype[Any] | None) -> Rows:
    return RotatedRows(stored, RotatedPlan(RowPlan(stored), manifest, rotation), manifest.pad_id, dtype)


def _computed(plans: Sequence[RowPlan], manifest: PackedManifest, recipe: Recipe) -> list[I64]:
    """The order of an epoch for each bucket, over rows that may be shuffled already."""
    assert recipe.epoch is not None
    before = manifest.shuffle
    wanted = atom_shuffles(plans, seed=recipe.epoch.seed, epoch=recipe.epoch.number)
    if before is None:
        return [each.order() for each in wanted]
    stored = atom_shuffles(plans, seed=before.seed, epoch=before.epoch)
    return [replace(new, stored=old).order() for new, old in zip(wanted, stored, strict=True)]


def _lies_so(manifest: PackedManifest, epoch: Epoch) -> bool:
    """Whether the rows lie in the order of this epoch already."""
    before = manifest.shuffle
    return before is not None and (before.seed, before.epoch) == (epoch.seed, epoch.number)


def _batches(stored: Sequence[StoredRows], epoch: Epoch) -> npt.NDArray[Any]:
    if epoch.batch_tokens is None:
        raise UsageError(
            "missing-option",
            "rows of several lengths need batches of one length each",
            remedy="give batch_tokens, a multiple of every row length",
            where="batch_tokens",
        )
    sizes = [(each.sequence_length, each.rows) for each in stored]
    return batches(sizes, epoch.batch_tokens, keep_rest=not epoch.drop_rest, seed=epoch.seed, epoch=epoch.number)
