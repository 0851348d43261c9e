"""Order files, as `packtool shuffle --order-only` writes them: another order of a packed dataset, without its rows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from packtool.errors import DataError
from packtool.places.npy import FileEntry
from packtool.places.place import Place
from packtool.places.typed import Typed, place_of
from packtool.plan import BATCH, I64, Plan
from packtool.storage import manifest as manifests
from packtool.storage.names import OFFSET, ORDER_FILE
from packtool.storage.schema import Bucket, OrderManifest, PackedManifest

_AGAIN = "make the dataset again, or copy it again"


def read_order(place: Typed, base: Typed) -> tuple[OrderManifest, list[I64]]:
    """Read the manifest of an order, and for each bucket of its base the movable atom at each place.

    Raises:
        UsageError: not an order.
        DataError: made for another dataset than the one at `base`.
    """
    place, base = place_of(place), place_of(base)
    manifest = manifests.read_as(place, OrderManifest)
    if manifest.base.xxh3_128 != manifests.input_entry(base).xxh3_128:
        raise DataError(
            "order-differs",
            f"made for {manifests.input_names(place, [manifest.base])[0]}, which is not what lies at {base}",
            remedy="open it with the dataset it was made for, or make it again",
            where=str(place),
        )
    packed = manifests.read(base)
    buckets = packed.buckets if isinstance(packed, PackedManifest) else []
    if [entry.name for entry in manifest.orders] != [str(Path(each.directory, ORDER_FILE)) for each in buckets]:
        what = f"orders {len(manifest.orders)} buckets, but its base has {len(buckets)}, or others"
        raise DataError("bad-order", what, remedy="make it again", where=str(place))
    return manifest, [place.array(entry, OFFSET)[:] for entry in manifest.orders]  # whole, from a URL, too


def require_orders(place: Place, manifest: OrderManifest, orders: Sequence[I64], plans: Sequence[Plan]) -> None:
    """Raise a DataError where an order does not name every movable atom of its plan once."""
    for entry, order, plan in zip(manifest.orders, orders, plans, strict=True):
        require_order(order, plan.movable_atoms, place.where(entry.name))


def require_order(order: npt.NDArray[np.int64], atoms: int, where: str) -> None:
    """Raise a DataError unless an order names each of `atoms` atoms once."""
    if len(order) != atoms:
        what = f"orders {len(order)} atoms, but its base has {atoms}"
        raise DataError("bad-order", what, remedy=_AGAIN, where=where)
    seen = np.zeros(atoms, np.bool_)
    seen[order[(order >= 0) & (order < atoms)]] = True
    if not seen.all():
        what = f"atom {int(np.flatnonzero(~seen)[0])} is not in it"
        raise DataError("bad-order", what, remedy=_AGAIN, where=where)


def read_batches(place: Place, entry: FileEntry, buckets: Sequence[Bucket]) -> npt.NDArray[Any]:
    """Read the batches of the ``bucket`` shuffle, of `BATCH`, from a dataset or an order.

    Raises:
        DataError: naming the first batch with rows that are not there, or that another one has.
    """
    table = place.array(entry, BATCH)[:]
    rows = {bucket.sequence_length: bucket.rows for bucket in buckets}
    most = np.array([rows.get(length, -1) for length in table["bucket"].tolist()], np.int64)
    first, count = table["first_row"], table["rows"]
    good = (first >= 0) & (count > 0) & (first <= most) & (count <= most - np.clip(first, 0, None))
    if good.all():
        order = np.lexsort((first, table["bucket"]))
        near = table[order]
        twice = (near["bucket"][1:] == near["bucket"][:-1]) & (
            near["first_row"][1:] < near["first_row"][:-1] + near["rows"][:-1]
        )
        good[order[1:]] = ~twice
    if not good.all():
        what = f"batch {int(np.flatnonzero(~good)[0])} names rows that are not there, or that another batch has"
        raise DataError("bad-order", what, remedy=_AGAIN, where=place.where(entry.name))
    return table
