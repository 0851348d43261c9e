"""Put the documents of stores in the order of fields that were kept with them: `--order-by`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from packtool.choosing.chosen import NO_GROUP, StoredOrder
from packtool.choosing.documents import StoredDocuments
from packtool.formats.columns import ReadField, mask_of, numbers_of
from packtool.formats.token_store import TokenStore
from packtool.options.kinds import shown
from packtool.options.order import OrderKey
from packtool.planning.plan import I64, Ints
from packtool.planning.selecting.mixture import Passes
from packtool.writing.sorting import DOCUMENT, sorted_documents


def documents_in_order(
    documents: StoredDocuments, chosen: Sequence[Passes] | None, keys: Sequence[OrderKey], memory: int, work: Path
) -> StoredOrder:
    """Sort the documents that are packed by the keys; documents with equal keys stay in the order of the stores.

    Args:
        chosen: of each store; None for all documents.
        keys: at least one.
        memory: bytes that the sort may take.
        work: directory for what exceeds it.

    Raises:
        UsageError: a store did not keep a field.
        DataError: a value is not the number that it should be.
    """
    packed = len(documents)
    if chosen is not None:
        packed = sum(int(np.count_nonzero(passes.taken)) for passes in chosen)
    ordered: I64 = documents.arrays.empty(packed, np.int64)
    groups: Ints = documents.arrays.filled(len(documents), np.int64, lambda a, b: NO_GROUP)
    done, last = 0, _Last()
    columns = [_columns_of(key) for key in keys]
    descending: list[bool] = []
    for key, count in zip(keys, columns, strict=True):
        descending += [key.descending] * count
    tables = partial(_tables, documents, chosen, keys)
    for table in sorted_documents(tables, descending, memory, work, leading=columns[0]):
        here = table[DOCUMENT].to_numpy()
        ordered[done : done + len(here)] = here
        done += len(here)
        numbers = last.numbered(table.columns[:-1])
        groups[here[: len(numbers)]] = numbers
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
        columns: list[Any] = []
        for key in keys:
            portion.store.require_kept(key.field, "--order-by", "order by other fields")
            values = portion.field(key.field).take(pa.array(places))
            columns += _values(portion.store, key, values, portion.first + places)
        names = [f"key {number}" for number in range(len(columns))]
        yield pa.table([*columns, pa.array(portion.here.start + places)], [*names, DOCUMENT])


def _columns_of(key: OrderKey) -> int:
    """Count the columns that a key is sorted by: a number is a float, and what whole numbers have beyond it."""
    if key.number:
        return 2
    return 1


@dataclass
class _Last:
    """The last value that was numbered, among sorted values that come range after range."""

    value: Any = None  # None before the first
    number: int = -1  # number of the value, from 0; -1 before the first

    def numbered(self, columns: Sequence[Any]) -> I64:
        """Number values, equal ones alike; nulls, which are last, get no number.

        Args:
            columns: that make the values together.

        >>> last = _Last()
        >>> last.numbered([pa.chunked_array([["a", "b"]])]), last.numbered([pa.chunked_array([["b", "c", None]])])
        (array([0, 1]), array([1, 2]))
        """
        count = len(columns[0]) - columns[0].null_count
        changed = np.zeros(count, np.bool_)
        if not count:
            return np.zeros(0, np.int64)
        for column in columns:
            known = column.slice(0, count)
            changed[1:] |= mask_of(pc.not_equal(known.slice(1), known.slice(0, count - 1)))
        changed[0] = [column[0].as_py() for column in columns] != self.value
        numbers: I64 = self.number + np.cumsum(changed)
        self.value = [column[count - 1].as_py() for column in columns]
        self.number = int(numbers[-1])
        return numbers


def _values(store: TokenStore, key: OrderKey, values: Any, documents: I64) -> list[Any]:
    """Read the values of documents as a key asks; what is not a number (NaN) is missing, too.

    Returns:
        The columns that they are sorted by.

    Raises:
        DataError: one can't be read as a number.
    """
    if not key.number:
        return [values.cast(pa.large_string())]  # of any size together
    remedy = f"leave the document out with --where, or write {key.field} with fewer digits"
    numbers = numbers_of(values, ReadField(shown(key.field), store, documents, remedy))
    return [pc.if_else(pc.is_nan(numbers.nearest), None, numbers.nearest), pa.array(numbers.rest)]
