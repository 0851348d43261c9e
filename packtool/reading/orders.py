"""Open the rows of a dataset as stored, in the order of an order file, or in the computed order of an epoch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from packtool.errors import UsageError
from packtool.places.place import Place
from packtool.plan import I64
from packtool.reading.rows import ReorderedRows, RepackedRows, RotatedRows, Rows
from packtool.shuffling.atom import atom_shuffles
from packtool.shuffling.bucket import batches
from packtool.shuffling.partial import rotations
from packtool.storage.order import read_batches, read_order, require_orders
from packtool.storage.packed import PackedBucket, PackedDataset
from packtool.storage.schema import PackedManifest
from packtool.writing.stored_plan import (
    RotatedPlan,
    StoredPlan,
    lane_of,
    repacked_plans,
    require_rotation,
    stored_plans,
)
from packtool.writing.stored_tokens import open_packed

MAPPED = 256
"""Arrays of each kind that a process keeps mapped at once, in each bucket."""


@dataclass(frozen=True)
class Epoch:
    """An order that is computed, as ``packtool shuffle`` would.

    Attributes:
        number, seed: of the order.
        batch_tokens: tokens in a batch, for a dataset of several lengths; None for the others.
        drop_rest: rows that do not fill a batch are in none.
        repack: documents are packed anew, as ``packtool pack --epoch`` would.
    """

    number: int
    seed: int
    batch_tokens: int | None = None
    drop_rest: bool = False
    repack: bool = False


@dataclass(frozen=True)
class Recipe:
    """What opens a dataset, here or in another process.

    Attributes:
        place: of the dataset.
        order: place of an order; None for none.
        dtype: of the tokens that are handed out; None as stored.
        epoch: an order to compute; None for none.
        stores: places of the token stores of a dataset without tokens; none for where its manifest says.
    """

    place: Place
    order: Place | None = None
    dtype: str | None = None
    epoch: Epoch | None = None
    stores: tuple[Place, ...] = ()


@dataclass(frozen=True)
class Opened:
    """The rows of each length, and the batches of a dataset of several lengths, if it has any."""

    manifest: PackedManifest
    rows: list[Rows]
    batches: npt.NDArray[Any] | None


def read(recipe: Recipe) -> Opened:
    """Open the rows that a recipe describes.

    Raises:
        DataError: it is missing, unfinished or damaged; the order was made for another dataset.
        UsageError: not a packed dataset; not an order; the epoch can't be computed.
    """
    dataset = open_packed(recipe.place, recipe.stores, keep=MAPPED)
    dtype = None if recipe.dtype is None else np.dtype(recipe.dtype)
    if recipe.epoch is not None and recipe.epoch.repack:
        return _repacked(dataset, recipe.epoch, dtype)
    return _stored(dataset, recipe, dtype)


def _stored(dataset: PackedDataset, recipe: Recipe, dtype: np.dtype[Any] | None) -> Opened:
    """Return rows as they are stored, in their own order or in another."""
    manifest, stored = dataset.manifest, dataset.buckets
    if recipe.order is not None:
        order, orders = read_order(recipe.order, recipe.place)
        if order.shuffle.method == "partial":
            require_rotation(orders[0], order.shuffle, manifest, str(recipe.order))
            return Opened(manifest, [_rotated(stored[0], manifest, orders[0], dtype)], None)
        plans = stored_plans(dataset, order.shuffle.atom_size, whole=False)
        require_orders(recipe.order, order, orders, plans)
        table = None if order.batches is None else read_batches(recipe.order, order.batches, manifest.buckets)
        return Opened(manifest, _ordered(plans, orders, manifest, dtype), table)
    if recipe.epoch is not None:
        sizes = [(each.sequence_length, each.rows) for each in stored]
        table = None if single(manifest) else _batches(sizes, recipe.epoch)
        if _lies_so(manifest, recipe.epoch):
            return Opened(manifest, [Rows(each, dtype) for each in stored], table)
        if manifest.shuffle is not None and manifest.shuffle.method == "partial":
            lanes = manifest.shuffle.batch_size or 1
            drawn = rotations(lanes, lane_of(manifest), seed=recipe.epoch.seed, epoch=recipe.epoch.number)
            return Opened(manifest, [_rotated(stored[0], manifest, drawn, dtype)], None)
        plans = stored_plans(dataset, whole=False)
        return Opened(manifest, _ordered(plans, _computed(plans, manifest, recipe), manifest, dtype), table)
    return Opened(manifest, [Rows(each, dtype) for each in stored], dataset.batches())


def single(manifest: PackedManifest) -> bool:
    """Return whether all rows have one length."""
    return len(manifest.buckets) == 1 and not manifest.buckets[0].directory


def _ordered(
    plans: Sequence[StoredPlan], orders: Sequence[I64], manifest: PackedManifest, dtype: np.dtype[Any] | None
) -> list[Rows]:
    return [ReorderedRows(plan, order, manifest.pad_id, dtype) for plan, order in zip(plans, orders, strict=True)]


def _rotated(stored: PackedBucket, manifest: PackedManifest, rotation: I64, dtype: np.dtype[Any] | None) -> Rows:
    return RotatedRows(stored, RotatedPlan(StoredPlan(stored, whole=False), manifest, rotation), manifest.pad_id, dtype)


def _computed(plans: Sequence[StoredPlan], manifest: PackedManifest, recipe: Recipe) -> list[I64]:
    """Compute the order of an epoch for each bucket, over rows that may be shuffled already."""
    assert recipe.epoch is not None
    before = manifest.shuffle
    wanted = atom_shuffles(plans, seed=recipe.epoch.seed, epoch=recipe.epoch.number)
    if before is None:
        return [each.order() for each in wanted]
    stored = atom_shuffles(plans, seed=before.seed, epoch=before.epoch)
    return [replace(new, stored=old).order() for new, old in zip(wanted, stored, strict=True)]


def _lies_so(manifest: PackedManifest, epoch: Epoch) -> bool:
    """Return whether the rows lie in the order of this epoch already."""
    before = manifest.shuffle
    return before is not None and (before.seed, before.epoch) == (epoch.seed, epoch.number)


def _repacked(dataset: PackedDataset, epoch: Epoch, dtype: np.dtype[Any] | None) -> Opened:
    """Pack rows again for an epoch, in its order."""
    manifest = dataset.manifest
    if not manifest.index_only:
        raise UsageError(
            "not-indexed",
            "its rows are written with their tokens, so they can't be packed anew",
            remedy="drop the tokens with packtool materialize --index-only, or pack with packtool pack --epoch",
            where=str(dataset.place),
        )
    plans = repacked_plans(dataset, seed=epoch.seed, epoch=epoch.number)
    orders = [each.order() for each in atom_shuffles(plans, seed=epoch.seed, epoch=epoch.number)]
    sizes = [(plan.sequence_length, plan.rows) for plan in plans]
    rows: list[Rows] = [
        RepackedRows(bucket, plan, order, dtype)
        for bucket, plan, order in zip(dataset.buckets, plans, orders, strict=True)
    ]
    return Opened(manifest, rows, None if single(manifest) else _batches(sizes, epoch))


def _batches(sizes: Sequence[tuple[int, int]], epoch: Epoch) -> npt.NDArray[Any]:
    if epoch.batch_tokens is None:
        raise UsageError(
            "missing-option",
            "rows of several lengths need batches of one length each",
            remedy="give batch_tokens, a multiple of every row length",
            where="batch_tokens",
        )
    return batches(sizes, epoch.batch_tokens, keep_rest=not epoch.drop_rest, seed=epoch.seed, epoch=epoch.number)
