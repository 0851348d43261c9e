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
    """An order of the documents of several stores, which are numbered store by store."""

    field: str  # name of the first of the fields that decide the order
    documents: I64  # numbers of the packed documents, every document once, in this order
    groups: Ints  # a number for each stored document, the same for the same value of that field, or `NO_GROUP`


@dataclass(frozen=True)
class Chosen:
    """The documents taken from the stores: each once and in the order of the stores, unless something else is asked."""

    choice: Choice | None = None  # account of the choice, for the manifest; None to take all documents once
    passes: Sequence[Passes] | None = None  # the documents of each pass over a store; None to take all documents once
    order: StoredOrder | None = None  # order of the documents; None for the order of the stores

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
