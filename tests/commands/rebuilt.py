"""Pieces of rows, held against the documents that they are of."""

from __future__ import annotations

import numpy as np

from packtool.formats.packed import PackedDataset
from packtool.formats.token_store import TokenStore


def rebuilt(dataset: PackedDataset, store: TokenStore) -> int:
    """Hold every stored piece against its document; the number of document tokens found."""
    found = 0
    for bucket in dataset.buckets:
        rows = bucket.segments(0, bucket.rows)
        tokens = bucket.tokens(0, bucket.rows).reshape(-1)
        place = 0
        for document, start, length in zip(rows.document, rows.start, rows.length, strict=True):
            if document >= 0:
                piece = store.document(int(document))[start : start + length]
                np.testing.assert_array_equal(tokens[place : place + length], piece)
                found += int(length)
            place += int(length)
    return found
