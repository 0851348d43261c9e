"""Imported documents to the shards of a token store, file by file."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import numpy as np

from packtool.exchange.documents import Counts, Ids
from packtool.plan import I64, offsets_of
from packtool.storage.files import FileEntry
from packtool.storage.output import Output
from packtool.storage.token_store import write_shard

SHARD_TOKENS = 1 << 25
"""A shard closes when it has so many, which bounds memory; so cuts depend on the input alone."""


class ImportedFile(msgspec.Struct, frozen=True):
    """What became of one input: the (tokens, offsets) files of its shards, and counts."""

    shards: list[tuple[FileEntry, FileEntry]]
    documents: int
    tokens: int
    empty: int
    eos_added: int


def store_file(
    place: Output, first_shard: int, found: Iterable[tuple[Ids, I64]], counts: Counts, vocab_size: int
) -> ImportedFile:
    """Write the documents of one input as shards from `first_shard` on."""
    shards: list[tuple[FileEntry, FileEntry]] = []
    ids: list[Ids] = []
    lengths: list[I64] = []

    def close() -> None:
        if lengths and sum(map(len, lengths)):
            number = first_shard + len(shards)
            shards.append(write_shard(place.staged, number, ids, offsets_of(np.concatenate(lengths)), vocab_size))
            place.send(place.staged, shards[-1])
        ids.clear()
        lengths.clear()

    for tokens, sizes in found:
        ids.append(tokens)
        lengths.append(sizes)
        if sum(map(len, ids)) >= SHARD_TOKENS:
            close()
    close()
    return ImportedFile(shards, counts.documents, counts.tokens, counts.empty, counts.eos_added)


def files_of(done: ImportedFile) -> list[FileEntry]:
    """The files of an input's shards."""
    return [file for shard in done.shards for file in shard]
