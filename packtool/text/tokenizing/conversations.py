"""Conversations as documents: a record becomes the text that its template renders, and a mask of the tokens that train.

A token trains if one of its characters is in a span that trains.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from itertools import accumulate, chain, pairwise
from operator import attrgetter
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from packtool.formats.names import TOKENIZER
from packtool.planning.plan import I64
from packtool.text.conversations.chat import Chat
from packtool.text.conversations.layouts import shown
from packtool.text.conversations.renderer import Renderer
from packtool.text.conversations.spans import Document, Spans
from packtool.text.corpus.documents import whole
from packtool.text.corpus.jsonl import same_depth
from packtool.text.corpus.read_fields import LayoutCounts, read_of
from packtool.text.corpus.records import RecordBatch
from packtool.text.encoding.encode import EncodedDocuments
from packtool.text.encoding.encoders import U32, ReferenceEncoder, mismatch_error
from packtool.text.encoding.families import bytes_of_characters, kinds, steps
from packtool.text.encoding.load import FoundTokenizer
from packtool.text.faults import Fault
from packtool.text.tokenizing.counts import SpanCounts
from packtool.text.tokenizing.held import Held, held_in

LossMask = npt.NDArray[np.uint8]
Places = npt.NDArray[np.integer[Any]]


class Conversations:
    """The conversations of a block: their texts, and which of their tokens train.

    Args:
        chat: how they become texts.
        data: the tokenizer.json.
        reference: `tokenizers` with it.
    """

    def __init__(self, chat: Chat, data: bytes, reference: ReferenceEncoder) -> None:
        self._apart = PlainText(reference) if chat.as_text else None
        unsafe = [] if self._apart is None else list(filter(self._apart.makes, chat.control))
        self._renderer = Renderer(chat, unsafe)
        self._trained = TrainedTokens(data, reference)

    def render(self, batch: RecordBatch) -> None:
        """Render the conversations of a batch, and mark the text that trains; reject those that can't be rendered.

        A conversation may become several documents, of the same number.
        """
        documents: list[Document] = []
        of_each: list[Held] = []
        kept: list[int] = []
        with same_depth():
            for place, number in enumerate(batch.numbers):
                given, batch.documents[place] = batch.documents[place], None
                try:
                    talk = self._renderer.with_known_roles(given)
                    made = self._renderer.rendered(talk)
                    for document in made:
                        whole(document.text, "the text of the conversation")
                except Fault as fault:
                    batch.reject(number, fault, _json(given.record))
                else:
                    documents += made
                    of_each += [held_in(talk, self._renderer.chat, list(map(attrgetter("text"), made)))] * len(made)
                    kept += [place] * len(made)
        batch.keep(kept)
        batch.documents = [document.text for document in documents]
        batch.rendered, batch.held = documents, of_each
        batch.rejects.sort(key=attrgetter("record"))

    def masked(
        self, batch: RecordBatch, utf8: Sequence[bytes], documents: EncodedDocuments, eos_id: int
    ) -> EncodedDocuments:
        """Return the documents of a batch with their loss.

        If a template ends a conversation with EOS, that is the EOS of the store. Any other conversation gets an EOS to
        separate it from the next, which trains if it ends the last answer, or if all of the text trains.

        Args:
            batch: rendered.
            utf8: UTF-8 of its texts.
            documents: ids of its texts.
            eos_id: of the store.
        """
        ids, lengths = documents.ids, documents.lengths
        spans = [document.spans for document in batch.rendered]
        loss = self._trained.masks(batch.documents, utf8, spans, ids, lengths)
        if self._apart is not None and any(document.apart for document in batch.rendered):
            ids, lengths, loss = self._apart.encoded(batch, ids, lengths, loss)
        eos = np.array([document.eos for document in batch.rendered], np.uint8)
        some = np.flatnonzero(lengths)  # a document without ids has no last one
        last = np.cumsum(lengths)[some] - 1
        is_eos = ids[last] == eos_id
        ended, over = some[is_eos], last[is_eos]  # documents that end with EOS, and the places of these EOS
        eos[ended] = loss[over]
        lengths = lengths.copy()
        lengths[ended] -= 1
        kept = np.ones(len(ids), np.bool_)
        kept[over] = False
        return EncodedDocuments(ids[kept], lengths, loss[kept], eos)

    def count(self, batch: RecordBatch, documents: EncodedDocuments, counts: SpanCounts) -> None:
        """Count conversations, what they hold, the tokens that end their documents, and the context that repeats."""
        counts.context += repeated_context(documents, batch.numbers)
        for document in batch.rendered:
            counts.ends[document.end] = counts.ends.get(document.end, 0) + 1
            counts.open_turns += document.open
        conversations = dict(zip(batch.numbers, batch.held, strict=True))
        counts.conversations += len(conversations)
        for held in conversations.values():
            counts.reasoning += held.reasoning
            counts.calls += held.calls
            counts.hidden += held.hidden
            counts.empty_answers += held.empty
            name = shown(held.layout)
            if name not in counts.layouts:
                counts.layouts[name] = LayoutCounts(read_of(held.layout, held.taken))
            counts.layouts[name].count(held.unread)

    def spelled(self, known: Mapping[str, int]) -> dict[str, int]:
        """Count special tokens that messages spelled out since the last call, by id; `known` has the ids by text."""
        spelled = {str(known[text]): times for text, times in self._renderer.spelled.items() if text in known}
        self._renderer.spelled.clear()
        return spelled


def repeated_context(documents: EncodedDocuments, numbers: Sequence[int]) -> int:
    """Count the tokens before the first that trains, in all but the first document of each conversation.

    Args:
        numbers: numbers of the conversations that the documents are of.

    >>> two = EncodedDocuments(np.arange(5), np.array([2, 3]), np.array([0, 1, 0, 0, 1]), np.zeros(2))
    >>> repeated_context(two, [7, 7]), repeated_context(two, [7, 8])
    (2, 0)
    """
    assert documents.loss is not None
    ends = np.cumsum(documents.lengths).tolist()
    later = [place for place, (one, other) in enumerate(pairwise(numbers), 1) if one == other]
    return sum(int(np.argmax(documents.loss[ends[place - 1] : ends[place]])) for place in later)


def _json(record: Any) -> bytes | None:
    """Return a record as JSON; None if it can't be written."""
    try:
        return msgspec.json.encode(record)
    except (msgspec.MsgspecError, UnicodeEncodeError, RecursionError, OverflowError):
        return None


