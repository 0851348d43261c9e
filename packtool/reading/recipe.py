"""Recipes to open a dataset: its place and an order. Rows are as stored, or in the order of an epoch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy.typing as npt
import xxhash

from packtool.blending.blend import Blend
from packtool.errors import UsageError
from packtool.formats.kept_columns import KeptColumns
from packtool.formats.manifest import input_entry
from packtool.formats.packed import PackedDataset
from packtool.formats.schema import PackedManifest
from packtool.formats.unchanged import Unchanged
from packtool.places.cached import Cache, CachedPlace
from packtool.places.local import LocalPlace
from packtool.places.place import Place
from packtool.places.store import StorePlace
from packtool.places.typed import Typed, cache_directory, place_of
from packtool.planning.plan import I64, Plan
from packtool.planning.shuffling.atom import AtomShuffle, atom_shuffles
from packtool.planning.shuffling.bucket import batches
from packtool.planning.shuffling.partial import rotations
from packtool.reading.blend_schedule import lengths_in_turn
from packtool.reading.orders import shared_order
from packtool.reading.rows import ReorderedRows, RotatedRows, Rows
from packtool.rows.stored_plan import (
    RotatedPlan,
    StoredPlan,
    lane_of,
    repacked_plans,
    repacked_sizes,
    stored_plans,
    stored_shuffles,
)
from packtool.rows.stored_tokens import open_packed
from packtool.support.sizes import parse_bytes

CACHE_BYTES = "32GiB"
Fetch = Literal["shards", "rows"]
SHARDS: Fetch = "shards"
ROWS: Fetch = "rows"
MAPPED = 256
"""Arrays that a process keeps mapped at once, of each kind and in each bucket."""


@dataclass(frozen=True, kw_only=True)
class EpochOptions:
    """What the computed orders of a dataset's epochs depend on, beside their numbers.

    Attributes:
        seed: of the orders; None for the seed that the dataset was packed or shuffled with.
        repack: the documents are packed again for each epoch; for a dataset without tokens.
        batch_tokens: tokens in a batch of rows of several lengths; None for as many as the dataset's own batches have.
        drop_rest: for rows of several lengths: leave out rows that do not fill a batch.
        blend: its weights order the batches by their row lengths; None for a random order.
    """

    seed: int | None = None
    repack: bool = False
    batch_tokens: int | None = None
    drop_rest: bool = False
    blend: Blend | None = None

    def of(self, manifest: PackedManifest) -> EpochOptions:
        """Return the options with the seed and the batches of a dataset where none are given."""
        seed, tokens = self.seed, self.batch_tokens
        if seed is None:
            seed = manifest.seed
        if tokens is None and manifest.shuffle is not None:
            tokens = manifest.shuffle.batch_tokens
        return replace(self, seed=seed, batch_tokens=tokens)


@dataclass(frozen=True)
class Epoch:
    """An order that is computed as ``packtool shuffle`` computes it."""

    number: int  # number of the order
    options: EpochOptions  # of all orders of the dataset, with their seed

    @property
    def seed(self) -> int:
        assert self.options.seed is not None  # `EpochOptions.of` has set it
        return self.options.seed


@dataclass(frozen=True)
class Recipe:
    """How to open a dataset, here or in another process."""

    place: Place  # place of the dataset
    dtype: str | None = None  # type of the returned tokens; None for the stored type
    epoch: Epoch | None = None  # an order to compute; None for stored order
    stores: tuple[Place, ...] = ()  # token stores of a dataset without tokens; empty for its manifest's
    orders: Path | None = None  # directory of large orders, which all processes of a machine share; None for memory
    digest: str | None = None  # digest of the manifest, once opened: another dataset there is refused


@dataclass(frozen=True)
class OpenedRows:
    """The rows of each length, and the batches of a dataset of several lengths, if it has any."""

    manifest: PackedManifest
    rows: list[Rows]
    batches: npt.NDArray[Any] | None
    digest: str = ""  # digest of the manifest
    unchanged: Unchanged | None = None  # checks that the dataset is the one that was opened; None at first
    columns: KeptColumns | None = None  # kept columns of documents


def training_place(typed: Typed, directory: str | Path | None, size: str | int, fetch: str) -> Place:
    """Return the place of a dataset; a URL is cached in a directory that all processes of this machine share.

    Args:
        typed: a path, a URL or a place.
        directory: where files of a URL are kept; None for the user's cache directory.
        size: limit of the dataset's arrays in the directory, in bytes or as "32GiB". A file that is being fetched
            counts; removed files that a process still has open come on top.
        fetch: `SHARDS` to keep whole files; `ROWS` to read tokens and segments by ranges, which are not kept.

    Raises:
        UsageError: `fetch` is neither.

    >>> training_place("s3://lab/packed", "/scratch", "1GiB", "shards").cache.limit
    1073741824
    """
    if fetch not in (SHARDS, ROWS):
        remedy = f'give "{SHARDS}" or "{ROWS}"'
        raise UsageError("bad-option", f"{fetch!r} is not a known value", remedy=remedy, where="fetch")
    limit = parse_bytes(size)
    place = place_of(typed)
    if isinstance(place, LocalPlace):
        return LocalPlace(place.path.absolute())
    if not isinstance(place, StorePlace):
        return place
    root = cache_directory() if directory is None else Path(directory)
    cache = Cache(root / "datasets" / xxhash.xxh3_64_hexdigest(place.url.encode()), limit)
    return CachedPlace(place, cache, ("tokens", "segments", "loss") if fetch == ROWS else ())


def single(manifest: PackedManifest) -> bool:
    """Return whether all rows have one length."""
    return len(manifest.buckets) == 1 and not manifest.buckets[0].directory


def read(recipe: Recipe) -> OpenedRows:
    """Open the rows that a recipe describes.

    Raises:
        DataError: the dataset is missing, unfinished or damaged.
        UsageError: not a packed dataset; the epoch can't be computed.
    """
    digest = recipe.digest
    if digest is None:
        digest = _digest_at(recipe.place)
    unchanged = Unchanged(recipe.place, digest)

    def opened() -> OpenedRows:
        dataset = open_packed(recipe.place, recipe.stores, keep=MAPPED, unchanged=unchanged)
        return replace(_rows_of(dataset, recipe), columns=dataset.columns)

    return replace(unchanged.opened(opened), digest=digest, unchanged=unchanged)


def count_items(recipe: Recipe) -> int:
    """Count the rows of an epoch that is packed anew, or its batches if rows have several lengths; make no row.

    Args:
        recipe: of a dataset that was opened before, in this epoch.

    Raises:
        DataError: the dataset was overwritten since it was opened first.
    """
    epoch = recipe.epoch
    assert epoch is not None
    assert recipe.digest is not None
    unchanged = Unchanged(recipe.place, recipe.digest)

    def counted() -> int:
        dataset = open_packed(recipe.place, recipe.stores, keep=MAPPED, unchanged=unchanged)
        sizes = repacked_sizes(dataset, seed=epoch.seed, epoch=epoch.number)
        table = _batches(dataset.manifest, sizes, epoch)
        if table is not None:
            return len(table)
        ((_, rows),) = sizes
        return rows

    return unchanged.opened(counted)


def _digest_at(place: Place) -> str:
    try:
        return input_entry(place).xxh3_128
    except OSError:
        return ""  # opening the dataset will fail with the reason


def _rows_of(dataset: PackedDataset, recipe: Recipe) -> OpenedRows:
    """Return rows in the order of a recipe."""
    if recipe.epoch is None:
        return _stored_rows(dataset, recipe, dataset.batches())
    if recipe.epoch.options.repack:
        return _repacked_rows(dataset, recipe, recipe.epoch)
    return _rows_in_epoch(dataset, recipe, recipe.epoch)


def _stored_rows(dataset: PackedDataset, recipe: Recipe, table: npt.NDArray[Any] | None) -> OpenedRows:
    return OpenedRows(dataset.manifest, [Rows(bucket, recipe.dtype) for bucket in dataset.buckets], table)


def _rows_in_epoch(dataset: PackedDataset, recipe: Recipe, epoch: Epoch) -> OpenedRows:
    """Return rows in the computed order of an epoch, whatever order they are stored in."""
    manifest, shuffle = dataset.manifest, dataset.manifest.shuffle
    table = _batches(manifest, [(bucket.sequence_length, bucket.rows) for bucket in dataset.buckets], epoch)
    stored = shuffle is not None and (shuffle.seed, shuffle.epoch) == (epoch.seed, epoch.number)
    if stored or (shuffle is not None and shuffle.rotate is False):
        return _stored_rows(dataset, recipe, table)
    if shuffle is not None and shuffle.method == "partial":
        rotation = rotations(shuffle.batch_size or 1, lane_of(manifest), seed=epoch.seed, epoch=epoch.number)
        return _rotated_rows(dataset, recipe, rotation)
    plans = stored_plans(dataset, whole=False)
    shuffles = stored_shuffles(plans, shuffle, seed=epoch.seed, epoch=epoch.number)
    return _reordered_rows(dataset, recipe, plans, shuffles, table)


def _repacked_rows(dataset: PackedDataset, recipe: Recipe, epoch: Epoch) -> OpenedRows:
    """Pack rows again for an epoch, in its order."""
    manifest = dataset.manifest
    if not manifest.index_only:
        what = "its rows are written with their tokens, so they can't be packed anew"
        remedy = "drop the tokens with `packtool materialize --index-only`, or pack with `packtool pack --epoch`"
        raise UsageError("not-indexed", what, remedy=remedy, where=str(dataset.place))
    plans = repacked_plans(dataset, seed=epoch.seed, epoch=epoch.number)
    shuffles = atom_shuffles(plans, seed=epoch.seed, epoch=epoch.number)
    table = _batches(manifest, [(plan.sequence_length, plan.rows) for plan in plans], epoch)
    return _reordered_rows(dataset, recipe, plans, shuffles, table)


def _reordered_rows(
    dataset: PackedDataset,
    recipe: Recipe,
    plans: Sequence[Plan],
    shuffles: Sequence[AtomShuffle],
    table: npt.NDArray[Any] | None,
) -> OpenedRows:
    rows: list[Rows] = []
    pad_id = dataset.manifest.pad_id
    for bucket, plan, shuffle in zip(dataset.buckets, plans, shuffles, strict=True):
        rows.append(ReorderedRows(bucket, plan, shared_order(shuffle, recipe.orders), pad_id, recipe.dtype))
    return OpenedRows(dataset.manifest, rows, table)


def _rotated_rows(dataset: PackedDataset, recipe: Recipe, rotation: I64) -> OpenedRows:
    manifest, (stored,) = dataset.manifest, dataset.buckets
    plan = RotatedPlan(StoredPlan(stored, whole=False), manifest, rotation)
    return OpenedRows(manifest, [RotatedRows(stored, plan, manifest.pad_id, recipe.dtype)], None)


def _batches(manifest: PackedManifest, sizes: Sequence[tuple[int, int]], epoch: Epoch) -> npt.NDArray[Any] | None:
    """Divide the rows of several lengths into the batches of an epoch."""
    if single(manifest):
        return None
    options = epoch.options
    if options.batch_tokens is None:
        what = "rows of several lengths need batches of one length each"
        remedy = "give batch_tokens, a multiple of every row length"
        raise UsageError("missing-option", what, remedy=remedy, where="batch_tokens")
    keep_rest = not options.drop_rest
    table = batches(sizes, options.batch_tokens, keep_rest=keep_rest, seed=epoch.seed, epoch=epoch.number)
    if options.blend is None or not len(table):
        return table
    return lengths_in_turn(table, [length for length, _ in sizes], options.blend, options.batch_tokens)
