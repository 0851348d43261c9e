"""Encode a batch of documents, in calls of bounded size."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from packtool.formats.schema import TokenizerInfo
from packtool.planning.plan import I64
from packtool.text.conversations.conversation import Conversation
from packtool.text.corpus.records import RecordBatch
from packtool.text.encoding.encoders import U32
from packtool.text.encoding.long_texts import PIECE, pieces
from packtool.text.encoding.verify import Verified
from packtool.text.faults import Fault

_ENCODE_CHARS = 1 << 21  # characters handed to the encoder at once: a batch as it is read, in nearly every case


class EncodedDocuments(NamedTuple):
    """Whole documents as ids, one after the other."""

    ids: U32  # ids of all documents, without EOS and BOS
    lengths: I64  # number of ids of each document
    loss: npt.NDArray[np.uint8] | None = None  # 1 or 0 for each id, whether it trains; None where all of them do
    eos: npt.NDArray[np.uint8] | None = None  # 1 or 0 for the EOS of each document, as in `loss`

    def of(self, chosen: npt.NDArray[np.bool_]) -> EncodedDocuments:
        """Return the documents that are marked."""
        ids = np.repeat(chosen, self.lengths)
        if self.loss is None or self.eos is None:
            return EncodedDocuments(self.ids[ids], self.lengths[chosen])
        return EncodedDocuments(self.ids[ids], self.lengths[chosen], self.loss[ids], self.eos[chosen])

    def without_eos(self, eos_id: int) -> tuple[EncodedDocuments, int]:
        """Return the documents without an EOS of their own at the end, and how many have one.

        >>> found = EncodedDocuments(np.array([5, 0, 0, 7], np.uint32), np.array([3, 0, 1]))
        >>> found.without_eos(0)[0].ids.tolist(), found.without_eos(0)[1]
        ([5, 0, 7], 1)
        """
        return self._without(eos_id, np.cumsum(self.lengths) - 1)

    def without_bos(self, bos_id: int | None) -> tuple[EncodedDocuments, int]:
        """Return the documents without a BOS of their own at the beginning, and how many have one.

        Args:
            bos_id: None where documents get no BOS, and so keep one of their own.

        >>> found = EncodedDocuments(np.array([1, 5, 1, 7], np.uint32), np.array([3, 0, 1]))
        >>> found.without_bos(1)[0].ids.tolist(), found.without_bos(1)[1]
        ([5, 1, 7], 1)
        """
        if bos_id is None:
            return self, 0
        return self._without(bos_id, np.cumsum(self.lengths) - self.lengths)

    def _without(self, number: int, at: I64) -> tuple[EncodedDocuments, int]:
        """Return the documents without an id where it stands at a place of each, and how many have it there."""
        some = np.flatnonzero(self.lengths)  # a document without ids has no such place
        places = at[some]
        there = self.ids[places] == number
        if not there.any():
            return self, 0
        lengths = self.lengths.copy()
        lengths[some[there]] -= 1
        return EncodedDocuments(np.delete(self.ids, places[there]), lengths), int(np.count_nonzero(there))


class _Call(NamedTuple):
    """What the encoder gets at once: texts, the same as UTF-8, and whether each ends its document."""

    texts: list[str]
    utf8: list[bytes]
    ends: list[bool]


def utf8_of(documents: Sequence[Any], *, ids: bool) -> list[bytes]:
    """Return the bytes of documents, for both hash and encoder: UTF-8 of texts; of ids, 4 bytes each."""
    if ids:
        return [np.array(document, np.uint32).tobytes() for document in documents]
    return [document.encode() for document in documents]


def encoded(documents: Iterable[str], utf8: Iterable[bytes], encoder: Verified) -> EncodedDocuments:
    """Encode documents to ids, in calls of bounded size.

    Args:
        utf8: as `utf8_of` gives it.
    """
    ids: list[U32] = []
    lengths: list[I64] = []
    ends: list[bool] = []
    for call in _calls(documents, utf8, encoder.recipe.cut):
        found, counts = encoder.encode(*call)
        ids.append(found)
        lengths.append(counts)
        ends += call.ends
    # A long document has several pieces: its ids reach from the end of the document before it to its own end.
    after_pieces = np.cumsum(_joined(lengths, np.int64))
    after_documents = after_pieces[np.array(ends, np.bool_)]
    return EncodedDocuments(_joined(ids, np.uint32), np.diff(after_documents, prepend=0))


def _joined(parts: Sequence[npt.NDArray[Any]], dtype: type) -> npt.NDArray[Any]:
    """Join arrays. One alone, as nearly always, is not copied: copies took 2 % of the command's CPU time."""
    if len(parts) == 1:
        return parts[0]
    return np.concatenate([np.empty(0, dtype), *parts])


def _calls(documents: Iterable[str], utf8: Iterable[bytes], cut: str) -> Iterator[_Call]:
    """Yield documents in calls of about `_ENCODE_CHARS` characters; a long one in pieces, perhaps in several calls."""
    call, size = _Call([], [], []), 0
    for document, data in zip(documents, utf8, strict=True):
        for piece, piece_data in _pieces(document, data, cut):
            if size >= _ENCODE_CHARS:
                yield call
                call, size = _Call([], [], []), 0
            call.texts.append(piece)
            call.utf8.append(piece_data)
            call.ends.append(False)
            size += len(piece)
        call.ends[-1] = True
    if call.texts:
        yield call


def _pieces(document: str, data: bytes, cut: str) -> Iterable[tuple[str, bytes]]:
    if len(document) <= PIECE:
        return ((document, data),)
    parts = pieces(document, cut)
    return zip(parts, map(str.encode, parts), strict=True)


def stored(documents: Sequence[Any]) -> EncodedDocuments:
    """Return documents that are ids already."""
    lengths = np.array(list(map(len, documents)), np.int64)
    ids = np.concatenate([np.empty(0, np.uint32), *documents]).astype(np.uint32)
    return EncodedDocuments(ids, lengths)


def require_plain(batch: RecordBatch, special: re.Pattern[str]) -> None:
    """Reject the records that spell a special token, in a text or anywhere in a conversation.

    Args:
        special: the texts of the special tokens.
    """

    def change(document: Any) -> Any:
        texts = document.texts() if isinstance(document, Conversation) else [document]
        spelled: set[str] = set()
        for text in texts:
            spelled.update(special.findall(text))
        if spelled:
            raise Fault("special-token", f"spells {', '.join(sorted(spelled))}")
        return document

    batch.change(change)


def require_ids(batch: RecordBatch, tokenizer: TokenizerInfo) -> None:
    """Reject documents with ids that the tokenizer does not have; leave out an EOS (and BOS) that is there already."""

    def change(ids: Any) -> Any:
        for number in ids:
            if not 0 <= number < tokenizer.vocab_size:
                what = f"id {number}, but the vocabulary of the tokenizer ends at {tokenizer.vocab_size - 1}"
                raise Fault("bad-ids", what)
        if len(ids) and ids[-1] == tokenizer.eos_id:
            ids = ids[:-1]
        if len(ids) and tokenizer.bos_id is not None and ids[0] == tokenizer.bos_id:
            ids = ids[1:]
        return ids

    batch.change(change)
