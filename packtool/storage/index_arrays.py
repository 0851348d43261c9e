"""Arrays of numbers that locate other data: checked before anything is read by them.

All checks are vectorised, and read what is about to be used anyway. They raise, or leave no number that points outside
what it points into.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from packtool.errors import DataError
from packtool.plan import I64, INSERTED_EOS, Ints

LONGEST_DOCUMENT = (1 << 32) - 1
"""Tokens, EOS included: lengths and places in documents are stored in 32 bits."""
_AGAIN = "make the dataset again, or copy it again"


def document_lengths(offsets: npt.NDArray[np.int64], tokens: int, where: str) -> I64:
    """Compute the length of each document, in tokens, from the offsets of a shard of a token store.

    Args:
        offsets: documents + 1.
        tokens: in the shard.

    Raises:
        DataError: the documents do not cover all tokens without gaps, or one of them is empty or too long.

    >>> document_lengths(np.array([0, 3, 5]), 5, "offsets-00000.npy")
    array([3, 2])
    """
    lengths: I64 = np.diff(offsets)
    if not len(lengths) or offsets[0] != 0 or offsets[-1] != tokens or lengths.min() < 1 or lengths.max() > tokens:
        what = f"its offsets do not divide its {tokens} tokens into documents"
        raise DataError("bad-offsets", what, remedy=_AGAIN, where=where)
    if (longest := int(lengths.max())) > LONGEST_DOCUMENT:
        what = f"a document of {longest:,} tokens, where {LONGEST_DOCUMENT:,} is the most"
        raise DataError("document-too-long", what, remedy="divide it, or leave it out", where=where)
    return lengths


def count_trained(loss: npt.NDArray[np.uint8], where: str) -> int:
    """Count the tokens that train.

    Args:
        loss: of any tokens, 0 or 1 for each.

    Raises:
        DataError: it is something else for one of them.

    >>> count_trained(np.array([0, 1, 1], np.uint8), "loss-00000.npy")
    2
    """
    if int(loss.max(initial=0)) > 1:
        what = f"token {int(np.argmax(loss.reshape(-1) > 1))} has loss {int(loss.max())}, which is neither 0 nor 1"
        raise DataError("bad-loss", what, remedy=_AGAIN, where=where)
    return int(np.count_nonzero(loss))


def require_rows(offsets: npt.NDArray[np.int64], segments: int, first_row: int, where: str) -> None:
    """Check the offsets of rows of a segment table: ascending, no row empty, none beyond `segments`.

    Raises:
        DataError: naming the row.
    """
    if not len(offsets):
        return
    if not (offsets[0] >= 0 and offsets[-1] <= segments and (np.diff(offsets) > 0).all()):
        wrong = np.flatnonzero((offsets[:-1] < 0) | (np.diff(offsets) < 1) | (offsets[1:] > segments))
        raise _bad_row(first_row + int(wrong[0]), "its segments lie outside the segment table", where)


def require_segments(
    table: npt.NDArray[Any],
    offsets: Ints,
    lengths: Ints | None,
    sequence_length: int,
    first_row: int | Ints,
    where: str,
) -> None:
    """Check the segments of rows: inside their documents, and each row full.

    Args:
        table: of `SEGMENT`, the segments of these rows.
        offsets: rows + 1, relative to the table's first; already checked.
        lengths: of every document, EOS included; None where segments are not looked up in their documents.
        first_row: number of the first row, or of each row, for messages.

    Raises:
        DataError: naming the first row that is wrong.
    """
    if not len(table):
        return
    document, length = table["document"], table["length"].astype(np.int64)
    end = table["start"] + length
    real = document >= 0
    inside = (document >= INSERTED_EOS) & (table["repeated"] <= length) & (length > 0)
    if lengths is None:
        inside &= (document != INSERTED_EOS) | (length == 1)
    elif (inside := inside & (document < len(lengths))).all() and real.all():
        inside = end <= lengths[document]
    else:
        held = inside & real
        inside[held] = end[held] <= lengths[document[held]]
        inside &= (document != INSERTED_EOS) | (length == 1)
    if not inside.all():
        row = int(np.searchsorted(offsets, np.flatnonzero(~inside)[0], side="right")) - 1
        raise _bad_row(_number(first_row, row), "a segment lies outside its document", where)
    full = np.add.reduceat(length, np.asarray(offsets[:-1])) == sequence_length
    if not full.all():
        row = int(np.flatnonzero(~full)[0])
        raise _bad_row(_number(first_row, row), "its segments do not add up to the sequence length", where)


def _number(first_row: int | Ints, row: int) -> int:
    return first_row + row if isinstance(first_row, int) else int(first_row[row])


def require_atoms(begins: npt.NDArray[np.int64], rows: int, where: str) -> None:
    """Check the rows of a shard at which an atom begins: ascending, and inside the shard.

    Raises:
        DataError: they are not.
    """
    if len(begins) and not (begins[0] >= 0 and begins[-1] < rows and (np.diff(begins) > 0).all()):
        raise DataError("bad-segments", f"its atoms do not lie in its {rows} rows", remedy=_AGAIN, where=where)


def require_order(order: npt.NDArray[np.int64], atoms: int, where: str) -> None:
    """Check that an order names every atom once.

    Raises:
        DataError: naming an atom that it does not.
    """
    if len(order) != atoms:
        what = f"orders {len(order)} atoms, but its base has {atoms}"
        raise DataError("bad-order", what, remedy=_AGAIN, where=where)
    seen = np.zeros(atoms, np.bool_)
    seen[order[(order >= 0) & (order < atoms)]] = True
    if not seen.all():
        what = f"atom {int(np.flatnonzero(~seen)[0])} is not in it"
        raise DataError("bad-order", what, remedy=_AGAIN, where=where)


def require_batches(table: npt.NDArray[Any], buckets: Sequence[tuple[int, int]], where: str) -> None:
    """Check that batches name rows that there are, and none twice.

    Args:
        table: of `BATCH`.
        buckets: (sequence length, rows) of each bucket.

    Raises:
        DataError: naming the first batch that is wrong.
    """
    rows = dict(buckets)
    most = np.array([rows.get(length, -1) for length in table["bucket"].tolist()], np.int64)
    first, count = table["first_row"], table["rows"]
    good = (first >= 0) & (count > 0) & (first <= most) & (count <= most - np.clip(first, 0, None))
    if good.all():
        order = np.lexsort((first, table["bucket"]))
        near = table[order]
        twice = (near["bucket"][1:] == near["bucket"][:-1]) & (
            near["first_row"][1:] < near["first_row"][:-1] + near["rows"][:-1]
        )
        good[order[1:]] = ~twice
    if not good.all():
        what = f"batch {int(np.flatnonzero(~good)[0])} names rows that are not there, or that another batch has"
        raise DataError("bad-order", what, remedy=_AGAIN, where=where)


def _bad_row(row: int, what: str, where: str) -> DataError:
    return DataError("bad-segments", f"row {row}: {what}", remedy=_AGAIN, where=where)
