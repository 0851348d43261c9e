"""Where each document came from, and a hash of its text: what a token store keeps beside the tokens."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import xxhash

from packtool.corpus.records import Document
from packtool.storage.names import ORIGIN

Origins = npt.NDArray[Any]
"""An array of ORIGIN."""


def content_hashes(documents: Sequence[Document]) -> npt.NDArray[np.uint64]:
    """xxh3-64 of each document's UTF-8 text: the same for the same text, however it is encoded or divided.

    >>> short, long = content_hashes(["été", ["ét", "é"]])
    >>> bool(short == long)
    True
    """
    import pyarrow as pa

    # Arrow asks each string for its UTF-8, which Python then keeps for the encoder: no second conversion.
    texts = pa.array([text if isinstance(text, str) else "" for text in documents], pa.large_string())
    _, ends, data = texts.buffers()
    bounds = np.frombuffer(ends, np.int64).tolist()
    view = memoryview(data) if data is not None else memoryview(b"")
    digest = xxhash.xxh3_64_intdigest
    out = [digest(view[first:last]) for first, last in pairwise(bounds)]
    for number, document in enumerate(documents):
        if not isinstance(document, str):
            hashed = xxhash.xxh3_64()
            for piece in document:
                hashed.update(piece.encode())
            out[number] = hashed.intdigest()
    return np.array(out, np.uint64)


def origins(file: int, before: int, numbers: Sequence[int], documents: Sequence[Document]) -> Origins:
    """Origins of consecutive documents of one file.

    Args:
        file: its number.
        before: records before them.
        numbers: record of each, counted from 1 after those before.
        documents: the same number.
    """
    out = np.empty(len(documents), ORIGIN)
    out["file"] = file
    out["record"] = np.asarray(numbers, np.uint64) + np.uint64(before)
    out["hash"] = content_hashes(documents) if documents else 0
    return out