class PlainText:
    """Encodes texts with control tokens in them as plain text, as `sanitize_control_tokens` of Transformers does.

    What is before, between and after them is encoded by itself, so that nothing joins over them.

    Args:
        reference: `tokenizers` with the tokenizer.
    """

    def __init__(self, reference: ReferenceEncoder) -> None:
        self._tokenizer = reference.tokenizer
        self._newline: list[int] = self._tokenizer.encode("\n", add_special_tokens=False).ids

    def makes(self, token: str) -> bool:
        """Return whether the text of a control token, encoded as plain text, still gives the control token."""
        return self._tokenizer.token_to_id(token) in self._plain(token)

    def encoded(self, batch: RecordBatch, ids: U32, lengths: I64, loss: LossMask) -> tuple[U32, I64, LossMask]:
        """Return the ids of all texts of a batch, their number for each text, and which train.

        Args:
            ids, lengths, loss: the same, where control tokens of all texts are tokens.
        """
        ends = np.cumsum(lengths)[:-1]
        every = list(zip(np.split(ids, ends), np.split(loss, ends), strict=True))
        for place, document in enumerate(batch.rendered):
            if document.apart:
                every[place] = self.one(document.text, document.spans, document.apart)
        sizes = np.array([len(encoded) for encoded, _ in every], np.int64)
        return np.concatenate([encoded for encoded, _ in every]), sizes, np.concatenate([mask for _, mask in every])

    def one(self, text: str, spans: Spans, apart: Spans) -> tuple[U32, LossMask]:
        """Return the ids of a text, and which train: all of a token in plain text do if one of its characters does."""
        ids: list[int] = []
        offsets: list[tuple[int, int]] = []
        at = 0
        for number, (begin, end) in enumerate((*apart, (len(text), len(text)))):
            between, places = self._between(text[at:begin], first=number == 0)
            ids += between
            offsets += [(at + a, at + b) for a, b in places]
            plain = self._plain(text[begin:end]) if begin < end else []
            ids += plain
            offsets += [(begin, end)] * len(plain)
            at = end
        bounds = np.array(offsets, np.int64).reshape(-1, 2)
        return np.array(ids, np.uint32), token_mask(bounds[:, 0], bounds[:, 1], spans)

    def _between(self, text: str, *, first: bool) -> tuple[list[int], list[tuple[int, int]]]:
        """Encode text between control tokens: after a newline, which keeps SentencePiece from a space before it."""
        if not text:
            return [], []
        if not first:
            after = self._tokenizer.encode("\n" + text, add_special_tokens=False)
            size = len(self._newline)
            if after.ids[:size] == self._newline:
                return after.ids[size:], [(max(0, a - 1), b - 1) for a, b in after.offsets[size:]]
        encoding = self._tokenizer.encode(text, add_special_tokens=False)
        return encoding.ids, encoding.offsets

    def _plain(self, text: str) -> list[int]:
        """Encode text as if there were no added tokens."""
        ids = self._by_model("\n" + text)
        size = len(self._newline)
        return ids[size:] if ids[:size] == self._newline else self._by_model(text)

    def _by_model(self, text: str) -> list[int]:
        tokenizer = self._tokenizer
        text = text if tokenizer.normalizer is None else tokenizer.normalizer.normalize_str(text)
        splits = [text]
        if tokenizer.pre_tokenizer is not None:
            splits = [split for split, _ in tokenizer.pre_tokenizer.pre_tokenize_str(text)]
        tokens = chain.from_iterable(map(tokenizer.model.tokenize, splits))
        return [token.id for token in tokens]


