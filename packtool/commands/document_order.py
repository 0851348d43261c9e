"""Put the documents of stores in the order of fields that were kept with them: `--order-by`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from packtool.commands.chosen import NO_GROUP, StoredOrder
from packtool.errors import DataError, UsageError
from packtool.formats.columns import first_unread, mask_of
from packtool.formats.schema import TokenShard
from packtool.formats.token_store import TokenStore, read_column
from packtool.options.kinds import shown
from packtool.options.order import OrderKey
from packtool.planning.arrays import Arrays
from packtool.planning.plan import I64, Ints, Mask
from packtool.planning.selecting.mixture import Passes
from packtool.writing.sorting import DOCUMENT, sorted_documents


def documents_in_order(
    stores: Sequence[TokenStore],
    chosen: Sequence[Passes] | None,
    keys: Sequence[OrderKey],
    memory: int,
    work: Path,
    arrays: Arrays,
) -> StoredOrder:
    """Sort the documents of all stores by the keys; documents with equal keys stay in the order of the stores.

    Args:
        chosen: of each store; None for all documents.
        memory: bytes that the sort may take.
        work: directory for what exceeds it.
        arrays: allocates arrays as long as the stores.

    Raises:
        UsageError: a store did not keep a field.
        DataError: a value is not the number that it should be.
    """
    stored = _StoredKeys(stores, keys, chosen)
    stored.require_kept()
    ordered: I64 = arrays.empty(stored.packed, np.int64)
    groups: Ints = arrays.filled(stored.documents, np.int64, lambda a, b: np.full(b - a, NO_GROUP))
    done, last = 0, _Last()
    for table in sorted_documents(stored.tables, stored.descending, memory, work):
        here = table[DOCUMENT].to_numpy()
        ordered[done : done + len(here)] = here
        done += len(here)
        numbers = last.numbered(table.column(0))
        groups[here[: len(numbers)]] = numbers
    return StoredOrder(stored.field, ordered, groups)


class _StoredKeys:
    """The keys of the documents that are packed, as the stores have them.

    Args:
        keys: at least one.
        chosen: of each store; None for all documents.

    Attributes:
        field: the name of the first key.
        descending: of each key, whether the largest comes first.
        documents, packed: number of documents of the stores; and of those that are packed.
    """

    def __init__(self, stores: Sequence[TokenStore], keys: Sequence[OrderKey], chosen: Sequence[Passes] | None) -> None:
        self.field = keys[0].field
        self.descending = [key.descending for key in keys]
        self._keys = keys
        self._stores = stores
        self._taken: list[Mask | None] = [None] * len(stores)
        for number, passes in enumerate(chosen or ()):
            self._taken[number] = passes.taken
        self.documents = self.packed = 0
        for store, taken in zip(stores, self._taken, strict=True):
            self.documents += store.documents
            self.packed += store.documents if taken is None else int(np.count_nonzero(taken))

    def require_kept(self) -> None:
        """Require every store of which documents are packed to have kept the fields.

        Raises:
            UsageError: one did not.
        """
        for store, taken in zip(self._stores, self._taken, strict=True):
            if taken is not None and not taken.any():
                continue
            for key in self._keys:
                if key.field in store.kept_fields:
                    continue
                kept = ", ".join(store.kept_fields) or "none"
                what = f"{shown(key.field)} was not kept with the documents of {store.place} (kept: {kept})"
                remedy = f"tokenize with --columns {key.field}, or order by other fields"
                raise UsageError("field-not-kept", what, remedy=remedy, where="--order-by")

    def tables(self) -> Iterator[pa.Table]:
        """Yield the keys of the documents that are packed, and their numbers over all stores, shard by shard."""
        before = 0  # documents of the stores before
        for store, taken in zip(self._stores, self._taken, strict=True):
            for shard in store.manifest.shards:
                end = shard.first_document + shard.offsets.shape[0] - 1
                documents = np.arange(shard.first_document, end)
                if taken is not None:
                    documents = documents[taken[shard.first_document : end]]
                if len(documents):
                    columns = self._read(store, shard, documents)
                    yield pa.table({**columns, DOCUMENT: pa.array(before + documents)})
            before += store.documents

    def _read(self, store: TokenStore, shard: TokenShard, documents: I64) -> dict[str, Any]:
        """Read the keys of some documents of a shard, a column for each key.

        Args:
            documents: their numbers in the store.
        """
        columns: dict[str, Any] = {}
        for number, key in enumerate(self._keys):
            assert shard.columns is not None
            column = read_column(store.place, shard.columns, key.field)
            values = column.take(pa.array(documents - shard.first_document))
            columns[f"key {number}"] = _values(store, key, values, documents)
        return columns


@dataclass
class _Last:
    """The last value that was numbered, among sorted values that come range after range.

    Attributes:
        value: None before the first.
        number: of the value, from 0; -1 before the first.
    """

    value: Any = None
    number: int = -1

    def numbered(self, values: Any) -> I64:
        """Number values, equal ones alike; nulls, which are last, get no number.

        >>> last = _Last()
        >>> last.numbered(pa.chunked_array([["a", "b"]])), last.numbered(pa.chunked_array([["b", "c", None]]))
        (array([0, 1]), array([1, 2]))
        """
        known = values.slice(0, len(values) - values.null_count)
        changed = np.zeros(len(known), np.bool_)
        if len(known):
            changed[0] = known[0].as_py() != self.value
            changed[1:] = mask_of(pc.not_equal(known.slice(1), known.slice(0, len(known) - 1)))
        numbers: I64 = self.number + np.cumsum(changed)
        if len(known):
            self.value = known[-1].as_py()
            self.number = int(numbers[-1])
        return numbers


def _values(store: TokenStore, key: OrderKey, values: Any, documents: I64) -> Any:
    """Read the values of documents as a key asks; what is not a number (NaN) is missing, too.

    Raises:
        DataError: one can't be read as a number.
    """
    if not key.number:
        return values.cast(pa.large_string())  # of any size together
    try:
        numbers = values.cast(pa.float64())
    except pa.ArrowInvalid:
        place = first_unread(values, pa.float64())
        what = f"{shown(key.field)} is {shown(values[place].as_py())}, which is not a number"
        remedy = f"order by {key.field} as text, without :number, or leave the document out"
        raise DataError("bad-value", what, remedy=remedy, where=store.name_of(int(documents[place]))) from None
    return pc.if_else(pc.is_nan(numbers), None, numbers)
