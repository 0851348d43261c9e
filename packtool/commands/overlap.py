"""List the documents of a token store that share a run of tokens with documents of others, such as an evaluation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from packtool.commands.shared_runs import BYTES_A_TOKEN, SharedRun, TextRuns, too_short
from packtool.errors import UsageError
from packtool.formats.token_store import Corpus, TokenStore
from packtool.places.place import Place
from packtool.planning.plan import I64, Ints, offsets_of
from packtool.support.mapped import release
from packtool.support.sizes import machine_memory, plural, show_bytes

_RESULT_BYTES = 512  # memory that a document takes that overlaps, with the names of both


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
    _require_memory(store, known)
    skipped = int(corpus.tokenizer.bos_id is not None)
    of_each: list[Ints] = []
    shards: list[Ints] = []
    counts: list[int] = []
    for each in known:
        of_each.append(each.lengths())
        shards += each.shards
        counts.append(each.documents)
    lengths, firsts = np.concatenate(of_each), offsets_of(np.array(counts, np.int64))
    runs = TextRuns(np.concatenate(shards), lengths, size=tokens, skipped=skipped)
    found: list[Overlap] = []
    of_store = store.lengths()
    for number, first in enumerate(store.first_documents[:-1].tolist()):
        here = of_store[first : int(store.first_documents[number + 1])]
        shard = store.shards[number]
        found += _found(store, first, known, firsts, runs.shared(shard, here))
        release([shard])
    return Overlaps(tokens, store.documents, found, len(lengths), too_short(lengths, tokens, skipped))


def _found(
    store: TokenStore, first: int, known: Sequence[TokenStore], firsts: I64, runs: Sequence[SharedRun]
) -> Iterator[Overlap]:
    """Yield the documents of a shard that share runs, with the names of both.

    Args:
        first: the first document of the shard.
        known: the other stores, whose documents are numbered through.
        firsts: the first document of each of them, and one after the last.
        runs: the shared runs; documents are counted from the first of the shard.
    """
    documents = np.array([run.document for run in runs], np.int64) + first
    others = np.array([run.other for run in runs], np.int64)
    sources = np.searchsorted(firsts, others, side="right") - 1
    others -= firsts[sources]
    names: list[str | None] = [None] * len(runs)
    for source, other in enumerate(known):
        places = np.flatnonzero(sources == source)
        if other.has_origins:
            for place, name in zip(places.tolist(), other.origins_named(others[places]), strict=True):
                names[place] = name
    origins = store.origins_named(documents)
    for number, run in enumerate(runs):
        yield Overlap(
            document=int(documents[number]),
            origin=origins[number],
            start=run.start,
            other_store=str(known[sources[number]].place),
            other_document=int(others[number]),
            other_origin=names[number],
            other_start=run.other_start,
        )


def _require_memory(store: TokenStore, others: Sequence[TokenStore]) -> None:
    """Refuse stores whose runs, with all that may be found, take more than half of the machine's memory."""
    tokens = sum(other.tokens for other in others)
    needed, granted = tokens * BYTES_A_TOKEN + store.documents * _RESULT_BYTES, machine_memory() // 2
    if needed > granted:
        what = (
            f"the runs of {plural(tokens, 'token')}, and what may be found in {plural(store.documents, 'document')}, "
            f"take {show_bytes(needed)}, where half of this machine's memory is {show_bytes(granted)}"
        )
        remedy = "name the smaller store after --overlap, or divide it and make a list for each part"
        raise UsageError("overlap-too-large", what, remedy=remedy, where="--overlap")
