"""The origin of each document and a hash of its text, which a token store keeps beside the tokens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import xxhash

from packtool.corpus.records import Document
from packtool.storage.names import ORIGIN

Origins = npt.NDArray[Any]
"""An array of ORIGIN."""


def origins(
    file: int, before: int, numbers: Sequence[int], documents: Sequence[Document], utf8: Sequence[bytes | None]
) -> Origins:
    """Return the origins of consecutive documents of one file, with the xxh3-64 of the UTF-8 of each.

    Args:
        file: its number.
        before: records before them.
        numbers: record of each, counted from 1 after those before.
        documents: texts, or their parts.
        utf8: of each of them, where it is at hand; None for what comes in parts.

    >>> short, long = origins(0, 0, [1, 2], ["été", ["ét", "é"]], ["été".encode(), None])["hash"]
    >>> bool(short == long)
    True
    """
    digest = xxhash.xxh3_64_intdigest
    hashes = [_of_pieces(documents[n]) if data is None else digest(data) for n, data in enumerate(utf8)]
    out = np.empty(len(documents), ORIGIN)
    out["file"] = file
    out["record"] = np.asarray(numbers, np.uint64) + np.uint64(before)
    out["hash"] = np.array(hashes, np.uint64)
    return out


def _of_pieces(document: Document) -> int:
    hashed = xxhash.xxh3_64()
    for piece in [document] if isinstance(document, str) else document:
        hashed.update(piece.encode())
    return hashed.intdigest()
