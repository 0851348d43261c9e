"""Encode a batch of documents in calls of bounded size, each with the parts of documents it encodes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from packtool.formats.schema import TokenizerInfo
from packtool.planning.plan import I64
from packtool.text.corpus.records import RecordBatch, Reject
from packtool.text.encoding.encoders import U32
from packtool.text.encoding.long_texts import PIECE, pieces
from packtool.text.encoding.verify import Verified

_ENCODE_CHARS = 1 << 21
"""Characters handed to the encoder at once."""


class Parts(NamedTuple):
    """Consecutive parts of documents.

    Attributes:
        ids: of all parts.
        lengths: ids of each part.
        ends: whether the part is the last of its document.
        loss: 1 or 0 for each id, whether it trains; None where all of them do.
        eos: the same for the EOS of each document that ends here.
    """

    ids: U32
    lengths: I64
    ends: Sequence[bool]
    loss: npt.NDArray[np.uint8] | None = None
    eos: npt.NDArray[np.uint8] | None = None

    def of(self, chosen: npt.NDArray[np.bool_]) -> Parts:
        """Return these parts of all, each of which is a whole document."""
        ids = np.repeat(chosen, self.lengths)
        loss = None if self.loss is None else self.loss[ids]
        ends = [True] * int(chosen.sum())
        return Parts(self.ids[ids], self.lengths[chosen], ends, loss, None if self.eos is None else self.eos[chosen])


def utf8_of(documents: Sequence[Any], *, ids: bool) -> list[bytes]:
    """Encode documents as UTF-8 once, for both hash and encoder."""
    if ids:
        return [np.array(document, np.uint32).tobytes() for document in documents]
    return [document.encode() for document in documents]


def encoded(documents: Iterable[str], utf8: Iterable[bytes], encoder: Verified) -> Iterator[Parts]:
    """Encode documents to ids, call by call.

    Args:
        utf8: as `utf8_of` gives it.
    """
    texts: list[str] = []
    data: list[bytes] = []
    ends: list[bool] = []
    size = 0
    for document, known in zip(documents, utf8, strict=True):
        short = len(document) <= PIECE
        for piece in [document] if short else pieces(document, encoder.recipe.cut):
            if size >= _ENCODE_CHARS:
                yield Parts(*encoder.encode(texts, data, ends), ends)
                texts, data, ends, size = [], [], [], 0
            texts.append(piece)
            data.append(known if short else piece.encode())
            ends.append(False)
            size += len(piece)
        ends[-1] = True
    if texts:
        yield Parts(*encoder.encode(texts, data, ends), ends)


def stored(documents: Sequence[Any]) -> Iterator[Parts]:
    """Yield documents that are ids already."""
    lengths = np.array([len(ids) for ids in documents], np.int64)
    ids = np.concatenate([np.empty(0, np.uint32), *documents]).astype(np.uint32)
    yield Parts(ids, lengths, [True] * len(documents))


def require_ids(batch: RecordBatch, tokenizer: TokenizerInfo) -> None:
    """Reject documents with ids that the tokenizer does not have; leave out an EOS (and BOS) that is there already."""
    kept = []
    for place, number in enumerate(batch.numbers):
        ids: Any = batch.documents[place]
        wrong = [number for number in ids if not 0 <= number < tokenizer.vocab_size]
        if wrong:
            what = f"id {wrong[0]}, but the vocabulary of the tokenizer ends at {tokenizer.vocab_size - 1}"
            batch.rejects.append(Reject(number, "bad-ids", what))
            continue
        ids = ids[:-1] if len(ids) and ids[-1] == tokenizer.eos_id else ids
        ids = ids[1:] if len(ids) and tokenizer.bos_id is not None and ids[0] == tokenizer.bos_id else ids
        batch.documents[place] = ids
        kept.append(place)
    batch.keep(kept)
    batch.rejects.sort(key=lambda reject: reject.record)


def joined(parts: Iterable[Parts]) -> Parts:
    """Join the parts of each document into one, of which all trains."""
    every = [Parts(np.empty(0, np.uint32), np.empty(0, np.int64), []), *parts]
    ends = np.concatenate([np.asarray(part.ends, np.bool_) for part in every])
    lengths = np.diff(np.cumsum(np.concatenate([part.lengths for part in every]))[ends], prepend=0)
    return Parts(np.concatenate([part.ids for part in every]), lengths, [True] * len(lengths))