class TrainedTokens:
    """Masks of tokens from spans of characters.

    The bytes that each entry of the vocabulary stands for say where tokens begin and end, wherever they spell exactly
    the text. Where they do not, since the tokenizer changed it, `tokenizers` is asked for offsets.

    Args:
        data: the tokenizer.json.
        reference: `tokenizers` with it.
    """

    def __init__(self, data: bytes, reference: ReferenceEncoder) -> None:
        self._reference = reference
        tokenizer = FoundTokenizer({TOKENIZER: data}, TOKENIZER)
        spec = tokenizer.spec
        self._spelled = _spelled(tokenizer)
        self._sizes = np.fromiter(map(len, self._spelled), np.int64, len(self._spelled))
        self._faithful = _is_faithful(spec)
        self._normalizers = kinds(spec.get("normalizer"))

    def masks(
        self, texts: Sequence[str], utf8: Sequence[bytes], spans: Sequence[Spans], ids: U32, lengths: I64
    ) -> LossMask:
        """Return the loss: 1 for tokens that have a character in a span of their text, 0 for others.

        Args:
            texts, utf8: whole texts, and their UTF-8.
            spans: spans of the texts that train, in characters.
            ids: of all texts, one after another.
            lengths: number of ids of each text.
        """
        stops = np.cumsum(lengths)
        starts = stops - lengths
        at = np.zeros(len(ids) + 1, np.int64)
        np.cumsum(self._sizes.take(ids), out=at[1:])
        trained: list[int] = []
        others: list[int] = []
        for number, (begin, end) in enumerate(zip(at[starts].tolist(), at[stops].tolist(), strict=True)):
            of_text = slice(starts[number], stops[number])
            trained_spans = self._in_ids(texts[number], utf8[number], spans[number], ids[of_text], end - begin)
            if trained_spans is None:
                others.append(number)
            else:
                trained += [begin + place for place in chain.from_iterable(trained_spans)]
        masks = token_mask(at[:-1], at[1:], trained)
        for number in others:
            chosen = slice(starts[number], stops[number])
            masks[chosen] = self._by_reference(texts[number], spans[number], ids[chosen])
        return masks

    def _in_ids(self, text: str, data: bytes, spans: Spans, ids: U32, size: int) -> Spans | None:
        """Convert spans of characters to spans of the bytes that ids stand for; None where they spell something else.

        Args:
            size: of these bytes.
        """
        # The cheapest way first: as many bytes as the text, of a tokenizer that exchanges none, and no look at them.
        if len(data) == size and self._faithful and (not self._normalizers or data.isascii()):
            return _in_bytes(text, data, spans)
        composed = self._normalizers == ["NFC"]
        if len(data) != size and not composed:
            return None
        # Then the bytes themselves, compared with the text's.
        spelled = b"".join(map(self._spelled.__getitem__, ids.tolist()))
        if spelled == data:
            return _in_bytes(text, data, spans)
        if not composed:
            return None
        # Then the bytes of the composed text, part by part. Where characters on both sides of a bound would be
        # composed, the parts do not spell the same, and `tokenizers` is asked.
        bounds = [0, *chain.from_iterable(spans), len(text)]
        parts = [unicodedata.normalize("NFC", text[begin:end]).encode() for begin, end in pairwise(bounds)]
        if b"".join(parts) != spelled:
            return None
        # Parts lie outside of spans and inside them in turn; the last lies behind all spans.
        *places, _ = accumulate(map(len, parts))
        return tuple(zip(places[::2], places[1::2], strict=True))

    def _by_reference(self, text: str, spans: Spans, ids: U32) -> LossMask:
        encoding = self._reference.tokenizer.encode(text, add_special_tokens=False)
        if encoding.ids != ids.tolist():
            raise mismatch_error("an encoder and tokenizers give different ids for a text with this tokenizer")
        offsets = np.array(encoding.offsets, np.int64).reshape(-1, 2)
        return token_mask(offsets[:, 0], offsets[:, 1], spans)


