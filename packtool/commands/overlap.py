"""List the documents of a token store that share a run of tokens with documents of others, such as an evaluation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from packtool.commands.shared_runs import BYTES_A_TOKEN, TextRuns, too_short
from packtool.errors import UsageError
from packtool.formats.token_store import Corpus, TokenStore
from packtool.places.place import Place
from packtool.planning.plan import offsets_of
from packtool.support.mapped import release
from packtool.support.sizes import machine_memory, plural, show_bytes


@dataclass(frozen=True)
class Overlap:
    """A document, and the first run of tokens that it shares with one of another store.

    Attributes:
        document: its number in the store.
        origin: its file and line.
        start: of the run in it, in tokens from its first.
        other_store: the store of the other document.
        other_document: its number there.
        other_origin: its file and line, where that store has them.
        other_start: of the run in it.
    """

    document: int
    origin: str
    start: int
    other_store: str
    other_document: int
    other_origin: str | None
    other_start: int


@dataclass(frozen=True)
class Overlaps:
    """All documents of a store that share a run with others.

    Attributes:
        tokens: of a run.
        documents: of the store, in all.
        found: the documents that share a run, in the order of the store.
        other_documents: of the other stores, in all.
        too_short: how many documents have fewer tokens than a run, and so can't share one.
    """

    tokens: int
    documents: int
    found: list[Overlap]
    other_documents: int
    too_short: int


def overlaps(place: Place, others: Sequence[Place], tokens: int) -> Overlaps:
    """Find the documents of a token store that share a run of tokens with a document of other stores.

    The other stores' runs are in memory; the store is read once.

    Args:
        tokens: of a run.

    Raises:
        UsageError: the stores differ in their tokenizer; the store does not record where its documents came from; the
            runs of the others would take more than half of the machine's memory.
        DataError: a store is missing or damaged.
    """
    corpus = Corpus([place, *others])  # says where their tokenizers differ
    store, *known = corpus.stores
    store.require_origins()
    _require_memory(known)
    skipped = int(corpus.tokenizer.bos_id is not None)
    lengths = np.concatenate([each.lengths() for each in known])
    every = np.concatenate([shard for each in known for shard in each.shards])
    runs = TextRuns(every, lengths, size=tokens, skipped=skipped)
    firsts = offsets_of(np.array([each.documents for each in known], np.int64))
    found: list[Overlap] = []
    of_store = store.lengths()
    for number, first in enumerate(store.first_documents[:-1].tolist()):
        here = of_store[first : int(store.first_documents[number + 1])]
        shard = store.shards[number]
        for run in runs.shared(shard, here):
            source = int(np.searchsorted(firsts, run.other, side="right")) - 1
            other = known[source]
            number_there = run.other - int(firsts[source])
            document = first + run.document
            found.append(
                Overlap(
                    document=document,
                    origin=store.origin(document),
                    start=run.start,
                    other_store=str(other.place),
                    other_document=number_there,
                    other_origin=_origin(other, number_there),
                    other_start=run.other_start,
                )
            )
        release([shard])
    return Overlaps(tokens, store.documents, found, len(lengths), too_short(lengths, tokens, skipped))


def _origin(store: TokenStore, document: int) -> str | None:
    if store.has_origins:
        return store.origin(document)
    return None


def _require_memory(stores: Sequence[TokenStore]) -> None:
    """Refuse stores whose runs take more than half of the machine's memory."""
    tokens = sum(store.tokens for store in stores)
    needed, granted = tokens * BYTES_A_TOKEN, machine_memory() // 2
    if needed > granted:
        what = (
            f"the runs of {plural(tokens, 'token')} take {show_bytes(needed)}, where half of this machine's memory is "
            f"{show_bytes(granted)}"
        )
        remedy = "name the smaller store after --overlap, or divide it and make a list for each part"
        raise UsageError("overlap-too-large", what, remedy=remedy, where="--overlap")
