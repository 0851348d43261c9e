"""Conversations as documents: each record of a batch becomes the text that its template renders, and what trains."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec
import numpy as np

from packtool.conversations.chat import Chat
from packtool.conversations.mask import Spans
from packtool.conversations.recipe import Recipes
from packtool.conversations.record import (
    ROLES,
    Conversation,
    ConversationError,
    NothingTrainsError,
    conversation_of,
    without_reasoning,
    without_tool_calls,
)
from packtool.conversations.source import DEFAULT, WITH_TOOLS
from packtool.conversations.template import ChatTemplate
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
        self.render = renderer.render
        self._tokenizer = tokenizer
        self._trained = trained

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


class Renderer:
    """Renders the conversations of batches.

    Attributes:
        spelled: special tokens that messages spell out, and how often: the tokenizer can't tell them from those that
            the template writes.

    Raises:
        ConversationError: a template is no template.
    """

    def __init__(self, chat: Chat) -> None:
        self._chat = chat
        now = datetime.fromisoformat(chat.date) if chat.date else None
        self._templates = {
            name: Recipes(
                ChatTemplate(source, dict(chat.tokens), now=now),
                chat.train_on,
                mask_reasoning=chat.reasoning == "mask",
            )
            for name, source in chat.templates
        }
        self._sources = dict(chat.templates)
        longest_first = sorted(chat.special, key=len, reverse=True)
        self._special = re.compile("|".join(map(re.escape, longest_first)) or "(?!)")
        self._beginnings = tuple({token[:2] for token in chat.special})
        self.spelled: Counter[str] = Counter()

    def render(self, batch: RecordBatch) -> None:
        """Make texts of the documents of a batch, and note what trains; reject what can't be rendered."""
        spans: list[Spans] = []
        kept: list[int] = []
        with same_depth():
            for place, number in enumerate(batch.numbers):
                record = batch.documents[place]
                try:
                    batch.documents[place], trains = self.rendered(record)
                except UnusableFieldError as error:
                    batch.rejects.append(_rejected(number, error, record))
                else:
                    spans.append(trains)
                    kept.append(place)
        batch.keep(kept)
        batch.spans = spans
        batch.rejects.sort(key=lambda each: each.record)

    def rendered(self, record: Mapping[str, Any]) -> tuple[str, Spans]:
        """Render a record's conversation; return its text, and the spans of it that train.

        Raises:
            UnusableFieldError: it can't be rendered; nothing would train; the text is not whole.
        """
        try:
            text, spans = self._of_conversation(conversation_of(record))
        except NothingTrainsError as error:
            raise UnusableFieldError("nothing-trains", str(error)) from None
        except ConversationError as error:
            raise UnusableFieldError("bad-conversation", str(error)) from None
        return require_whole(text, "the text of the conversation"), spans

    def _of_conversation(self, talk: Conversation) -> tuple[str, Spans]:
        chat = self._chat
        if chat.reasoning == "drop":
            talk = without_reasoning(talk)
        if chat.tool_calls == "drop":
            talk = without_tool_calls(talk)
        elif chat.tool_calls == "mask":
            talk = talk.masked(["tool_calls" in message for message in talk.messages])
        name = WITH_TOOLS if talk.tools is not None and WITH_TOOLS in self._templates else DEFAULT
        for number, message in enumerate(talk.messages, 1):
            role = message["role"]
            if role not in ROLES and not re.search(f"[\"']{re.escape(role)}[\"']", self._sources[name]):
                raise ConversationError(f"message {number} has the role {role[:40]!r}, which templates do not know")
        text, spans = self._templates[name].rendered(talk)
        said = _texts(talk.messages, _texts(talk.tools or (), []))
        together = "\n".join(said)
        if any(map(together.__contains__, self._beginnings)):
            for each in said:
                self.spelled.update(self._special.findall(each))
        return text, spans


def _texts(values: Iterable[Any], found: list[str]) -> list[str]:
    """Add all texts in JSON values to those that were found before."""
    for each in values:
        if isinstance(each, str):
            found.append(each)
        elif isinstance(each, dict):
            _texts(each.values(), found)
        elif isinstance(each, list | tuple):
            _texts(each, found)
    return found


def _rejected(number: int, error: UnusableFieldError, record: Any) -> Reject:
    code, reason = error.args
    try:
        raw = msgspec.json.encode(record)
    except (msgspec.MsgspecError, UnicodeEncodeError, RecursionError, OverflowError):
        return Reject(number, code, reason)
    return reject(number, code, reason, raw)
