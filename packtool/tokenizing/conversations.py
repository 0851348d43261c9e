"""Conversations as documents: each record of a batch becomes the text that its template renders, and what trains."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from packtool.conversations.mask import Spans
from packtool.conversations.record import ConversationError, NothingTrainsError
from packtool.conversations.renderer import Renderer
from packtool.corpus.fields import UnusableFieldError
from packtool.corpus.json_values import require_whole, same_depth
from packtool.corpus.records import RecordBatch, Reject, reject
from packtool.storage.schema import TokenizerInfo
from packtool.tokenizing.encode import Parts
from packtool.tokenizing.trained import TrainedTokens


class Conversations:
    """What a block of conversations is made of: their texts, and which tokens of these train.

    Args:
        renderer: makes texts of them.
        tokenizer: ids and vocabulary size.
        trained: finds the tokens.
        all_trains: all of a text trains.
    """

    def __init__(
        self, renderer: Renderer, tokenizer: TokenizerInfo, trained: TrainedTokens, *, all_trains: bool
    ) -> None:
        self._renderer = renderer
        self._all = all_trains
        self._tokenizer = tokenizer
        self._trained = trained

    def render(self, batch: RecordBatch) -> None:
        """Make texts of the conversations of a batch; see `render`."""
        render(self._renderer, batch)

    def masked(self, batch: RecordBatch, utf8: Sequence[bytes | None], documents: Parts) -> Parts:
        """Return the documents of a batch with what trains of them.

        The EOS of the store is what ends a conversation that its template ends with EOS. Another conversation gets one
        to be told from the next, which trains only where all of the text does: no model is to say it there.

        Args:
            batch: rendered.
            utf8: of its texts, where it is at hand.
            documents: the ids of each.
        """
        ids, lengths = documents.ids, documents.lengths
        data = [text.encode() if each is None else each for text, each in zip(batch.documents, utf8, strict=True)]
        loss = self._trained.masks(batch.documents, data, batch.spans, ids, lengths)
        eos = np.full(len(lengths), self._all, np.uint8)
        ends = np.cumsum(lengths)
        last = ends[lengths > 0] - 1
        over = last[ids[last] == self._tokenizer.eos_id]
        ended = np.isin(ends - 1, over) & (lengths > 0)
        eos[ended] = loss[over]
        kept = np.ones(len(ids), np.bool_)
        kept[over] = False
        return Parts(ids[kept], lengths - ended, [True] * len(lengths), loss[kept], eos)

    def spelled(self) -> dict[str, int]:
        """Count special tokens that messages spelled out since the last call, by id."""
        known = self._tokenizer.added_tokens
        found = {str(known[text]): times for text, times in self._renderer.spelled.items() if text in known}
        self._renderer.spelled.clear()
        return found


def render(renderer: Renderer, batch: RecordBatch) -> None:
    """Make texts of the conversations of a batch, and note what trains; reject what can't be rendered."""
    spans: list[Spans] = []
    kept: list[int] = []
    with same_depth():
        for place, number in enumerate(batch.numbers):
            record = batch.documents[place]
            try:
                text, trains = renderer.rendered(record)
                batch.documents[place] = require_whole(text, "the text of the conversation")
            except NothingTrainsError as error:
                batch.rejects.append(_reject("nothing-trains", number, str(error), record))
            except ConversationError as error:
                batch.rejects.append(_reject("bad-conversation", number, str(error), record))
            except UnusableFieldError as error:
                code, reason = error.args
                batch.rejects.append(_reject(code, number, reason, record))
            else:
                spans.append(trains)
                kept.append(place)
    batch.keep(kept)
    batch.spans = spans
    batch.rejects.sort(key=lambda each: each.record)


def _reject(code: str, number: int, reason: str, record: Any) -> Reject:
    try:
        raw = msgspec.json.encode(record)
    except (msgspec.MsgspecError, UnicodeEncodeError, RecursionError, OverflowError):
        return Reject(number, code, reason)
    return reject(number, code, reason, raw)
