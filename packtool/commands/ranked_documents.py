"""List the documents of token stores that stand out: the longest ones, and the most frequent texts."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from packtool.choosing.documents import StoredDocuments
from packtool.formats.token_store import Corpus, TokenStore
from packtool.planning.arrays import blocks
from packtool.planning.plan import I64, offsets_of
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
    stores = _Stores(corpus)
    return list(map(stores.document, best.tolist()))


def most_repeated(corpus: Corpus, most: int) -> list[RepeatedText]:
    """List the texts that most documents of the corpus have, by their first document; only texts of several documents.

    Args:
        most: number of texts to list; the first of several that are equally frequent.

    Raises:
        UsageError: the stores record hashes of different contents.
    """
    StoredDocuments(corpus).require_alike()
    taken = np.flatnonzero(corpus.taken())
    hashes = np.concatenate([store.origins()["hash"] for store in corpus.stores])[taken]
    _, firsts, times = np.unique(hashes, return_index=True, return_counts=True)
    order = np.lexsort((firsts, -times))[:most]
    stores = _Stores(corpus)
    found = []
    for text in order[times[order] > 1].tolist():
        first = stores.document(int(taken[firsts[text]]))
        found.append(RepeatedText(documents=int(times[text]), **msgspec.structs.asdict(first)))
    return found


class _Stores:
    """What the stores of a corpus know of their documents, which are numbered through all of them."""

    def __init__(self, corpus: Corpus) -> None:
        self._stores: Sequence[TokenStore] = corpus.stores
        self._names = StoredDocuments(corpus).names.shortest
        self._lengths = corpus.stored_lengths()
        self._firsts: I64 = offsets_of(np.array([store.documents for store in corpus.stores], np.int64))

    def document(self, number: int) -> ListedDocument:
        """Return the store, origin, id and length of a document."""
        source = int(np.searchsorted(self._firsts, number, side="right")) - 1
        store, document = self._stores[source], number - int(self._firsts[source])
        origin = identifier = None
        if store.known.has_origins:
            origin = store.origin(document)
        if store.id_field is not None:
            identifier = store.kept(document)[store.id_field]
        tokens = int(self._lengths[number])
        return ListedDocument(store=self._names[source], document=document, origin=origin, id=identifier, tokens=tokens)
