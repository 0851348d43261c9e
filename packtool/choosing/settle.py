"""Settle what is asked of token stores, and of the datasets that options name, before a store is opened.

What a stage of a run will make is known as well: so a mistake in a late stage is found before the first has begun.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from packtool.choosing.asked import Asked
from packtool.choosing.documents import names_of
from packtool.choosing.exclusions import excluded_store
from packtool.choosing.names import StoreNames
from packtool.choosing.rules import reading_origins
from packtool.choosing.weights import by_store
from packtool.errors import UsageError
from packtool.formats.known import TEXTS, KnownDataset, Lookup
from packtool.options.where import BUILT_IN, OTHER_STORES, STORE, comparisons_of, condition_of


def settle(asked: Asked, stores: Sequence[KnownDataset], look: Lookup) -> Asked:
    """Give stores their weights, and the numbers by which a condition names them; require what the options need.

    Args:
        stores: to choose from.

    Raises:
        UsageError: a store that is named is not among them; they lack what an option needs.
        DataError: a dataset that an option names is not there.
    """
    names = names_of(store.place for store in stores)
    asked = replace(asked, weights=by_store(asked.weights, names))
    if asked.sample is not None and asked.sample_interval is None:
        what, remedy = "--sample needs it where no row has a length", "give a width, such as 2048"
        raise UsageError("missing-option", what, remedy=remedy, where="--sample-interval")
    flags = reading_origins(asked)  # here: a message names the option that was given, not what is read for it below
    others: list[KnownDataset] = []
    for path in asked.excluded:
        if path.is_dir() or not path.exists():  # else it is a list, or a pipe with one
            others.append(excluded_store(path, look))
    if asked.holdout_of is not None:
        dataset = look(asked.holdout_of)
        asked = asked.held_out_as(dataset.require_holdout())
    elif asked.holdout is not None and asked.holdout_by is None and stores[0].hashed != TEXTS:
        asked = replace(asked, holdout_hashes=stores[0].hashed)
    where = asked.where
    if where is not None:
        asked = replace(asked, where_stores=_stores_named(where, names))
        _require_fields(where, stores)
    _require(asked, stores, flags, others)
    return asked


def _stores_named(where: str, names: StoreNames) -> dict[str, int] | None:
    """Return the number of each store that a condition names; None where it names none."""
    numbers: dict[str, int] = {}
    for compared in comparisons_of(condition_of(where)):
        if compared.field == STORE:
            for name in map(str, compared.constants):
                numbers[name] = names.number(name, "--where")
    return numbers or None


def _require_fields(where: str, stores: Sequence[KnownDataset]) -> None:
    """Refuse fields that no store kept. One that some kept is looked at where the documents of the others are."""
    for compared in comparisons_of(condition_of(where)):
        name = compared.field.name
        if compared.field.built_in or any(store.columns is None or name in store.columns for store in stores):
            continue
        stores[0].require_kept(name, "--where", OTHER_STORES, BUILT_IN)


def _require(
    asked: Asked, stores: Sequence[KnownDataset], flags: Sequence[str], others: Sequence[KnownDataset]
) -> None:
    """Require of the stores what options need.

    Args:
        flags: options that need to know where documents came from.
        others: token stores that are excluded.
    """
    first = stores[0]
    for store in stores:
        for flag in flags:
            store.require_origins(flag)
        if asked.holdout_by is not None and asked.holdout_of is None:
            store.require_kept(asked.holdout_by, "--holdout-by", "hold out by another field")
        if asked.holdout is not None and asked.holdout_by is None:
            store.require_hashed(first.hashed, str(first.place))
            store.require_hashed(asked.holdout_hashes or TEXTS, f"the hold-out of {asked.holdout_of}")
    for other in others:
        other.require_origins()
        for store in stores:
            store.require_hashed(other.hashed, str(other.place))
