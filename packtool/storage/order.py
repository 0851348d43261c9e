"""What `packtool shuffle --order-only` wrote: another order of a packed dataset, without its rows."""

from __future__ import annotations

from pathlib import Path

from packtool.errors import DataError, UsageError
from packtool.plan import I64
from packtool.storage import manifest as manifests
from packtool.storage.files import open_array
from packtool.storage.manifest import OrderManifest


def read_order(path: Path, base: Path) -> tuple[OrderManifest, list[I64]]:
    """The manifest of an order, and for each bucket of its base the movable atom at each place.

    Raises:
        UsageError: not an order.
        DataError: made for another dataset than the one at `base`.
    """
    manifest = manifests.read(path)
    if not isinstance(manifest, OrderManifest):
        raise UsageError(
            "not-an-order",
            f"{manifests.called(manifest)}, where an order is needed",
            remedy="give what packtool shuffle --order-only wrote",
            where=str(path),
        )
    if manifest.base.xxh3_128 != manifests.input_entry(base).xxh3_128:
        raise DataError(
            "order-differs",
            f"made for {manifest.base.name}, which is not what lies at {base}",
            remedy="open it with the dataset it was made for, or make it again",
            where=str(path),
        )
    return manifest, [open_array(path, entry) for entry in manifest.orders]
