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
from packtool.formats.token_store import TokenStore, read_column
from packtool.options.kinds import shown
from packtool.options.order import OrderKey
from packtool.planning.arrays import Arrays
from packtool.planning.plan import I64, Ints, Mask, offsets_of
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
    firsts = offsets_of(np.array([store.documents for store in stores], np.int64)).tolist()
    taken: list[Mask | None] = [None] * len(stores)
    for number, passes in enumerate(chosen or ()):
        taken[number] = passes.taken
    for store, some in zip(stores, taken, strict=True):
        if some is None or some.any():
            _require_kept(store, keys)

    def tables() -> Iterator[pa.Table]:
        for store, some, first in zip(stores, taken, firsts, strict=False):
            yield from _tables(store, some, first, keys)

    documents = 0
    for store, some in zip(stores, taken, strict=True):
        documents += store.documents if some is None else int(np.count_nonzero(some))
    ordered: I64 = arrays.empty(documents, np.int64)
    groups: Ints = arrays.filled(firsts[-1], np.int64, lambda a, b: np.full(b - a, NO_GROUP))
    done, last = 0, _Last()
    for table in sorted_documents(tables, [key.descending for key in keys], memory, work):
        here = table[DOCUMENT].to_numpy()
        ordered[done : done + len(here)] = here
        done += len(here)
        numbers = last.numbered(table.column(0))
        groups[here[: len(numbers)]] = numbers
    return StoredOrder(keys[0].field, ordered, groups)


@dataclass
class _Last:
    """The last value that was numbered, among sorted values that come range after range.

    Attributes:
        value: None before the first.
        number: how many different values came before it.
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


def _require_kept(store: TokenStore, keys: Sequence[OrderKey]) -> None:
    for key in keys:
        if key.field not in store.kept_fields:
            kept = ", ".join(store.kept_fields) or "none"
            what = f"{shown(key.field)} was not kept with the documents of {store.place} (kept: {kept})"
            remedy = f"tokenize with --columns {key.field}, or order by other fields"
            raise UsageError("field-not-kept", what, remedy=remedy, where="--order-by")


def _tables(store: TokenStore, taken: Mask | None, first: int, keys: Sequence[OrderKey]) -> Iterator[pa.Table]:
    """Yield the keys and numbers of the documents of a store that are packed, shard by shard.

    Args:
        taken: which documents are packed; None for all.
        first: number of the store's first document.
    """
    for shard in store.manifest.shards:
        end = shard.first_document + shard.offsets.shape[0] - 1
        documents = np.arange(shard.first_document, end)
        if taken is not None:
            documents = documents[taken[shard.first_document : end]]
        if not len(documents):
            continue
        columns: dict[str, Any] = {}
        for number, key in enumerate(keys):
            assert shard.columns is not None
            column = read_column(store.place, shard.columns, key.field)
            values = column.take(pa.array(documents - shard.first_document))
            columns[f"key {number}"] = _values(store, key, values, documents)
        yield pa.table({**columns, DOCUMENT: pa.array(first + documents)})


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
