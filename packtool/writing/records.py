"""Records of tokens and whether each trains: they move together, and come apart where they are written."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from packtool.storage.names import LOSS

Array = npt.NDArray[Any]


def with_loss(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the type of a token of this type together with its loss.

    >>> with_loss(np.dtype("<u2"))
    dtype([('token', '<u2'), ('loss', 'u1')])
    """
    return np.dtype([("token", dtype), ("loss", LOSS)])


def has_loss(dtype: np.dtype[Any]) -> bool:
    """Return whether this is the type of tokens with their loss."""
    return dtype.names is not None


def joined(tokens: Array, loss: Array) -> Array:
    """Join tokens and as many values of loss into records.

    >>> joined(np.array([7, 8], "<u2"), np.array([0, 1], "u1")).tolist()
    [(7, 0), (8, 1)]
    """
    out = np.empty(tokens.shape, with_loss(tokens.dtype))
    out["token"], out["loss"] = tokens, loss
    return out


def parted(tokens: Array) -> tuple[Array, Array | None]:
    """Separate tokens, and their loss if they have it."""
    return (tokens["token"], tokens["loss"]) if has_loss(tokens.dtype) else (tokens, None)


def padding(shape: tuple[int, ...], dtype: np.dtype[Any], pad_id: int) -> Array:
    """Make padding of either type; it never trains.

    >>> padding((2,), with_loss(np.dtype("<u2")), 5).tolist()
    [(5, 0), (5, 0)]
    """
    out = np.zeros(shape, dtype)
    out["token" if has_loss(dtype) else ...] = pad_id
    return out
