"""The attention cost of each row, computed once from the segments and kept in the cache directory.

The file is named by the digest of the dataset's manifest, so all copies of a dataset share it, and any dataset with
segments has one, whatever version wrote it.
"""

from __future__ import annotations

import secrets
from pathlib import Path

import numpy as np

from packtool.plan import I64
from packtool.reading.rows import Rows
from packtool.shuffling.balance import pairs_of

DIRECTORY = "row-costs"
_AT_ONCE = 1 << 13  # rows whose segments are held at once


def row_pairs(rows: Rows, numbers: I64) -> I64:
    """Count query-key pairs of some rows under causal attention within documents, from their segments.

    Raises:
        UsageError: the dataset was written with ``--no-segments``.
    """
    parts = [numbers[first : first + _AT_ONCE] for first in range(0, len(numbers), _AT_ONCE)]
    return np.concatenate([np.empty(0, np.int64), *(pairs_of(rows.segments_of(part)) for part in parts)])


def kept_pairs(rows: Rows, file: Path) -> I64:
    """Return the pairs of all rows, from the file if there is one; else compute them, and keep them if that can be
    written.

    Args:
        rows: in stored order.
    """
    try:
        kept: I64 = np.load(file, mmap_mode="r")
        if kept.shape == (len(rows),) and kept.dtype == np.int64:
            return kept
    except (OSError, ValueError, EOFError):
        pass
    pairs = row_pairs(rows, np.arange(len(rows)))
    unfinished = file.with_name(f"{file.name}.{secrets.token_hex(4)}")  # nobody else writes to what a reader maps
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with unfinished.open("xb") as out:
            np.save(out, pairs)
        unfinished.replace(file)
    except OSError:
        unfinished.unlink(missing_ok=True)  # where nothing can be kept, they are computed again
    return pairs
