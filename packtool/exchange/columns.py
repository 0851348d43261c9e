"""Find the columns of token ids in tables and records of other tools, and of which tokens train."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from packtool.errors import DataError
from packtool.exchange.model import ReadOptions
from packtool.reading.batch import IGNORED

IDS = ("input_ids", "tokens", "token_ids", "ids")
"""Columns to look for ids in, in this order, unless one is named."""
MASKS = ("labels", "loss_mask", "completion_mask", "assistant_masks")
"""Columns that say which tokens train; a token does where all that there are say so."""
_ROWS = ("seq_lengths", "seq_start_id", "position_ids", "cu_seqlens")
"""Columns that only rows of several documents have."""


def columns_to_read(names: Collection[str], options: ReadOptions, where: str) -> list[str]:
    """List the columns to read: that of the ids, then those that say which tokens train.

    Raises:
        DataError: there are no ids, or not in the column that was asked for; or others say that these are packed rows.

    >>> columns_to_read(["text", "loss_mask", "ids", "labels"], ReadOptions(np.dtype("<u2")), "a.parquet")
    ['ids', 'labels', 'loss_mask']
    """
    found = [name for name in ([options.field] if options.field else IDS) if name in names]
    if not found:
        wanted = options.field or f"called {', '.join(IDS[:-1])} or {IDS[-1]}"
        what = f"no column {wanted}; there are {', '.join(names)}"
        raise DataError("missing-ids", what, remedy="name the column of ids with --field", where=where)
    ids = found[0]
    if options.ids_only:
        return [ids]
    for name in names:
        if name in _ROWS and name != ids:
            raise rows_not_documents(f"column {name} says that these are packed rows", where)
    return [ids, *(name for name in MASKS if name in names and name != ids)]


def trained(ids: npt.NDArray[Any], masks: Mapping[str, npt.NDArray[Any]], where: str) -> npt.NDArray[np.uint8]:
    """Return whether each token trains: 1 or 0.

    Args:
        ids: of some tokens.
        masks: by their names, each with a value for every token: `labels` has the id, not shifted, or -100; the others
            1 or 0.
        where: for messages.

    Raises:
        DataError: labels that are other tokens, or a weight that is neither 0 nor 1.

    >>> ids = np.array([5, 6, 7])
    >>> trained(ids, {"labels": np.array([-100, 6, 7]), "loss_mask": np.array([1, 1, 0])}, "a.jsonl")
    array([0, 1, 0], dtype=uint8)
    """
    out = np.ones(len(ids), np.bool_)
    for name, values in masks.items():
        if name == "labels":
            here = values != IGNORED
            wrong = np.flatnonzero(here & (values != ids))
            what = "labels has other tokens than the ids, as if it were shifted"
            remedy = "make labels the ids themselves, -100 where they do not train"
        else:
            here = values.astype(np.float64) == 1
            wrong = np.flatnonzero(~here & (values.astype(np.float64) != 0))
            what, remedy = f"{name} has a value other than 0 and 1", "leave a token out of the loss as a whole, or not"
        if len(wrong):
            at = int(wrong[0])
            what += f" (token {at}: {values[at]}, where the id is {ids[at]})"
            raise DataError("bad-mask", what, remedy=f"{remedy}; or give --ids-only", where=where)
        out &= here
    return out.view(np.uint8)


def bad_mask(what: str, where: str) -> DataError:
    """Return the error for a mask that does not cover all tokens."""
    remedy = "give every record the same columns, as long as its ids; or give --ids-only"
    return DataError("bad-mask", what, remedy=remedy, where=where)


def rows_not_documents(what: str, where: str) -> DataError:
    """Return the error for packed rows where whole documents are wanted."""
    remedy = "import the documents that were packed, or give --ids-only to take each row for one document"
    return DataError("import-loses", f"{what}, not whole documents", remedy=remedy, where=where)
