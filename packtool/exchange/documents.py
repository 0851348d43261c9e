"""Turn what a reader yields into documents of a token store: every id known, every document ended by one EOS."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from packtool.errors import DataError
from packtool.exchange.model import Found
from packtool.plan import I64

Ids = npt.NDArray[Any]


class Documents(NamedTuple):
    """Some documents: their ids, each with EOS last; their lengths; and whether each id trains, None where all do."""

    ids: Ids
    lengths: I64
    loss: npt.NDArray[np.uint8] | None = None


@dataclass
class Counts:
    """Counts of imported documents and tokens.

    Attributes:
        documents, tokens: stored.
        empty: documents without a token, left out.
        eos_added: documents that did not end with EOS, and were given one.
    """

    documents: int = 0
    tokens: int = 0
    empty: int = 0
    eos_added: int = 0


def documents(parts: Iterator[Found], eos_id: int, vocab_size: int, counts: Counts, where: str) -> Iterator[Documents]:
    """Return whole documents, each ended by EOS.

    Where boundaries are not known, a document ends with each EOS.

    Raises:
        DataError: an id that is not in the vocabulary.
    """
    open_: list[Ids] = []  # the beginning of a document whose end is still to come
    read = 0
    for each in parts:
        _require_ids(each.tokens, vocab_size, read, where)
        read += len(each.tokens)
        if each.lengths is not None:
            yield _ended(each.tokens, each.lengths, eos_id, counts, each.loss)
            continue
        ends = np.flatnonzero(each.tokens == eos_id) + 1
        last = int(ends[-1]) if len(ends) else 0
        if last:
            ids = np.concatenate([*open_, each.tokens[:last]])
            ends += len(ids) - last
            open_ = []
            yield _ended(ids, np.diff(ends, prepend=0), eos_id, counts)
        if last < len(each.tokens):
            open_.append(each.tokens[last:])
    if open_:
        ids = np.concatenate(open_)
        yield _ended(ids, np.array([len(ids)]), eos_id, counts)


def rows_not_documents(what: str, where: str) -> DataError:
    """Return the error for packed rows where whole documents are wanted."""
    remedy = "import the documents that were packed, or give --ids-only to take each row for one document"
    return DataError("import-loses", f"{what}, not whole documents", remedy=remedy, where=where)


def _ended(ids: Ids, lengths: I64, eos_id: int, counts: Counts, loss: npt.NDArray[np.uint8] | None = None) -> Documents:
    """End each document that has tokens with an EOS; one that is added trains if the document does.

    >>> counts = Counts()
    >>> found = _ended(np.array([5, 6, 0, 7]), np.array([3, 0, 1]), 0, counts, np.array([0, 1, 0, 1], np.uint8))
    >>> found.ids, found.lengths, found.loss
    (array([5, 6, 0, 7, 0]), array([3, 2]), array([0, 1, 0, 1, 1], dtype=uint8))
    >>> counts
    Counts(documents=2, tokens=5, empty=1, eos_added=1)
    """
    kept = lengths[lengths > 0]
    ends = np.cumsum(kept)
    lacking = ids[ends - 1] != eos_id
    if lacking.any():
        ids = np.insert(ids, ends[lacking], eos_id)
        if loss is not None:
            trains = np.logical_or.reduceat(loss, ends - kept)
            loss = np.insert(loss, ends[lacking], trains[lacking])
        kept = kept + lacking
    counts.documents += len(kept)
    counts.tokens += len(ids)
    counts.empty += len(lengths) - len(kept)
    counts.eos_added += int(lacking.sum())
    return Documents(ids, kept, loss)


def _require_ids(ids: Ids, vocab_size: int, before: int, where: str) -> None:
    if not len(ids) or (int(ids.max()) < vocab_size and int(ids.min()) >= 0):
        return
    place = int(np.flatnonzero((ids < 0) | (ids >= vocab_size))[0])
    raise DataError(
        "id-out-of-range",
        f"token {before + place} is {int(ids[place])}, but the tokenizer's vocabulary has {vocab_size} ids, from 0",
        remedy="give the tokenizer that made these ids, or another --dtype",
        where=where,
    )
