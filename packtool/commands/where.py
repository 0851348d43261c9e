"""Find the documents of a store that a `--where` takes, shard by shard, by the fields that were kept with them.

Fields are kept as text. The constant beside a field says how it is read: 3 as a number, 'en' as text, True as true.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from packtool.errors import DataError, UsageError
from packtool.formats.columns import first_unread, mask_of
from packtool.formats.token_store import TokenStore, read_column
from packtool.options.kinds import shown
from packtool.options.where import Compared, Condition, Constant, Field, Negated
from packtool.planning.arrays import Arrays
from packtool.planning.plan import I64, Ints, Mask
from packtool.support.sizes import plural

_READ: dict[type, tuple[str, pa.DataType]] = {
    bool: ("true or false", pa.bool_()),
    float: ("a number", pa.float64()),
    str: ("text", pa.string()),
}
"""For each type of constant, how the fields beside it are read."""
_ORDERS: dict[str, Callable[..., Any]] = {"<": pc.less, "<=": pc.less_equal, ">": pc.greater, ">=": pc.greater_equal}


def documents_where(
    store: TokenStore,
    name: str,
    condition: Condition,
    lengths: Ints,
    origins: npt.NDArray[Any] | None,
    arrays: Arrays,
) -> Mask:
    """Mark the documents of a store for which a condition holds, as in Python, with None for a missing value.

    Args:
        name: of the store, as the condition may have it.
        lengths: tokens of each document, EOS included.
        origins: of each document, where the condition needs them.
        arrays: makes the result, which is as long as the store.

    Raises:
        UsageError: the store lacks a field, or a document lacks the value of one that must be put in an order.
        DataError: a value is not of the type that it is compared with.
    """
    taken: Mask = arrays.empty(store.documents, np.bool_)
    missing: dict[str, tuple[int, int]] = {}
    for shard, first in enumerate(store.first_documents[:-1].tolist()):
        documents = slice(first, int(store.first_documents[shard + 1]))
        of_shard = None
        if origins is not None:
            of_shard = origins[documents]
        values = _Values(store, name, shard, lengths[documents], of_shard)
        search = _Search(store, first, values, missing)
        taken[documents] = search.holds(condition, np.arange(documents.stop - first))
    if missing:
        text, (times, document) = next(iter(missing.items()))
        first = store.name_of(document)
        what = f"{text}: the field is missing in {plural(times, 'document')} (first: {first})"
        remedy = "say what becomes of them: ... is not None and ... leaves them out, ... is None or ... takes them"
        raise UsageError("bad-where", what, remedy=remedy, where=str(store.place))
    return taken


class _Values:
    """The values of the documents of one shard, by field; each is read once.

    Args:
        name: of the store.
        lengths: tokens of each document of the shard.
        origins: of each, if they are needed.
    """

    def __init__(
        self, store: TokenStore, name: str, shard: int, lengths: Ints, origins: npt.NDArray[Any] | None
    ) -> None:
        self._store = store
        self._name = name
        self._shard = shard
        self._lengths = lengths
        self._origins = origins
        self._read: dict[Field, Any] = {}

    def of(self, field: Field) -> Any:
        """Return the values of a field, null where it is missing: a `pyarrow.ChunkedArray` or `Array`."""
        if field not in self._read:
            read = self._kept
            if field.built_in:
                read = self._built_in
            self._read[field] = read(field.name)
        return self._read[field]

    def _built_in(self, name: str) -> Any:
        store = self._store
        means_the_same = name == "id" and store.id_field == "id"
        if name in store.kept_fields and not means_the_same:
            what = f"{name} is a field that was kept, and a name that packtool gives"
            remedy = f"write field[{name!r}] for the field, or keep it under another name"
            raise UsageError("bad-where", what, remedy=remedy, where=str(store.place))
        if name == "store":
            return pa.repeat(self._name, len(self._lengths))
        if name == "tokens":
            return pa.array(self._lengths)
        if name == "id":
            if store.id_field is None:
                what = "id: its documents have none"
                raise UsageError("bad-where", what, remedy="tokenize with --id-field", where=str(store.place))
            return self._kept(store.id_field)
        assert self._origins is not None
        if name == "line":
            return pa.array(self._origins["record"])
        files = pa.array([entry.name for entry in store.manifest.inputs], pa.string())
        return files.take(pa.array(self._origins["file"]))

    def _kept(self, name: str) -> Any:
        store = self._store
        entry = store.manifest.shards[self._shard].columns
        if name not in store.kept_fields or entry is None:
            kept = ", ".join(store.kept_fields) or "none"
            what = f"{shown(name)} was not kept with its documents (kept: {kept})"
            remedy = f"tokenize with --columns {name}, or say for which stores it counts, as in store == 'web' and ..."
            raise UsageError("bad-where", what, remedy=remedy, where=str(store.place))
        return read_column(store.place, entry, name)


class _Search:
    """The search in one shard.

    Args:
        first: number of its first document in the store.
        missing: counts, by comparison, the documents without a value that must have one, with the first of them.
    """

    def __init__(self, store: TokenStore, first: int, values: _Values, missing: dict[str, tuple[int, int]]) -> None:
        self._store = store
        self._first = first
        self._values = values
        self._missing = missing

    def holds(self, condition: Condition, documents: I64) -> Mask:
        """Return for each of these documents, counted from the shard's first, whether a condition holds."""
        if isinstance(condition, Negated):
            return ~self.holds(condition.part, documents)
        if isinstance(condition, Compared):
            return self._compared(condition, documents)
        out = np.full(len(documents), condition.all)
        for part in condition.parts:
            # As in Python, a part is looked at only where those before it do not decide.
            undecided = np.flatnonzero(out == condition.all)
            if len(undecided):
                out[undecided] = self.holds(part, documents[undecided])
        return out

    def _compared(self, compared: Compared, documents: I64) -> Mask:
        """Return for each of these documents whether a comparison holds."""
        values = self._values.of(compared.field).take(pa.array(documents))
        absent = mask_of(values.is_null())
        present = [constant for constant in compared.constants if constant is not None]
        if compared.how != "in":
            self._count_missing(compared, documents[absent])
            return self._ordered(compared, values, present[0], documents)
        found = absent & (None in compared.constants)
        if present:
            read = self._read(compared, values, present[0], documents)
            if isinstance(present[0], float):
                read = pc.add(read, 0.0)  # -0.0 becomes 0.0, which is_in tells from it
            found = found | mask_of(pc.is_in(read, value_set=pa.array(present, read.type)))
        return found

    def _ordered(self, compared: Compared, values: Any, constant: Constant, documents: I64) -> Mask:
        """Compare values with one constant, in an order, or as a text within a text; false for missing ones."""
        read = self._read(compared, values, constant, documents)
        if compared.how == "contains":
            return mask_of(pc.fill_null(pc.match_substring(read, constant), False))
        return mask_of(pc.fill_null(_ORDERS[compared.how](read, constant), False))

    def _count_missing(self, compared: Compared, documents: I64) -> None:
        if len(documents):
            times, first = self._missing.get(compared.text, (0, self._first + int(documents[0])))
            self._missing[compared.text] = (times + len(documents), first)

    def _read(self, compared: Compared, values: Any, constant: Constant, documents: I64) -> Any:
        """Read values as the constant beside them asks."""
        words, type_ = _READ[type(constant)]
        try:
            return values.cast(type_)
        except pa.ArrowInvalid:
            number = first_unread(values, type_)
            what = f"{compared.text}: {shown(values[number].as_py())} is not {words}"
            remedy = "compare it as the text that it is, such as == '3', or say for which documents it counts"
            where = self._store.name_of(self._first + int(documents[number]))
            raise DataError("bad-value", what, remedy=remedy, where=where) from None
