"""Turn what a format's reader yields into a token store: every id known, every document ended by one EOS."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from packtool.engines import Threads
from packtool.errors import DataError
from packtool.exchange.model import Format, Found, ReadOptions
from packtool.formats.schema import TokenizerInfo
from packtool.formats.token_store import write_loss, write_shard
from packtool.outputs.output import Output
from packtool.places.npy import FileEntry
from packtool.planning.plan import I64, offsets_of

SHARD_TOKENS = 1 << 25
"""A shard closes when it has this many, which bounds memory; so cuts depend on the input alone."""
Ids = npt.NDArray[Any]


class ImportedFile(msgspec.Struct, frozen=True):
    """The result of one input.

    Attributes:
        shards: the files of each: tokens, offsets and perhaps loss.
        documents, tokens: stored.
        empty: documents without a token, left out.
        eos_added: documents that did not end with EOS, and were given one.
        trained: tokens that train, where it is stored which do.
    """

    shards: list[list[FileEntry]]
    documents: int
    tokens: int
    empty: int
    eos_added: int
    trained: int = 0

    @property
    def files(self) -> list[FileEntry]:
        """Of all its shards."""
        return [file for shard in self.shards for file in shard]


def import_file(
    file: Path, chosen: Format, options: ReadOptions, info: TokenizerInfo, output: Output, number: int, *, loss: bool
) -> ImportedFile:
    """Write the documents of one input as shards.

    Args:
        number: of the input, which names its shards.
        loss: write which tokens train; where the input does not say it, all do.

    Raises:
        DataError: it is damaged or of another format, or has an id that is not in the vocabulary.
    """
    assert chosen.read is not None
    shards: list[list[FileEntry]] = []
    delivery = output.delivery(Threads(1))
    waiting: list[_Documents] = []
    documents = tokens = empty = eos_added = trained = 0

    def close() -> None:
        if any(len(part.ids) for part in waiting):
            at = number, len(shards)
            offsets = offsets_of(np.concatenate([part.lengths for part in waiting]))
            with delivery.attempt(f"file-{number:05d}.") as attempt:
                shards.append([*write_shard(attempt, at, [part.ids for part in waiting], offsets, info.vocab_size)])
                if loss:
                    shards[-1].append(write_loss(attempt, at, [part.trains for part in waiting]))
                delivery.deliver(attempt, shards[-1])
        waiting.clear()

    for part in _documents(chosen.read(file, options), info, str(file)):
        waiting.append(part)
        documents += len(part.lengths)
        tokens += len(part.ids)
        empty += part.empty
        eos_added += part.eos_added
        trained += int(np.count_nonzero(part.trains)) if loss else 0
        if sum(len(part.ids) for part in waiting) >= SHARD_TOKENS:
            close()
    close()
    return ImportedFile(shards, documents, tokens, empty, eos_added, trained)


class _Documents(NamedTuple):
    """Some whole documents.

    Attributes:
        ids: of all of them, each with EOS last.
        lengths: of each.
        loss: whether each id trains; None where all do.
        empty: documents without a token among them, left out.
        eos_added: documents among them that did not end with EOS.
    """

    ids: Ids
    lengths: I64
    loss: npt.NDArray[np.uint8] | None
    empty: int
    eos_added: int

    @property
    def trains(self) -> npt.NDArray[np.uint8]:
        """Whether each id trains: 1 or 0."""
        return np.ones(len(self.ids), np.uint8) if self.loss is None else self.loss


def _documents(parts: Iterable[Found], info: TokenizerInfo, where: str) -> Iterator[_Documents]:
    """Yield whole documents, each ended by EOS. Where boundaries are not known, a document ends with each EOS."""
    begun: list[Ids] = []  # of a document whose end is still to come
    read = 0
    for part in parts:
        _require_ids(part.tokens, info.vocab_size, read, where)
        read += len(part.tokens)
        if part.lengths is not None:
            yield _ended(part.tokens, part.lengths, info.eos_id, part.loss)
            continue
        ends = np.flatnonzero(part.tokens == info.eos_id) + 1
        last = int(ends[-1]) if len(ends) else 0
        if last:
            ids = np.concatenate([*begun, part.tokens[:last]])
            ends += len(ids) - last
            begun = []
            yield _ended(ids, np.diff(ends, prepend=0), info.eos_id)
        if last < len(part.tokens):
            begun.append(part.tokens[last:])
    if begun:
        ids = np.concatenate(begun)
        yield _ended(ids, np.array([len(ids)]), info.eos_id)


def _ended(ids: Ids, lengths: I64, eos_id: int, loss: npt.NDArray[np.uint8] | None = None) -> _Documents:
    """End each document that has tokens with an EOS; one that is added trains if the document does.

    >>> found = _ended(np.array([5, 6, 0, 7]), np.array([3, 0, 1]), 0, np.array([0, 1, 0, 1], np.uint8))
    >>> found.ids, found.lengths, found.loss
    (array([5, 6, 0, 7, 0]), array([3, 2]), array([0, 1, 0, 1, 1], dtype=uint8))
    >>> found.empty, found.eos_added
    (1, 1)
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
    return _Documents(ids, kept, loss, len(lengths) - len(kept), int(lacking.sum()))


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
