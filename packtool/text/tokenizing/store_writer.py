"""Collect encoded documents, and write them as the shards of a token store."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from packtool.formats.files import write_array
from packtool.formats.names import shard_file, token_dtype
from packtool.formats.schema import TokenizerInfo, TokenShard
from packtool.formats.token_store import require_known, write_columns, write_loss, write_shard
from packtool.planning.plan import I64, offsets_of
from packtool.text.encoding.encode import EncodedDocuments
from packtool.text.tokenizing.origins import OriginArray

SHARD_TOKENS = 1 << 25
"""Tokens at which a shard is full. It is written with the whole batch that reaches them, so it may be somewhat larger.
This bounds the memory of a worker."""


class ShardWriter:
    """Adds EOS (and BOS) to documents, and writes them to a directory as the shards of a block.

    Args:
        directory: an existing directory.
        block: number of the block, the part of the corpus that one task tokenizes; it is in the names of the shards.
        tokenizer: its EOS ends every document, and its BOS, if it has one, begins every document.
        column_names: fields of the records that are kept with the tokens, as text.
    """

    def __init__(self, directory: Path, block: int, tokenizer: TokenizerInfo, column_names: Sequence[str] = ()) -> None:
        self._directory = directory
        self._block = block
        self._tokenizer = tokenizer
        self._column_names = column_names
        self.tokens = 0  # tokens stored so far, EOS and BOS included
        self.trained = 0  # tokens that train; 0 if the documents have no loss, where all train
        self.shards: list[TokenShard] = []  # entries of the shards written so far, numbered from 0
        self._begin()

    def _begin(self) -> None:
        """Begin a new shard, without documents."""
        self._held = 0
        self._parts: list[npt.NDArray[np.unsignedinteger]] = []
        self._lengths: list[I64] = []
        self._loss: list[npt.NDArray[np.uint8]] = []
        self._origins: list[OriginArray] = []
        self._columns: list[list[str | None]] = [[] for _ in self._column_names]

    def add(
        self,
        documents: EncodedDocuments,
        origins: OriginArray | None = None,
        columns: Sequence[Sequence[str | None]] = (),
    ) -> npt.NDArray[np.bool_]:
        """Add documents; write a shard if it is full.

        Args:
            origins: where the documents came from; None if the store has no origins.
            columns: the values of every kept field, in the order of the names; None for a document without a value.

        Returns:
            Whether each document has ids, and so is kept: (documents).
        """
        kept = self._add_tokens(documents)
        if origins is not None:
            self._origins.append(origins[kept])
        for column, values in zip(self._columns, columns, strict=True):
            column.extend(value for value, keep in zip(values, kept.tolist(), strict=True) if keep)
        if self._held >= SHARD_TOKENS:
            self.close()
        return kept

    def _add_tokens(self, documents: EncodedDocuments) -> npt.NDArray[np.bool_]:
        """Add the tokens of documents, and their loss, if they have any: 1 for a token that trains, 0 for another.

            ids      7 8 | | 9           three documents, the second one without ids: it is left out
            text     . x x . . x .       where ids go; the other places are of BOS and EOS
            tokens   B 7 8 E B 9 E
            loss     0 0 1 1 1 1 1       of ids and of EOS as given; BOS trains if the token after it does, since no
                                         rule of a chat template says it of BOS

        Returns:
            Whether each document has ids, and so is kept: (documents).
        """
        # Before the ids are cast: an id that the smaller type does not hold would become another id.
        require_known(documents.ids, self._tokenizer.vocab_size)
        bos = self._tokenizer.bos_id
        kept = documents.lengths > 0
        lengths = documents.lengths[kept] + 1 + (bos is not None)
        offsets = offsets_of(lengths)
        first, last = offsets[:-1], offsets[1:] - 1
        text = np.ones(offsets[-1], np.bool_)  # marks the places of ids, which are in the order of `documents.ids`
        text[last] = False
        tokens = np.empty(len(text), token_dtype(self._tokenizer.vocab_size))
        tokens[last] = self._tokenizer.eos_id
        if bos is not None:
            text[first] = False
            tokens[first] = bos
        tokens[text] = documents.ids
        self._parts.append(tokens)
        self._lengths.append(lengths)
        self._held += len(tokens)
        self.tokens += len(tokens)
        if documents.loss is not None:
            assert documents.eos is not None  # the loss of every document's EOS, which has no place in `loss`
            loss = np.empty(len(text), np.uint8)
            loss[text] = documents.loss
            loss[last] = documents.eos[kept]
            if bos is not None:
                loss[first] = loss[first + 1]
            self._loss.append(loss)
            self.trained += int(np.count_nonzero(loss))
        return kept

    def close(self) -> None:
        """Write the documents that were added since the last shard, if any, as a shard."""
        if not self._held:
            return
        directory, number = self._directory, (self._block, len(self.shards))  # unique, whichever task is first
        ends = offsets_of(np.concatenate(self._lengths))
        tokens, offsets = write_shard(directory, number, self._parts, ends, self._tokenizer.vocab_size)
        origins = columns = None
        if self._origins:
            origins = write_array(directory / shard_file("documents", number), np.concatenate(self._origins))
        if self._column_names:
            columns = write_columns(directory / shard_file("columns", number), self._column_names, self._columns)
        assert len(self._loss) in (0, len(self._parts))  # every batch of documents had a loss, or none had
        loss = write_loss(directory, number, self._loss) if self._loss else None
        # Which document of the store comes first is known once the blocks before this one are done: it is set then.
        shard = TokenShard(tokens, offsets, first_document=0, documents=origins, columns=columns, loss=loss)
        self.shards.append(shard)
        self._begin()
