"""The units of a plan, gathered from token stores."""

from __future__ import annotations

from typing import Any

import numpy as np

from packtool.arrays import Arrays
from packtool.plan import I64, Plan, pad
from packtool.storage.token_store import Corpus
from packtool.writing.gather import Gatherer, Locator
from packtool.writing.source import Source, Units


class StoreSource(Source):
    """Token stores under a plan: what a strategy decided, not written yet."""

    def __init__(self, corpus: Corpus, plan: Plan, pad_id: int) -> None:
        super().__init__(plan, corpus.dtype, pad_id, segments=plan.units + corpus.documents)
        self._corpus = corpus
        self._gather = Gatherer(
            corpus.shards,
            Locator(corpus.shards, corpus.locate),
            dtype=corpus.dtype,
            pad_id=pad_id,
            eos_id=corpus.tokenizer.eos_id,
            longest_fill=plan.unit,
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return StoreSource, (self._corpus, self.plan, self.pad_id)

    def prepare(self, arrays: Arrays) -> None:
        self._corpus.locate(np.empty(0, np.int64))  # in the arrays of the corpus

    def read(self, units: I64) -> Units:
        segments = pad(self.plan.segments(units), self.plan.unit)
        return segments, self._gather(segments).reshape(-1, self.plan.unit)

    def scan(self, first: int, last: int) -> Units:
        return self.read(np.arange(first, last))

    def release(self) -> None:
        self._corpus.release()
