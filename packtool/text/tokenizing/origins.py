"""The origin of each document and a hash of its text, which a token store keeps with the tokens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import xxhash

from packtool.formats.names import ORIGIN

OriginArray = npt.NDArray[Any]
"""An array of ORIGIN."""


def origins(file: int, before: int, numbers: Sequence[int], utf8: Sequence[bytes]) -> OriginArray:
    """Return the origins of consecutive documents of one file, with the xxh3-64 of their UTF-8.

    Args:
        file: number of the file.
        before: number of records of the file before these documents' block.
        numbers: records of the documents, counted from 1 after `before`.
        utf8: texts of the documents.

    >>> origins(0, 10, [1, 3], [b"a", b"b"])["record"].tolist()
    [11, 13]
    """
    out = np.empty(len(utf8), ORIGIN)
    out["file"] = file
    out["record"] = np.asarray(numbers, np.uint64) + np.uint64(before)
    out["hash"] = np.array(list(map(xxhash.xxh3_64_intdigest, utf8)), np.uint64)
    return out
