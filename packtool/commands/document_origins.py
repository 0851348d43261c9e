"""Trace documents of a packed dataset to their origin, and find documents by it: by id, or by input file and line."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from packtool.choosing.listed import file_and_line, from_records
from packtool.errors import UsageError
from packtool.formats import manifest as manifests
from packtool.formats.packed import PackedDataset
from packtool.formats.schema import DatasetEntry
from packtool.formats.token_store import TokenStore
from packtool.places.local import LocalPlace
from packtool.places.place import Place
from packtool.places.typed import Typed, places_of
from packtool.planning.plan import I64, offsets_of
from packtool.rows.stored_tokens import store_places

_MOST_ENTRIES = 10_000  # most entries of a directory to search for stores


def stores_nearby(dataset: PackedDataset) -> list[Path] | None:
    """Find the stores that a dataset was packed from by their digests; None if one is missing.

    They are looked for in the directory of the dataset, in the one above it, and in the working directory. Of several
    equal ones, the one is meant that has the name under which it was packed.
    """
    wanted = dataset.manifest.inputs
    sizes = {entry.bytes for entry in wanted}
    path = Path.cwd()
    if isinstance(dataset.place, LocalPlace):
        path = dataset.place.path.resolve()
    beside: dict[DatasetEntry, list[Path]] = {}
    for place in dict.fromkeys([path.parent, path.parent.parent, Path.cwd()]):
        with suppress(OSError):
            for child in islice(place.iterdir(), _MOST_ENTRIES):
                with suppress(OSError):
                    if (child / manifests.MANIFEST).stat().st_size in sizes:
                        beside.setdefault(manifests.input_entry(child), []).append(child)
    if not set(wanted) <= set(beside):
        return None
    stores = []
    for entry, name in zip(wanted, manifests.input_names(dataset.place, wanted), strict=True):
        named = [child for child in beside[entry] if str(child).endswith(f"/{name}")]
        stores.append((named or beside[entry])[0])
    return stores


def stores_of(dataset: PackedDataset, given: Typed | Sequence[Typed]) -> list[Place]:
    """Find the stores that a dataset was packed from: as given, where its manifest says, or next to it.

    Raises:
        UsageError: the word is neither a number, nor an id, nor FILE:LINE of a document.
        DataError: one is gone, or has changed.
    """
    stores = places_of(given)
    if not stores and not dataset.manifest.index_only:
        beside = stores_nearby(dataset)
        if beside is None:
            names = ", ".join(manifests.input_names(dataset.place, dataset.manifest.inputs))
            what = f"what the dataset was packed from ({names}) is not next to it"
            raise UsageError("missing-option", what, remedy="give the stores, in the same order", where="--store")
        stores = places_of(beside)
    return store_places(dataset, stores)


def require_same_stores(dataset: PackedDataset, stores: Sequence[Typed]) -> None:
    """Require that a dataset was packed from these stores, in this order."""
    packed = [entry.xxh3_128 for entry in dataset.manifest.inputs]
    given = [entry.xxh3_128 for entry in map(manifests.input_entry, stores)]
    if packed != given:
        names = ", ".join(manifests.input_names(dataset.place, dataset.manifest.inputs))
        remedy = "give the same stores in the same order as packtool pack was given"
        raise UsageError("other-stores", f"packed from other stores ({names})", remedy=remedy, where="--store")


def documents_named(stores: Sequence[TokenStore], record: str) -> list[I64]:
    """Find the documents of each store with this id; if no document has it, the documents from this FILE:LINE.

    Returns:
        For each store, their numbers in it, ascending: several where several have the id, or came from one line.

    Raises:
        UsageError: no store has the id or the file, or it is not FILE:LINE; for a line, a store without provenance.
    """
    found = [store.with_ids([record]) for store in stores]
    if any(map(len, found)):
        return found
    parsed = file_and_line(record)
    if parsed is None or not parsed[1]:
        if any(store.id_field is not None for store in stores):
            what = f"no store has a document with the id {record!r}"
            remedy = "check it, or give FILE:LINE, such as web/a.jsonl:17"
            raise UsageError("unknown-id", what, remedy=remedy, where="ID")
        remedy = "write it like web/a.jsonl:17; stores made with --id-field can be asked for ids, too"
        raise UsageError("bad-record", f"{record!r} is not FILE:LINE", remedy=remedy, where="FILE:LINE")
    file, line = parsed
    found, known = [], False
    for store in stores:
        origins, documents = store.origins(), [np.empty(0, np.int64)]
        for number, entry in enumerate(store.manifest.inputs):
            if entry.name == file:
                known = True
                documents.append(from_records(origins, number, [line]))
        found.append(np.concatenate(documents))
    if not known:
        remedy = "name it as the manifest of the store does, relative to the input of tokenize"
        raise UsageError("unknown-file", f"no store has an input {file!r}", remedy=remedy, where="FILE:LINE")
    return found


class Named(NamedTuple):
    """The documents that go by one name."""

    packed: I64  # their numbers in the dataset, several after several passes
    absent: list[tuple[int, int]]  # documents outside the dataset, by the number of their store and theirs there


class PackedDocuments:
    """The documents of a packed dataset, by their numbers in it and in their stores."""

    def __init__(self, dataset: PackedDataset) -> None:
        self._firsts = offsets_of(np.array(dataset.manifest.store_documents, np.int64))
        self._chosen = dataset.chosen()

    def stored(self, document: int) -> tuple[int, int]:
        """Return the store of a document of the dataset, and its number there."""
        source = int(np.searchsorted(self._firsts, document, side="right")) - 1
        number = document - int(self._firsts[source])
        if self._chosen is not None:
            number = int(self._chosen[source][number])
        return source, number


class Origins(PackedDocuments):
    """File and record of each document of a packed dataset.

    Args:
        stores: the stores that it was packed from, in the same order.

    Raises:
        UsageError: other stores; for files and lines, stores without provenance.
    """

    def __init__(self, dataset: PackedDataset, stores: Sequence[Typed]) -> None:
        require_same_stores(dataset, stores)
        super().__init__(dataset)
        self._stores = list(map(TokenStore, stores))
        self._ids: dict[int, Any] = {}

    def place(self, document: int) -> str:
        """Return `file:record` of a document of the dataset."""
        source, stored = self.stored(document)
        return self._stores[source].origin(stored)

    @property
    def known(self) -> bool:
        """Whether every store records where its documents came from."""
        return all(store.known.has_origins for store in self._stores)

    def id(self, document: int) -> str | None:
        """Return the id of a document of the dataset; None if ids were not kept."""
        source, stored = self.stored(document)
        store = self._stores[source]
        if store.id_field is None:
            return None
        if source not in self._ids:
            self._ids[source] = store.column(store.id_field)
        identifier: str | None = self._ids[source][stored].as_py()
        return identifier

    def named(self, record: str) -> Named:
        """Find the documents of the stores with this id; if no document has it, the documents from this FILE:LINE.

        Raises:
            UsageError: as `documents_named` says.
        """
        packed, absent = [np.empty(0, np.int64)], []
        for source, stored in enumerate(documents_named(self._stores, record)):
            packed.append(self._packed(source, stored))
            if self._chosen is not None:
                left = stored[~np.isin(stored, self._chosen[source])]
                absent += [(source, number) for number in left.tolist()]
        return Named(np.concatenate(packed), absent)

    def _packed(self, source: int, stored: I64) -> I64:
        """Return the numbers in the dataset of a store's documents, once for each time they were packed."""
        here = stored
        if self._chosen is not None:
            here = np.flatnonzero(np.isin(self._chosen[source], stored))
        numbers: I64 = here + self._firsts[source]
        return numbers
