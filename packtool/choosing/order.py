"""Put the documents of stores in the order of fields that were kept with them: `--order-by`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from packtool.choosing.chosen import NO_GROUP, StoredOrder
from packtool.choosing.columns import ReadField, mask_of, numbers_of
from packtool.choosing.documents import StoredDocuments
from packtool.errors import UsageError
from packtool.formats.token_store import TokenStore
from packtool.options.kinds import shown
from packtool.options.order import OrderKey
from packtool.planning.plan import I64, Ints
from packtool.planning.selecting.mixture import Passes
from packtool.support.sizes import show_bytes

_DOCUMENT = "document"  # name of the column that numbers documents
_ORDERS = {False: "ascending", True: "descending"}
_COPIES = 3  # of the keys in memory: as read, as sorted, and about as much while they are sorted


def documents_in_order(
    documents: StoredDocuments, chosen: Sequence[Passes] | None, keys: Sequence[OrderKey], memory: int
) -> StoredOrder:
    """Sort the documents that are packed by the keys; documents with equal keys stay in the order of the stores.

    Args:
        chosen: of each store; None for all documents.
        keys: at least one, of fields that every store kept.
        memory: bytes that the sort may take.

    Raises:
        UsageError: the keys take more memory.
        DataError: a value is not the number that it should be.
    """
    tables: list[pa.Table] = []
    needed = 0
    for table in _tables(documents, chosen, keys):
        tables.append(table)
        needed += _COPIES * table.nbytes
        if needed > memory:
            what = f"the fields of the documents take more than the {show_bytes(memory)} that may be used to sort them"
            remedy = "give more --memory, order by fewer or shorter fields, or sort the corpus before tokenizing"
            raise UsageError("order-too-large", what, remedy=remedy, where="--order-by")
    groups: Ints = documents.arrays.filled(len(documents), np.int64, lambda a, b: NO_GROUP)
    if not tables:
        return StoredOrder(keys[0].field, np.empty(0, np.int64), groups)
    table = pa.concat_tables(tables)
    order: list[tuple[str, str]] = []
    for number, key in enumerate(keys):
        order += [(name, _ORDERS[key.descending]) for name in _columns_of(number, key)]
    table = table.take(pc.sort_indices(table, sort_keys=[*order, (_DOCUMENT, "ascending")]))  # null is last
    ordered: I64 = table[_DOCUMENT].to_numpy()
    numbers = _numbered(table.select(_columns_of(0, keys[0])).columns)
    groups[ordered[: len(numbers)]] = numbers
    return StoredOrder(keys[0].field, ordered, groups)


def _tables(
    documents: StoredDocuments, chosen: Sequence[Passes] | None, keys: Sequence[OrderKey]
) -> Iterator[pa.Table]:
    """Yield the keys of the documents that are packed, and their numbers over all stores, portion by portion."""
    for portion in documents.portions():
        places = np.arange(portion.last - portion.first)
        if chosen is not None:
            places = np.flatnonzero(chosen[portion.number].taken[portion.first : portion.last])
        if not len(places):
            continue
        columns: dict[str, Any] = {}
        for number, key in enumerate(keys):
            values = portion.field(key.field).take(pa.array(places))
            parts = _values(portion.store, key, values, portion.first + places)
            columns |= zip(_columns_of(number, key), parts, strict=True)
        yield pa.table({**columns, _DOCUMENT: pa.array(portion.here.start + places)})


def _columns_of(number: int, key: OrderKey) -> list[str]:
    """Name the columns that a key is sorted by: a number is a float, and what whole numbers have beyond it."""
    if key.number:
        return [f"key {number}", f"rest of key {number}"]
    return [f"key {number}"]


def _numbered(columns: Sequence[Any]) -> I64:
    """Number sorted values, equal ones alike; nulls, which are last, get no number.

    Args:
        columns: that make the values together.

    >>> _numbered([pa.chunked_array([["a", "b", "b", None]])])
    array([0, 1, 1])
    """
    count = len(columns[0]) - columns[0].null_count
    changed = np.zeros(count, np.bool_)
    for column in columns:
        before = column.slice(0, max(0, count - 1))
        changed[1:] |= mask_of(pc.not_equal(column.slice(1, len(before)), before))
    return np.cumsum(changed)


def _values(store: TokenStore, key: OrderKey, values: Any, documents: I64) -> list[Any]:
    """Read the values of documents as a key asks; what is not a number (NaN) is missing, too.

    Returns:
        The columns that they are sorted by.
    """
    if not key.number:
        return [values.cast(pa.large_string())]  # of any size together
    remedy = f"leave the document out with --where, or write {key.field} with fewer digits"
    numbers = numbers_of(values, ReadField(shown(key.field), store, documents, remedy))
    return [pc.if_else(pc.is_nan(numbers.nearest), None, numbers.nearest), pa.array(numbers.rest)]
