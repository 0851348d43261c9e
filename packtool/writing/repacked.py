"""Plan a packed dataset again with the documents of another epoch's order: in memory, without files."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from packtool import packing
from packtool.errors import UsageError
from packtool.options.declare import names_recorded
from packtool.options.pack import PackOptions
from packtool.packing.plans import RenumberedPlan
from packtool.plan import Ints, Plan
from packtool.selecting.mixture import passes_of
from packtool.shuffling.permutation import document_order
from packtool.storage.packed import PackedDataset
from packtool.storage.schema import PackedManifest


def repacked_plans(dataset: PackedDataset, *, seed: int, epoch: int) -> list[Plan]:
    """Plan a dataset as ``packtool pack --epoch`` does: one plan for each row length.

    Args:
        dataset: without tokens, or with them.
        seed, epoch: of the order of documents; epoch 0 is corpus order.

    Raises:
        UsageError: its rows are not those of `pack`, or nobody knows its documents.
    """
    manifest, lengths = dataset.manifest, dataset.lengths()
    if manifest.shuffle is not None and manifest.shuffle.method == "partial":
        what = "made by the partial shuffle, which packs every epoch by itself"
        raise UsageError("partial-shuffled", what, remedy="leave repack out", where=str(dataset.place))
    options, chosen = _options(manifest, seed), dataset.chosen()
    order: Ints = np.arange(len(lengths))
    ends: list[int] = []
    if chosen is not None and (epoch or packing.strategy(manifest.strategy).windowed):
        order, ends = passes_of(chosen)
    if epoch:
        order = document_order(order, seed=seed, epoch=epoch, ends=ends)
    plans = packing.plan(manifest.strategy, np.asarray(lengths)[order], options, ends=ends)
    return [RenumberedPlan(plan, order) for plan in plans]


def _options(manifest: PackedManifest, seed: int) -> PackOptions:
    """Read the options of the strategy as the manifest has them."""
    recorded = manifest.options
    names = names_recorded(PackOptions, manifest.strategy)
    options: dict[str, Any] = {name: recorded[name] for name in names if name in recorded}
    for name in ("padding_threshold", "max_repetition"):
        if name in options:
            options[name] = Fraction(options[name])
    if "mix_rows" in names:
        options["mix_rows"] = recorded.get("mix_rows", False)  # rows that are not mixed are not mentioned
    return PackOptions(**{**options, "seed": seed})
