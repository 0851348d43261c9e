"""Find the documents for which a `--where` holds, by the fields that were kept with them.

Fields are kept as text. The constant beside a field says how it is read: 3 as a number, 'en' as text, True as true.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from packtool.choosing.columns import Numbers, ReadField, first_unread, mask_of, numbers_of
from packtool.choosing.documents import Portion
from packtool.errors import UsageError
from packtool.options.where import BUILT_IN, OTHER_STORES, STORE, Compared, Condition, Field, Negated
from packtool.planning.plan import I64, Mask
from packtool.support.sizes import plural

_ORDERS: dict[str, Callable[..., Any]] = {"<": pc.less, "<=": pc.less_equal, ">": pc.greater, ">=": pc.greater_equal}
_OF_RESTS: dict[str, Callable[..., Any]] = {"<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal}
_REMEDY = "compare it as the text that it is, such as == '3', or say for which documents it counts"


class Search:
    """Finds the documents for which a condition holds, as in Python, with None for a missing value.

    Args:
        condition: that is looked for.
        stores: the number of each store that it names.

    Raises:
        UsageError: it names others.
    """

    def __init__(self, condition: Condition, stores: Mapping[str, int]) -> None:
        self._condition = condition
        self._stores = stores
        self._missing: dict[str, tuple[int, str]] = {}
        """By comparison, the documents without a value that must have one, with the name of the first."""

    def holds(self, portion: Portion, places: I64) -> Mask:
        """Return for documents of a portion whether the condition holds.

        Args:
            places: of the documents in the portion.

        Raises:
            UsageError: the store lacks a field.
            DataError: a value is not of the type that it is compared with.
        """
        return self._holds(self._condition, portion, places)

    def require_all_present(self) -> None:
        """Raise a UsageError where a document that was looked at lacks a value that must be put in an order."""
        for text, (times, first) in self._missing.items():
            what = f"{text}: the field is missing in {plural(times, 'document')} (first: {first})"
            remedy = "say what becomes of them: ... is not None and ... leaves them out, ... is None or ... takes them"
            raise UsageError("bad-where", what, remedy=remedy, where="--where")

    def _holds(self, condition: Condition, portion: Portion, places: I64) -> Mask:
        if isinstance(condition, Negated):
            return ~self._holds(condition.part, portion, places)
        if isinstance(condition, Compared):
            return self._compared(condition, portion, places)
        out = np.full(len(places), condition.all)
        for part in condition.parts:
            # As in Python, a part is looked at only where those before it do not decide.
            undecided = np.flatnonzero(out == condition.all)
            if len(undecided):
                out[undecided] = self._holds(part, portion, places[undecided])
        return out

    def _compared(self, compared: Compared, portion: Portion, places: I64) -> Mask:
        """Return for documents of a portion whether a comparison holds."""
        if compared.field.built_in:
            _require_unambiguous(compared.field.name, portion)
            if compared.field == STORE:
                numbers = [self._stores.get(str(name)) for name in compared.constants]
                return np.full(len(places), portion.number in numbers)
        values = _values(compared.field, portion).take(pa.array(places))
        found = _present(compared, values, portion, places)
        absent = mask_of(values.is_null())
        if compared.how == "in":
            return found | (absent & (None in compared.constants))
        for place in np.flatnonzero(absent)[:1].tolist():
            here = portion.store.name_of(portion.first + int(places[place]))
            times, first = self._missing.get(compared.text, (0, here))
            self._missing[compared.text] = (times + int(np.count_nonzero(absent)), first)
        return found


def _present(compared: Compared, values: Any, portion: Portion, places: I64) -> Mask:
    """Return for values whether a comparison with a constant other than None holds; false for missing ones."""
    constants = [constant for constant in compared.constants if constant is not None]
    if not constants:
        return np.zeros(len(values), np.bool_)
    if isinstance(constants[0], str):
        return _text(compared.how, values, constants)
    field = ReadField(f"{compared.text}: {compared.field.name}", portion.store, portion.first + places, _REMEDY)
    if isinstance(constants[0], bool):
        return _truth(values, constants, field)
    return _number(compared.how, numbers_of(values, field), constants)


def _text(how: str, values: Any, constants: Sequence[Any]) -> Mask:
    """Compare texts with constants; false for missing ones."""
    if how == "in":
        return mask_of(pc.is_in(values, value_set=pa.array(constants, pa.string())))
    compare = _ORDERS.get(how, pc.match_substring)
    return mask_of(pc.fill_null(compare(values, constants[0]), False))


def _truth(values: Any, constants: Sequence[Any], field: ReadField) -> Mask:
    """Compare texts that are true or false with constants; false for missing ones."""
    try:
        read = values.cast(pa.bool_())
    except pa.ArrowInvalid:
        raise field.refused(values, first_unread(values, pa.bool_()), "neither true nor false") from None
    return mask_of(pc.is_in(read, value_set=pa.array(constants)))


def _number(how: str, numbers: Numbers, constants: Sequence[Any]) -> Mask:
    """Compare numbers with constants, exactly: their floats, and where these are equal, what is beyond them."""
    nearest = pc.add(numbers.nearest, 0.0)  # -0.0 becomes 0.0, which is_in tells from it
    if how == "in":
        wanted = set(map(_parts, constants))
        mask = mask_of(pc.is_in(nearest, value_set=pa.array([near for near, _ in wanted], pa.float64())))
        if numbers.rest.any() or any(rest for _, rest in wanted):
            for place in np.flatnonzero(mask).tolist():
                mask[place] = (nearest[place].as_py(), int(numbers.rest[place])) in wanted
        return mask
    near, rest = _parts(constants[0])
    mask = mask_of(pc.fill_null(_ORDERS[how](nearest, near), False))
    equal = mask_of(pc.fill_null(pc.equal(nearest, near), False))
    mask[equal] = _OF_RESTS[how](numbers.rest[equal], rest)
    return mask


def _parts(constant: float | int) -> tuple[float, int]:
    """Return the float nearest to a number, and what the number has beyond it.

    >>> _parts(3.0), _parts(2**53 + 1)
    ((3.0, 0), (9007199254740992.0, 1))
    """
    if isinstance(constant, float):
        return constant, 0
    return float(constant), constant - int(float(constant))


def _values(field: Field, portion: Portion) -> Any:
    """Return the values of a field but the store, null where it is missing."""
    store, name = portion.store, field.name
    if field.built_in:
        if name == "tokens":
            return pa.array(portion.lengths)
        if name == "line":
            return pa.array(portion.origins["record"])
        if name == "file":
            files = pa.array([entry.name for entry in store.manifest.inputs], pa.string())
            return files.take(pa.array(portion.origins["file"]))
        if store.id_field is None:
            what = "id: its documents have none"
            raise UsageError("bad-where", what, remedy="tokenize with --id-field", where=str(store.place))
        name = store.id_field
    store.known.require_kept(name, "--where", OTHER_STORES, BUILT_IN)
    return portion.field(name)


def _require_unambiguous(name: str, portion: Portion) -> None:
    """Refuse a name of packtool that is the name of a field, too."""
    store = portion.store
    means_the_same = name == "id" and store.id_field == "id"
    if name in store.kept_fields and not means_the_same:
        what = f"{name} is a field that was kept, and a name that packtool gives"
        remedy = f"write field[{name!r}] for the field, or keep it under another name"
        raise UsageError("bad-where", what, remedy=remedy, where=str(store.place))
