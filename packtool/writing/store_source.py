"""Gather the units of a plan from token stores."""

from __future__ import annotations

from typing import Any

import numpy as np

from packtool.arrays import Arrays
from packtool.plan import I64, Plan, pad
from packtool.storage.token_store import Corpus
from packtool.writing.gather import Gatherer, Locator, LossGatherer
from packtool.writing.records import joined, with_loss
from packtool.writing.source import Source, Units


class StoreSource(Source):
    """Token stores under a plan that is not written yet."""

    def __init__(self, corpus: Corpus, plan: Plan, pad_id: int) -> None:
        dtype = with_loss(corpus.dtype) if corpus.has_loss else corpus.dtype
        super().__init__(plan, dtype, pad_id, segments=plan.units + corpus.documents)
        self._corpus = corpus
        locate = Locator(corpus.shards, corpus.locate)
        self._gather = Gatherer(
            corpus.shards,
            locate,
            dtype=corpus.dtype,
            pad_id=pad_id,
            eos_id=corpus.tokenizer.eos_id,
            longest_fill=plan.unit,
        )
        if corpus.has_loss:
            self.loss = LossGatherer(
                [store.loss for store in corpus.stores],
                [len(store.shards) for store in corpus.stores],
                locate,
                longest=plan.sequence_length,
            )

    def __reduce__(self) -> tuple[Any, ...]:
        return StoreSource, (self._corpus, self.plan, self.pad_id)

    def prepare(self, arrays: Arrays) -> None:
        self._corpus.locate(np.empty(0, np.int64))  # in the arrays of the corpus

    def read(self, units: I64) -> Units:
        segments = pad(self.plan.segments(units), self.plan.unit)
        tokens = self._gather(segments)
        if self.loss is not None:
            tokens = joined(tokens, self.loss(segments))
        return segments, tokens.reshape(-1, self.plan.unit)

    def scan(self, first: int, last: int) -> Units:
        return self.read(np.arange(first, last))

    def release(self) -> None:
        self._corpus.release()
