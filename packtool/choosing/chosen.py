"""The documents that were chosen of the stores, and their order: what `pack` plans, and its reports account for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from packtool.formats.schema import Choice, Options
from packtool.formats.token_store import Corpus
from packtool.planning.plan import I64, Ints
from packtool.planning.selecting.mixture import Passes

NO_GROUP = -1
"""The group of documents without a value of the first field of an order."""


@dataclass(frozen=True)
class StoredOrder:
    """An order of the documents of several stores, which are numbered store by store.

    Attributes:
        field: the name of the first of the fields that decide it.
        documents: the numbers of the packed documents, every document once, in this order.
        groups: for each document of the stores a number that it shares with those of the same value of that field;
            `NO_GROUP` for documents that have none, or are not packed.
    """

    field: str
    documents: I64
    groups: Ints


@dataclass(frozen=True)
class Chosen:
    """The documents taken from the stores: each once and in the order of the stores, unless something else is asked.

    Attributes:
        choice: its account, for the manifest; None to take all documents once.
        passes: the documents of each store; None as for `choice`.
        order: of the documents; None for the order of the stores.
    """

    choice: Choice | None = None
    passes: Sequence[Passes] | None = None
    order: StoredOrder | None = None

    def count(self, corpus: Corpus) -> int:
        """Count the documents that are taken from a corpus, each as often as it is taken."""
        if self.passes is None:
            return corpus.documents
        return sum(map(len, self.passes))

    @property
    def options(self) -> list[Options]:
        """The options of the choice, for the key of an output; empty where everything is taken."""
        if self.choice is None:
            return []
        return [self.choice.options]


EVERYTHING = Chosen()
"""All documents of all stores, each once and in their order."""
