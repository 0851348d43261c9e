"""The documents of token stores, portion by portion, and what is known of each: read when something asks for it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from packtool.choosing.names import StoreNames
from packtool.formats.token_store import Corpus, TokenStore
from packtool.places.place import Place
from packtool.planning.arrays import IN_MEMORY, Arrays, blocks
from packtool.planning.plan import I64, Ints, Mask, offsets_of
from packtool.planning.selecting.subsets import U64

Codes = npt.NDArray[np.uint8]
_FEW = 1024


def names_of(places: Iterable[Place]) -> StoreNames:
    """Return the finder of stores by the ends of their paths, wherever a path was typed."""
    return StoreNames([place.full for place in places])


class StoredDocuments:
    """The documents of several stores, numbered store by store."""

    def __init__(self, corpus: Corpus, arrays: Arrays = IN_MEMORY) -> None:
        self.stores = corpus.stores
        self.names = names_of(store.place for store in corpus.stores)  # finds a store by its name
        self._corpus = corpus
        self.arrays = arrays  # makes arrays as long as the documents
        self.firsts: list[int] = offsets_of(np.array([store.documents for store in self.stores], np.int64)).tolist()
        self._columns: dict[tuple[int, int, str], Any] = {}

    def __len__(self) -> int:
        return self.firsts[-1]

    @cached_property
    def lengths(self) -> Ints:
        """Of each document, in tokens, EOS included."""
        return self._corpus.stored_lengths()

    @cached_property
    def codes(self) -> Codes:
        """Of each document, 0 as long as nothing leaves it out; else the number of the rule that does, from 1."""
        return self.arrays.filled(len(self), np.uint8, lambda a, b: 0)

    def of_store(self, number: int) -> slice:
        """Return where the documents of a store are among all of them."""
        return slice(self.firsts[number], self.firsts[number + 1])

    def none(self) -> Mask:
        """Make a mask of all documents that marks none of them."""
        mask: Mask = self.arrays.filled(len(self), np.bool_, lambda a, b: False)
        return mask

    def portions(self) -> Iterator[Portion]:
        """Yield all documents, at most a block of one shard at a time."""
        for number, store in enumerate(self.stores):
            ends = store.first_documents.tolist()
            for shard, first in enumerate(ends[:-1]):
                for a, b in blocks(ends[shard + 1] - first):
                    yield Portion(self, number, shard, first + a, first + b)

    def after(self, portion: Portion) -> Iterator[Portion]:
        """Yield the documents of a store after a portion, a few of one shard at a time."""
        ends = self.stores[portion.number].first_documents.tolist()
        for shard in range(portion.shard, len(ends) - 1):
            begin = max(portion.last, ends[shard])
            for first in range(begin, ends[shard + 1], _FEW):
                yield Portion(self, portion.number, shard, first, min(first + _FEW, ends[shard + 1]))

    def only(self, number: int, document: int) -> Portion:
        """Return one document of a store."""
        shard = int(np.searchsorted(self.stores[number].first_documents, document, side="right")) - 1
        return Portion(self, number, shard, document, document + 1)

    def require_alike(self) -> None:
        """Refuse stores whose hashes are of different kinds: of texts, and of ids."""
        first = self.stores[0]
        for store in self.stores:
            store.known.require_hashed(first.known.hashed, str(first.place))

    def column(self, number: int, shard: int, name: str) -> Any:
        """Return a kept field of the documents of a shard; the fields of one shard are in memory."""
        key = (number, shard, name)
        if key not in self._columns:
            self._columns = {known: column for known, column in self._columns.items() if known[:2] == key[:2]}
            self._columns[key] = self.stores[number].shard_column(shard, name)
        return self._columns[key]


@dataclass(frozen=True)
class Portion:
    """Consecutive documents of one shard."""

    documents: StoredDocuments  # all documents of the stores
    number: int  # number of the store
    shard: int  # shard of the store
    first: int  # first document of the portion, in its store
    last: int  # end of the portion: the document behind its last

    def __len__(self) -> int:
        return self.last - self.first

    @property
    def store(self) -> TokenStore:
        """The store that has them."""
        return self.documents.stores[self.number]

    @property
    def here(self) -> slice:
        """Where they are among all documents."""
        before = self.documents.firsts[self.number]
        return slice(before + self.first, before + self.last)

    @property
    def codes(self) -> Codes:
        """Their codes, to be changed in place."""
        return self.documents.codes[self.here]

    @property
    def left(self) -> I64:
        """The places in this portion of the documents that no rule has left out."""
        return np.flatnonzero(self.codes == 0)

    @property
    def lengths(self) -> Ints:
        """Their lengths, in tokens."""
        return self.documents.lengths[self.here]

    @property
    def origins(self) -> npt.NDArray[Any]:
        """Where they came from: `file`, `record` counted in the whole file, and `hash`.

        Raises:
            UsageError: the store does not record it.
        """
        return self.store.origins_of(self.shard, self._in_shard)

    @property
    def hashes(self) -> U64:
        """The hashes of their texts.

        Raises:
            UsageError: the stores do not have them, or not of one kind.
        """
        self.documents.require_alike()
        return self.store.hashes_of(self.shard, self._in_shard)

    @property
    def hashes_of_records(self) -> U64:
        """Hashes that all documents of a record share: where a conversation is several, the hash of its last one.

        The last one has the whole conversation: its hash is that of the conversation where it is one document.
        """
        if not self.store.manifest.several_of_record:
            return self.hashes
        self.documents.require_alike()
        origins = np.concatenate([self.origins, *self._rest_of_record()])
        changes = (origins["file"][1:] != origins["file"][:-1]) | (origins["record"][1:] != origins["record"][:-1])
        lasts = np.append(np.flatnonzero(changes), len(origins) - 1)
        hashes: U64 = origins["hash"][lasts[np.searchsorted(lasts, np.arange(len(self)))]]
        return hashes

    def _rest_of_record(self) -> Iterator[npt.NDArray[Any]]:
        """Yield the origins of the documents after these that are of the same record as the last of these."""
        last = self.origins[-1]
        for portion in self.documents.after(self):
            origins = portion.origins
            others = np.flatnonzero((origins["file"] != last["file"]) | (origins["record"] != last["record"]))
            if len(others):
                yield origins[: int(others[0])]
                return
            yield origins

    def field(self, name: str) -> Any:
        """Return a field that was kept with them: text, null where it is missing."""
        return self.documents.column(self.number, self.shard, name)[self._in_shard]

    def marked(self, numbers: I64) -> Mask:
        """Mark those of these documents of the store, which ascend."""
        mask = np.zeros(len(self), np.bool_)
        a, b = np.searchsorted(numbers, [self.first, self.last])
        mask[numbers[a:b] - self.first] = True
        return mask

    @property
    def _in_shard(self) -> slice:
        before = int(self.store.first_documents[self.shard])
        return slice(self.first - before, self.last - before)
