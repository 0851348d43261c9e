"""Work with the values of fields that were kept with documents, as Arrow has them."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Context, Decimal
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from packtool.errors import DataError
from packtool.formats.token_store import TokenStore
from packtool.options.kinds import shown
from packtool.planning.plan import I64, Mask

_WHOLE = 2.0**53  # up to here, floats hold every whole number
_INT64 = 2.0**62  # up to here, 64 bits surely hold a whole number, the float next to it, and their difference
_DIGITS = 15  # a float tells all decimals of as many digits apart
_SMALL = 1e-300  # below, floats hold fewer digits


class Numbers(NamedTuple):
    """Numbers that were written as text, whole ones exactly.

    Two of them compare as their floats do, and if these are equal, as the rests.
    """

    nearest: Any  # the float of 64 bits nearest to each, an Arrow array; null for a missing one
    rest: I64  # what each number has beyond that float: 0 for whole numbers up to 2^53


@dataclass(frozen=True)
class ReadField:
    """A field that is read, for messages."""

    name: str  # name of the field
    store: TokenStore  # store that keeps the field
    documents: I64  # numbers of the documents whose values are read
    remedy: str  # what to do about a value that can't be read

    def refused(self, texts: Any, place: int, what: str) -> DataError:
        """Return the error for the text at a place."""
        what = f"{self.name} is {shown(texts[place].as_py())}, which is {what}"
        where = self.store.name_of(int(self.documents[place]))
        return DataError("bad-value", what, remedy=self.remedy, where=where)


def floats_of(texts: Any, field: ReadField) -> npt.NDArray[np.float64]:
    """Read texts as floats of 64 bits; a missing one is NaN.

    Raises:
        DataError: a text is no number, or one that no float holds.
    """
    numbers = numbers_of(texts, field)
    for place in np.flatnonzero(numbers.rest)[:1].tolist():
        raise field.refused(texts, place, _not_held(numbers.nearest[place].as_py()))
    floats: npt.NDArray[np.float64] = numbers.nearest.fill_null(float("nan")).to_numpy(zero_copy_only=False)
    return floats


def numbers_of(texts: Any, field: ReadField) -> Numbers:
    """Read texts as numbers: digits alone as the whole number that they are, all else as the float nearest to it.

    Args:
        texts: an Arrow array, or chunks of one.
        field: that has them.

    Raises:
        DataError: a text is no number, or neither a whole one nor one that floats tell from those next to it.
    """
    if isinstance(texts, pa.ChunkedArray):
        texts = texts.combine_chunks()
    try:
        nearest = texts.cast(pa.float64())
    except pa.ArrowInvalid:
        raise field.refused(texts, first_unread(texts, pa.float64()), "not a number") from None
    rest = np.zeros(len(texts), np.int64)
    near = _odd(texts, nearest)
    if len(near):
        found = _rests(texts.take(pa.array(near)), nearest.take(pa.array(near)))
        for place, value in zip(near.tolist(), found, strict=True):
            if value is None:
                raise field.refused(texts, place, _not_held(nearest[place].as_py()))
            rest[place] = value
    return Numbers(nearest, rest)


def _not_held(value: float) -> str:
    return f"a number that no float of 64 bits holds: it would be read as {value!r}"


def _odd(texts: Any, nearest: Any) -> I64:
    """Find the texts of which it must be looked at whether a float holds them: few, so that time goes to few."""
    if not pa.types.is_string(texts.type):
        return np.empty(0, np.int64)  # numbers that packtool counted: far below 2^53
    size = np.abs(nearest.fill_null(1.0).to_numpy())
    length = pc.fill_null(pc.binary_length(texts), 0).to_numpy()
    held = (length <= _DIGITS) & (size >= _SMALL) & (size <= _WHOLE)
    held |= (length <= len("-0.0")) & (size == 0)
    if held.all():
        return np.empty(0, np.int64)
    # What a program wrote that had the number as a float gives the same float back; not so digits beyond 2^53.
    written = mask_of(pc.fill_null(pc.equal(nearest.cast(pa.string()), texts), True))
    digits = mask_of(pc.fill_null(pc.match_substring_regex(texts, "^[-+]?[0-9]+$"), False))
    return np.flatnonzero(~held & ~(written & ((size <= _WHOLE) | ~digits)))


def _rests(texts: Any, nearest: Any) -> list[int | None] | I64:
    """Return the rest of each number beyond its float; None for a number that can't be told from others."""
    values: npt.NDArray[np.float64] = nearest.to_numpy()
    if (np.abs(values) <= _INT64).all():
        try:
            whole: I64 = texts.cast(pa.int64()).to_numpy()  # all at once, such as nanoseconds and ids
            return whole - values.astype(np.int64)
        except pa.ArrowInvalid:
            pass  # not all are whole numbers, as digits
    return list(map(_rest, texts.to_pylist(), values.tolist()))


def _rest(text: str, value: float) -> int | None:
    """Return the rest of a number beyond its float; None if it can't be told from others.

    With a point or an exponent a text means the float, of any size, if the float gives the text back, written with as
    many digits.

    >>> _rest("9007199254740993", 2.0**53), _rest("1e23", 1e23), _rest("0.10000000000000000001", 0.1)
    (1, 0, None)
    """
    exact = Decimal(text)
    if not exact.is_finite():
        return 0  # written so
    if np.isinf(value):
        return None
    if text.lstrip("+-").isdecimal():
        rest = int(exact) - int(value)
        if abs(rest) < 1 << 63:
            return rest
    digits = len(exact.as_tuple().digits)
    if Context(prec=digits).create_decimal(Decimal(value)) == exact:
        return 0
    return None


def first_unread(values: Any, type_: pa.DataType) -> int:
    """Return the place of the first value that can't be read as of a type; there is one.

    >>> first_unread(pa.array(["1", None, "b", "2", "c"]), pa.float64())
    2
    """
    low, high = 0, len(values) - 1  # it is among these
    while low < high:
        middle = (low + high) // 2
        try:
            values[low : middle + 1].cast(type_)
            low = middle + 1
        except pa.ArrowInvalid:
            high = middle
    return low


def mask_of(values: Any) -> Mask:
    """Return booleans of Arrow as an array.

    >>> mask_of(pa.array([True, False]))
    array([ True, False])
    """
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    mask: Mask = values.to_numpy(zero_copy_only=False)
    return mask
