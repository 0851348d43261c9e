"""Cut documents to whole rows and a tail each: the first step of every bin-packing strategy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from packtool.packing.bins.assign import Keys
from packtool.plan import I64, Ints

_BATCH = 1 << 18  # documents that are cut at a time

RowsAndTails = Callable[[I64, int], tuple[I64, I64]]
"""From the lengths of documents of at least L tokens, and L: rows of each, tokens of each one's tail (below L)."""


@dataclass(frozen=True)
class CutDocuments:
    """Whole rows of long documents, and tails.

    Attributes:
        long: documents that have whole rows.
        rows: how many each of them has.
        keys: of each document, L minus the tokens of its tail; L where it has none to pack. So ascending keys are
            descending tails.
        counts: number of tails of each length, 0 to L - 1; none is of length 0.
        eos_alone: tails of EOS alone, which are left out.
    """

    long: Ints
    rows: I64
    keys: Keys
    counts: I64
    eos_alone: int

    @property
    def whole_rows(self) -> int:
        """Rows of long documents, all together."""
        return int(self.rows.sum())

    @property
    def key_counts(self) -> I64:
        """Documents of each key, 0 to L."""
        without_tail = len(self.keys) - int(self.counts.sum())
        return np.concatenate([[0], self.counts[:0:-1], [without_tail]])


def plain(lengths: I64, sequence_length: int) -> tuple[I64, I64]:
    """Cut as many whole rows as there are, then the tail."""
    rows, tails = np.divmod(lengths, sequence_length)
    return rows, tails


def cut_documents(lengths: Ints, sequence_length: int, rows_and_tails: RowsAndTails = plain) -> CutDocuments:
    """Cut documents to whole rows and tails.

    Args:
        lengths: tokens of each document with its EOS, at least 1.
        sequence_length: tokens in a row, L, at least 2.
        rows_and_tails: how a document of at least L tokens is cut.

    >>> documents = cut_documents(np.array([3, 9, 4, 8]), 4)
    >>> documents.long, documents.rows, documents.keys, documents.counts, documents.eos_alone
    (array([1, 2, 3]), array([2, 1, 2]), array([1, 4, 4, 4], dtype=uint16), array([0, 0, 0, 1]), 1)
    """
    keys: Keys = np.empty(len(lengths), np.uint16 if sequence_length < 1 << 16 else np.uint32)
    key_counts = np.zeros(sequence_length + 1, np.int64)
    long, rows = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    eos_alone = 0
    for first in range(0, len(lengths), _BATCH):
        part = lengths[first : first + _BATCH].astype(np.int64)
        here = np.flatnonzero(part >= sequence_length)
        count, tail = rows_and_tails(part[here], sequence_length)
        long.append(here + first)
        rows.append(count)
        part[here] = tail
        alone = np.flatnonzero(part == 1)
        eos_alone += len(alone)
        part[alone] = 0
        key = sequence_length - part
        keys[first : first + _BATCH] = key
        key_counts += np.bincount(key, minlength=sequence_length + 1)
    counts = key_counts[:0:-1].copy()
    counts[0] = 0
    return CutDocuments(np.concatenate(long), np.concatenate(rows), keys, counts, eos_alone)