def token_mask(begins: Places, ends: Places, spans: npt.ArrayLike) -> npt.NDArray[np.uint8]:
    """Return the loss, as Transformers masks tokens: 1 for tokens that have a character in a span, 0 for others.

    Args:
        begins, ends: of the tokens, in characters (or in bytes, if spans are in bytes); both ascending.
        spans: (spans, 2) of begin and end, ascending, without overlaps.

    >>> token_mask(np.array([0, 2, 4, 5]), np.array([2, 4, 5, 8]), ((3, 5),))
    array([0, 1, 1, 0], dtype=uint8)
    """
    bounds = np.asarray(spans, np.int64).reshape(-1, 2)
    bounds = bounds[bounds[:, 0] < bounds[:, 1]]
    first = np.searchsorted(ends, bounds[:, 0], side="right")
    last = np.searchsorted(begins, bounds[:, 1], side="left")
    # Spans that begin at a token, less spans that ended before it. `np.add.at` counts a token twice where two spans
    # begin in it, as `+=` would not.
    depth = np.zeros(len(begins) + 1, np.int32)
    np.add.at(depth, first, 1)
    np.subtract.at(depth, last, 1)
    inside = np.cumsum(depth[:-1], dtype=np.int32) > 0
    trained = inside & (ends > begins)  # a token without a character is in no span
    return trained.view(np.uint8)


def _is_faithful(spec: Mapping[str, Any]) -> bool:
    """Return whether ids spell a text if they stand for as many bytes as it has.

    So it is where a tokenizer may drop some of a text, but adds and exchanges nothing, as long as the text is ASCII or
    there is no normalizer.
    """
    model = spec["model"]
    odd = ("unk_token", "continuing_subword_prefix", "end_of_word_suffix")
    prefixed = [step.get("add_prefix_space") for step in steps(spec.get("pre_tokenizer"))]
    return (
        model.get("type", "BPE") == "BPE"
        and not any(map(model.get, odd))
        and {*kinds(spec.get("pre_tokenizer"))} <= {"ByteLevel", "Split", "Digits"}
        and not any(prefixed)
        and {*kinds(spec.get("normalizer"))} <= {"NFC"}
    )


def _in_bytes(text: str, data: bytes, spans: Spans) -> Spans:
    """Convert spans of characters to spans of the text's bytes."""
    if len(text) == len(data):
        return spans
    out: list[tuple[int, int]] = []
    at = place = 0
    for begin, end in spans:
        first = place + len(text[at:begin].encode())
        at, place = end, first + len(text[begin:end].encode())
        out.append((first, place))
    return tuple(out)


def _spelled(tokenizer: FoundTokenizer) -> list[bytes]:
    """Return the bytes of each id, spelled as in byte-level BPE or SentencePiece; errors show when texts are read."""
    spec, added = tokenizer.spec, {token["content"] for token in tokenizer.spec.get("added_tokens") or ()}
    spell = _byte_level if "ByteLevel" in kinds(spec.get("pre_tokenizer")) else _sentencepiece
    spelled = [b""] * tokenizer.vocab_size
    for text, number in tokenizer.vocab.items():
        spelled[number] = text.encode() if text in added else spell(text)
    return spelled


_BYTE = re.compile("<0x([0-9A-F]{2})>")
_BYTES = str.maketrans({character: chr(byte) for character, byte in bytes_of_characters().items()})


def _byte_level(entry: str) -> bytes:
    return entry.translate(_BYTES).encode("latin-1", "replace")


def _sentencepiece(entry: str) -> bytes:
    match = _BYTE.fullmatch(entry)
    return bytes([int(match[1], 16)]) if match else entry.replace("▁", " ").encode()
