"""Convert other tools' columns of which tokens train to the one of a token store."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from packtool.errors import DataError

MASKS = ("labels", "loss_mask", "completion_mask", "assistant_masks")
"""What they are called; a token trains where all that there are say so."""
IGNORED = -100


def masks_of(names: Collection[str]) -> list[str]:
    """List the columns that say which tokens train.

    >>> masks_of(["text", "loss_mask", "labels"])
    ['labels', 'loss_mask']
    """
    return [name for name in MASKS if name in names]


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
