"""List the documents of token stores that stand out: the longest ones, and the most frequent texts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
import numpy as np

from packtool.choosing.documents import StoredDocuments
from packtool.formats.token_store import Corpus
from packtool.planning.arrays import blocks
from packtool.report.types import ListedDocument, RepeatedText


def longest(corpus: Corpus, most: int) -> list[ListedDocument]:
    """List the documents of the corpus with the most tokens, longest first, each once however often it is taken.

    Args:
        most: number of documents to list; the first of several of one length.
    """
    lengths, taken = corpus.stored_lengths(), corpus.taken()
    best = np.empty(0, np.int64)
    for first, last in blocks(len(lengths)):
        rivals = np.concatenate([best, first + np.flatnonzero(taken[first:last])])
        order = np.argsort(-lengths[rivals].astype(np.int64), kind="stable")
        best = rivals[order[:most]]
    return list(_listed(StoredDocuments(corpus), best.tolist()))


def most_repeated(corpus: Corpus, most: int) -> list[RepeatedText]:
    """List the texts that most documents of the corpus have, by their first document; only texts of several documents.

    Args:
        most: number of texts to list; the first of several that are equally frequent.

    Raises:
        UsageError: the stores record hashes of different contents.
    """
    documents = StoredDocuments(corpus)
    documents.require_alike()
    taken = np.flatnonzero(corpus.taken())
    hashes = np.concatenate([store.origins()["hash"] for store in corpus.stores])[taken]
    _, firsts, times = np.unique(hashes, return_index=True, return_counts=True)
    order = np.lexsort((firsts, -times))[:most]
    order = order[times[order] > 1]
    texts = []
    for count, first in zip(times[order].tolist(), _listed(documents, taken[firsts[order]].tolist()), strict=True):
        texts.append(RepeatedText(documents=count, **msgspec.structs.asdict(first)))
    return texts


def _listed(documents: StoredDocuments, numbers: Sequence[int]) -> Iterator[ListedDocument]:
    """Yield the store, origin, id and length of documents, which are numbered store by store."""
    names = documents.names.shortest
    for number in numbers:
        source = int(np.searchsorted(documents.firsts, number, side="right")) - 1
        store, document = documents.stores[source], number - documents.firsts[source]
        origin = identifier = None
        if store.known.has_origins:
            origin = store.origin(document)
        if store.id_field is not None:
            identifier = store.kept(document)[store.id_field]
        tokens = int(documents.lengths[number])
        yield ListedDocument(store=names[source], document=document, origin=origin, id=identifier, tokens=tokens)
