"""Write imported documents to the shards of a token store, file by file."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import numpy as np

from packtool.exchange.documents import Counts, Documents, Ids
from packtool.places.npy import FileEntry
from packtool.plan import I64, offsets_of
from packtool.storage.output import Output
from packtool.storage.token_store import write_loss, write_shard

SHARD_TOKENS = 1 << 25
"""A shard closes when it has so many, which bounds memory; so cuts depend on the input alone."""


class ImportedFile(msgspec.Struct, frozen=True):
    """What became of one input: the files of its shards, tokens, offsets and perhaps loss, and counts."""

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


def store_file(
    place: Output, first_shard: int, arriving: Iterable[Documents], counts: Counts, vocab_size: int, *, with_loss: bool
) -> ImportedFile:
    """Write the documents of one input as shards from `first_shard` on.

    Args:
        with_loss: write which tokens train; all of those of which it is not said.
    """
    shards: list[list[FileEntry]] = []
    ids: list[Ids] = []
    lengths: list[I64] = []
    loss: list[Ids] = []
    trained = 0

    def close() -> None:
        if lengths and sum(map(len, lengths)):
            number = first_shard + len(shards)
            offsets = offsets_of(np.concatenate(lengths))
            shards.append([*write_shard(place.staged, number, ids, offsets, vocab_size)])
            if with_loss:
                shards[-1].append(write_loss(place.staged, number, loss))
            place.send(place.staged, shards[-1])
        ids.clear()
        lengths.clear()
        loss.clear()

    for some in arriving:
        ids.append(some.ids)
        lengths.append(some.lengths)
        if with_loss:
            loss.append(np.ones(len(some.ids), np.uint8) if some.loss is None else some.loss)
            trained += int(np.count_nonzero(loss[-1]))
        if sum(map(len, ids)) >= SHARD_TOKENS:
            close()
    close()
    return ImportedFile(shards, counts.documents, counts.tokens, counts.empty, counts.eos_added, trained)
