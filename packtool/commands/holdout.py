"""Settle what is held out: by a share, by a number, or as another dataset did.

A text is held out if its hash, drawn with a seed, is below a bound. A share is a bound by itself, the same in every
store. A number of documents or tokens gives the bound that holds out as many of the stores at hand, so it is recorded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy.typing as npt

from packtool.errors import UsageError
from packtool.formats import manifest as manifests
from packtool.formats.schema import Options, PackedManifest
from packtool.options.documents import DocumentOptions
from packtool.options.kinds import HoldoutAmount, parse_part
from packtool.places.typed import Typed, place_of
from packtool.planning.plan import Ints
from packtool.planning.selecting.subsets import bound_of_number, bound_of_share

BOUND = "holdout_bound"
"""The recorded option with the bound that a number drew."""


def as_asked(options: DocumentOptions) -> DocumentOptions:
    """Take the hold-out of another dataset where `--holdout-of` names one.

    Raises:
        UsageError: it has none, or one whose bound was not recorded.
        DataError: it is no packed dataset.
    """
    if options.holdout_of is None:
        return options
    part, seed = _recorded(options.holdout_of)
    return replace(options, holdout=part, holdout_seed=seed, holdout_of=None)


def bound_of(options: Options) -> int | None:
    """Return the hash below which the documents of a dataset were held out.

    Args:
        options: how they were chosen, as its manifest says.

    Returns:
        None where nothing was held out, or a number of which the dataset does not record the bound.
    """
    if "holdout" not in options:
        return None
    part = parse_part(options["holdout"])
    if part.share is not None:
        return bound_of_share(part.share)
    if BOUND not in options:
        return None
    return int(options[BOUND])


def settled(options: DocumentOptions, lengths: Sequence[Ints], origins: Sequence[npt.NDArray[Any]]) -> DocumentOptions:
    """Give the hold-out its bound, which a number draws from all documents of the stores.

    Args:
        lengths, origins: of the documents of each store.
    """
    if options.holdout is None:
        return options
    part = parse_part(options.holdout)
    if part.share is not None:
        part = replace(part, bound=bound_of_share(part.share))
    elif part.bound is None:
        hashes = [origin["hash"] for origin in origins]
        amount = {"documents": part.documents, "tokens": part.tokens}
        bound = bound_of_number(hashes, lengths, seed=options.holdout_seed, **amount)
        part = replace(part, bound=bound)
    return replace(options, holdout=part)


def _recorded(dataset: Typed) -> tuple[HoldoutAmount, int]:
    """Return the hold-out of a packed dataset, and its seed."""
    place = place_of(dataset)
    manifest = manifests.read_as(place, PackedManifest)
    asked: dict[str, Any] = {}
    if manifest.choice is not None:
        asked = manifest.choice.options
    if "holdout" not in asked:
        remedy = "name a dataset that was packed with --holdout"
        raise UsageError("no-holdout", "nothing was held out of it", remedy=remedy, where=str(place))
    part = parse_part(asked["holdout"])
    if part.share is None:
        bound = bound_of(asked)
        if bound is None:
            what = f"it held out {part}, and does not say of which hash on"
            raise UsageError("no-holdout", what, remedy="pack it again with this version", where=str(place))
        part = replace(part, bound=bound)
    return part, int(asked["holdout_seed"])
