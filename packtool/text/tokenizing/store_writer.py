"""Collect encoded documents and write them as shards of bounded size."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
from msgspec import UNSET

from packtool.formats.files import write_array
from packtool.formats.names import shard_file, token_dtype
from packtool.formats.schema import TokenizerInfo, TokenShard
from packtool.formats.token_store import require_known, write_columns, write_loss, write_shard
from packtool.planning.plan import I64
from packtool.text.encoding.encode import Parts
from packtool.text.tokenizing.origins import Origins

SHARD_TOKENS = 1 << 25
"""A shard closes at the end of the batch that reaches this: it bounds the memory of a worker."""


class ShardWriter:
    """Adds EOS (and BOS) to documents and writes them to a directory as the shards of a block.

    Args:
        directory: existing.
        block: its number.
        tokenizer: every id is below its size; its EOS ends every document, and its BOS, if any, begins it.
        columns: names of the scalars that are kept with the tokens.

    Attributes:
        tokens: stored so far, EOS and BOS included.
        trained: those of them that train, where that is said.
        shards: written so far, as if they were the first.
    """

    def __init__(self, directory: Path, block: int, tokenizer: TokenizerInfo, columns: Sequence[str] = ()) -> None:
        self._directory = directory
        self._block = block
        self._tokenizer = tokenizer
        self._names = columns
        self._open = 0  # ids of a document whose last part is still to come
        self.tokens = 0
        self.trained = 0
        self.shards: list[TokenShard] = []
        self._begin()

    def _begin(self) -> None:
        """Begin a shard, of which nothing is held yet."""
        self._held = 0
        self._parts: list[npt.NDArray[np.unsignedinteger]] = []
        self._lengths: list[I64] = []
        self._loss: list[npt.NDArray[np.uint8]] = []
        self._origins: list[Origins] = []
        self._columns: list[list[str | None]] = [[] for _ in self._names]

    def add(self, parts: Parts) -> npt.NDArray[np.bool_]:
        """Add consecutive parts of documents, with what trains of them, where that is said; BOS does where the next
        token does.

        Returns:
            Whether it has ids, for each document that ended here. Those without are left out.
        """
        ids, eos, bos = parts.ids, self._tokenizer.eos_id, self._tokenizer.bos_id
        require_known(ids, self._tokenizer.vocab_size)  # before it is cast to a type that may not hold it
        stops = np.cumsum(parts.lengths)[parts.ends]
        bounds = np.concatenate([[0], stops, [len(ids)]])
        sizes = np.diff(bounds)  # the last one is of the document that goes on
        begins = sizes > 0
        begins[0] &= self._open == 0  # else its BOS is written
        sizes[0] += self._open
        sizes, self._open = sizes[:-1], int(sizes[-1])
        kept = sizes > 0
        first = bounds[:-1][begins & (bos is not None)]
        # At equal places the EOS of one document comes before the BOS of the next: np.insert keeps their order.
        places = np.concatenate([stops[kept], first])
        added = np.repeat([eos, bos or 0], [kept.sum(), len(first)])
        dtype = token_dtype(self._tokenizer.vocab_size)
        self._parts.append(np.insert(ids.astype(dtype), places, added.astype(dtype)))
        if parts.loss is not None:
            assert parts.eos is not None
            self._loss.append(np.insert(parts.loss, places, np.append(parts.eos[kept], parts.loss[first])))
            self.trained += int(np.count_nonzero(self._loss[-1]))
        self._lengths.append(sizes[kept] + 1 + (bos is not None))
        self._held += len(self._parts[-1])
        self.tokens += len(self._parts[-1])
        return kept

    def describe(
        self, kept: npt.NDArray[np.bool_], origins: Origins | None, columns: Sequence[Sequence[str | None]]
    ) -> None:
        """Add origins and columns of the documents that ended.

        Args:
            kept: which of them have ids, as `add` returned it.
            origins: where they came from, if that is written.
            columns: their scalars, in the order of their names.
        """
        if origins is not None:
            self._origins.append(origins[kept])
        for column, scalars in zip(self._columns, columns, strict=True):
            column.extend(value for value, keep in zip(scalars, kept.tolist(), strict=True) if keep)

    def close_full(self) -> None:
        """Write a shard if enough tokens are held. Call it between documents only."""
        if self._held >= SHARD_TOKENS:
            self.close()

    def close(self) -> None:
        """Write the tokens still held, if any, as a shard."""
        if not self._held:
            return
        directory, number = self._directory, (self._block, len(self.shards))
        offsets = np.cumsum(np.concatenate([np.zeros(1, np.int64), *self._lengths]))
        entries = write_shard(directory, number, self._parts, offsets, self._tokenizer.vocab_size)
        documents = columns = None
        if self._origins:
            documents = write_array(directory / shard_file("documents", number), np.concatenate(self._origins))
        if self._names:
            columns = write_columns(directory / shard_file("columns", number), self._names, self._columns)
        assert len(self._loss) in (0, len(self._parts))  # of all tokens, or of none
        loss = write_loss(directory, number, self._loss) if self._loss else UNSET
        self.shards.append(TokenShard(*entries, 0, documents, columns=columns, loss=loss))
        self._begin()
