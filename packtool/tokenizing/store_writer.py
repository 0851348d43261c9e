"""Collect encoded documents and write them as shards of bounded size."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from packtool.corpus.origins import Origins
from packtool.errors import DataError
from packtool.plan import I64
from packtool.storage.files import write_array
from packtool.storage.names import shard_file, token_dtype
from packtool.storage.schema import TokenizerInfo, TokenShard
from packtool.storage.token_store import write_columns, write_loss, write_shard
from packtool.tokenizing.encode import Parts

SHARD_TOKENS = 1 << 25
"""A shard closes at the end of the batch that reaches this: it bounds the memory of a worker."""


class ShardWriter:
    """Adds EOS (and BOS) to documents and writes shards 0, 1, … to a directory.

    Args:
        directory: existing.
        tokenizer: every id is below its size; its EOS ends every document, and its BOS, if any, begins it.
        provenance: write where documents came from, too.
        columns: names of the scalars that are kept beside the tokens.
        loss: write which tokens train; BOS does where the next token does.

    Attributes:
        tokens: stored so far, EOS and BOS included.
        trained: those of them that train, where that is written.
        shards: written so far, as if they were the first.
    """

    def __init__(
        self,
        directory: Path,
        tokenizer: TokenizerInfo,
        *,
        provenance: bool,
        columns: Sequence[str] = (),
        loss: bool = False,
    ) -> None:
        self._directory = directory
        self._vocab_size = tokenizer.vocab_size
        self._dtype = token_dtype(tokenizer.vocab_size)
        self._eos_id = tokenizer.eos_id
        self._bos_id = tokenizer.bos_id
        self._parts: list[np.ndarray[Any, Any]] = []
        self._lengths: list[I64] = []
        self._origins: list[Origins] | None = [] if provenance else None
        self._names = tuple(columns)
        self._columns: list[list[str | None]] = [[] for _ in columns]
        self._held = 0
        self._open = 0  # ids of a document whose last part is still to come
        self._loss: list[npt.NDArray[np.uint8]] | None = [] if loss else None
        self.tokens = 0
        self.trained = 0
        self.shards: list[TokenShard] = []

    def add(
        self, parts: Parts, origins: Origins | None = None, columns: Sequence[Sequence[str | None]] = ()
    ) -> tuple[int, int]:
        """Add consecutive parts of documents.

        Args:
            parts: with what trains of them, where that is written.
            origins: of the documents that end here.
            columns: their scalars, in the order of their names.

        Returns:
            Documents that ended here and have ids, and documents that ended here without any (they are left out).
        """
        ids = parts.ids
        if len(ids) and int(ids.max()) >= self._vocab_size:  # before it is cast to a type that may not hold it
            raise DataError(
                "id-out-of-range",
                f"the tokenizer produced id {int(ids.max())}, but its vocabulary ends at {self._vocab_size - 1}",
                remedy="check that the tokenizer.json is whole",
            )
        bounds = np.concatenate([[0], np.cumsum(parts.lengths)])
        stops = bounds[np.flatnonzero(parts.ends) + 1]
        starts = np.concatenate([[0], stops])
        sizes = np.diff(starts)
        begun = self._open > 0  # its BOS is written
        if len(stops):
            sizes[0] += self._open
            self._open = 0
        self._open += int(bounds[-1] - starts[-1])
        kept = sizes > 0
        places, values = stops[kept], np.full(int(kept.sum()), self._eos_id)
        first = np.empty(0, np.int64)
        if self._bos_id is not None:
            first = starts[np.append(kept, self._open > 0)]
            first = first[1:] if begun else first
            places = np.concatenate([places, first])
            values = np.concatenate([values, np.full(len(first), self._bos_id)])
        # At equal places the EOS of one document comes before the BOS of the next: np.insert keeps their order.
        stored = np.insert(ids.astype(self._dtype), places, values.astype(self._dtype))
        self._parts.append(stored)
        if self._loss is not None:
            assert parts.loss is not None
            assert parts.eos is not None
            self._loss.append(np.insert(parts.loss, places, np.append(parts.eos[kept], parts.loss[first])))
            self.trained += int(np.count_nonzero(self._loss[-1]))
        self._lengths.append(sizes[kept] + 1 + (self._bos_id is not None))
        if self._origins is not None:
            assert origins is not None
            self._origins.append(origins[kept])
        for column, scalars in zip(self._columns, columns, strict=True):
            column += [value for value, keep in zip(scalars, kept.tolist(), strict=True) if keep]
        self._held += len(stored)
        self.tokens += len(stored)
        return int(kept.sum()), int(len(kept) - kept.sum())

    def close_full(self) -> None:
        """Write a shard if enough tokens are held. Call it between documents only."""
        if self._held >= SHARD_TOKENS:
            self.close()

    def close(self) -> None:
        """Write the tokens still held, if any, as a shard."""
        lengths = np.concatenate([np.zeros(1, np.int64), *self._lengths])
        parts, self._parts, self._lengths, self._held = self._parts, [], [], 0
        origins, self._origins = self._origins, None if self._origins is None else []
        if len(lengths) > 1:
            number = len(self.shards)
            entries = write_shard(self._directory, number, parts, np.cumsum(lengths), self._vocab_size)
            path = self._directory / shard_file("documents", number)
            documents = None if origins is None else write_array(path, np.concatenate(origins))
            columns = None
            if self._names:
                columns = write_columns(self._directory / shard_file("columns", number), self._names, self._columns)
                self._columns = [[] for _ in self._names]
            shard = TokenShard(*entries, 0, documents, columns=columns)
            if self._loss is not None:
                shard = replace(shard, loss=write_loss(self._directory, number, self._loss))
                self._loss = []
            self.shards.append(shard)
