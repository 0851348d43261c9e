"""What a choice of documents needs of the token stores, and of the datasets that its options name."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from packtool.choosing.documents import names_of
from packtool.choosing.exclusions import excluded_store
from packtool.choosing.rules import reading_origins, stores_named
from packtool.choosing.weights import by_store, weights_in
from packtool.formats.known import KnownDataset, Lookup
from packtool.options.documents import DocumentOptions
from packtool.options.kinds import PATHS
from packtool.options.where import BUILT_IN, OTHER_STORES, comparisons_of, condition_of


def require_choice(options: DocumentOptions, stores: Sequence[KnownDataset], look: Lookup) -> None:
    """Require that documents can be chosen as asked, as far as it is known before the stores are opened.

    Args:
        options: that `check_choice` took.
        stores: to choose from.

    Raises:
        UsageError: a store that is named is not among them; they lack what an option needs.
        DataError: a dataset that an option names is not there.
    """
    names = names_of(store.place for store in stores)
    by_store(weights_in(options.mix, divided=options.tokens is not None), names)
    if options.where is not None:
        stores_named(options.where, names)
        _require_fields(options.where, stores)
    for declaration in reading_origins(options):
        for store in stores:
            store.require_origins(declaration.flag)
    for store in stores:
        if options.holdout_by is not None:
            store.require_kept(options.holdout_by, "--holdout-by", "hold out by another field")
    if options.holdout_of is not None:
        look(options.holdout_of).require_holdout()
    for path in map(Path, PATHS.parse(options.exclude)):
        if path.exists() and not path.is_dir():
            continue  # a list, or a pipe with one
        other = excluded_store(path, look)
        other.require_origins()
        for store in stores:
            store.require_hashed(other.hashed, str(path))


def _require_fields(where: str, stores: Sequence[KnownDataset]) -> None:
    """Refuse fields that no store kept. One that some kept is looked at where the documents of the others are."""
    for compared in comparisons_of(condition_of(where)):
        name = compared.field.name
        if compared.field.built_in or any(store.columns is None or name in store.columns for store in stores):
            continue
        stores[0].require_kept(name, "--where", OTHER_STORES, BUILT_IN)
