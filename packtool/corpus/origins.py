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


def content_hashes(documents: Sequence[Document], utf8: Sequence[bytes | None]) -> npt.NDArray[np.uint64]:
    """Hash each document's UTF-8 text with xxh3-64: the same for the same text, however it is encoded or divided.

    Args:
        documents: texts, or their parts.
        utf8: of each of them, where it is at hand; None for what comes in parts.

    >>> short, long = content_hashes(["été", ["ét", "é"]], ["été".encode(), None])
    >>> bool(short == long)
    True
    """
    digest = xxhash.xxh3_64_intdigest
    out = [0 if data is None else digest(data) for data in utf8]
    for number, data in enumerate(utf8):
        if data is None:
            hashed = xxhash.xxh3_64()
            document = documents[number]
            for piece in [document] if isinstance(document, str) else document:
                hashed.update(piece.encode())
            out[number] = hashed.intdigest()
    return np.array(out, np.uint64)


def origins(
    file: int, before: int, numbers: Sequence[int], documents: Sequence[Document], utf8: Sequence[bytes | None]
) -> Origins:
    """Return the origins of consecutive documents of one file.

    Args:
        file: its number.
        before: records before them.
        numbers: record of each, counted from 1 after those before.
        documents, utf8: as `content_hashes` takes them.
    """
    out = np.empty(len(documents), ORIGIN)
    out["file"] = file
    out["record"] = np.asarray(numbers, np.uint64) + np.uint64(before)
    out["hash"] = content_hashes(documents, utf8)
    return out
