"""Which tokens of a text train: those with a character in a span that does."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from packtool.conversations.mask import Spans, token_mask
from packtool.plan import I64
from packtool.tokenizing.encoders import U32, ReferenceEncoder, mismatch_error
from packtool.tokenizing.families import bytes_of_characters, kinds, normalizers, steps
from packtool.tokenizing.spec import parse

Mask = npt.NDArray[np.uint8]
_TOGETHER = 1 << 17
"""Tokens whose bytes are gathered at once: each byte takes sixteen meanwhile."""


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
        spec = parse(data)
        spelled = _spelled(spec)
        self._bytes = np.frombuffer(b"".join(spelled), np.uint8)
        self._sizes = np.fromiter(map(len, spelled), np.int64, len(spelled))
        self._at = np.cumsum(self._sizes) - self._sizes
        self._faithful = _is_faithful(spec)
        self._normalizers = [each["type"] for each in normalizers(spec)]

    def masks(
        self, texts: Sequence[str], utf8: Sequence[bytes], spans: Sequence[Spans], ids: U32, lengths: I64
    ) -> Mask:
        """Mark with 1 each token that has a character in a span of its text.

        Args:
            texts: whole, and their bytes.
            spans: of the characters of each that train.
            ids: of all texts, one after another.
            lengths: ids of each text.
        """
        stops = np.cumsum(lengths)
        starts = stops - lengths
        if len(ids) and int(ids.max()) >= len(self._sizes):  # added tokens have other ids than the file says
            masks = np.empty(len(ids), np.uint8)
            others: Iterable[int] = range(len(texts))
        else:
            at = np.zeros(len(ids) + 1, np.int64)
            np.cumsum(self._sizes.take(ids), out=at[1:])
            trained: list[int] = []
            others = []
            for number, (begin, end) in enumerate(zip(at[starts].tolist(), at[stops].tolist(), strict=True)):
                of_text = slice(starts[number], stops[number])
                found = self._in_ids(texts[number], utf8[number], spans[number], ids[of_text], end - begin)
                if found is None:
                    others.append(number)
                else:
                    trained += [begin + place for span in found for place in span]
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
        if len(data) == size and self._faithful and (not self._normalizers or data.isascii()):
            return _in_bytes(text, data, spans)
        composed = self._normalizers == ["NFC"]
        if len(data) != size and not composed:
            return None
        spelled = self._spelled(ids)
        if spelled == data:
            return _in_bytes(text, data, spans)
        if not composed:
            return None
        # Where characters on both sides of a bound would be composed, the parts do not spell the same.
        bounds = [0, *(place for span in spans for place in span), len(text)]
        parts = [unicodedata.normalize("NFC", text[begin:end]).encode() for begin, end in pairwise(bounds)]
        if b"".join(parts) != spelled:
            return None
        places = [*accumulate(map(len, parts))]
        return tuple(zip(places[:-1:2], places[1:-1:2], strict=True))

    def _spelled(self, ids: U32) -> bytes:
        """Return the bytes that ids stand for."""
        found = []
        for at in range(0, len(ids), _TOGETHER):
            some = ids[at : at + _TOGETHER]
            sizes = self._sizes[some]
            ends = np.cumsum(sizes)
            found.append(self._bytes[np.repeat(self._at[some] - (ends - sizes), sizes) + np.arange(ends[-1])].tobytes())
        return b"".join(found)

    def _by_reference(self, text: str, spans: Spans, ids: U32) -> Mask:
        encoding = self._reference.load().encode(text, add_special_tokens=False)
        if encoding.ids != ids.tolist():
            raise mismatch_error("an encoder and tokenizers give different ids for a text with this tokenizer")
        offsets = np.array(encoding.offsets, np.int64).reshape(-1, 2)
        return token_mask(offsets[:, 0], offsets[:, 1], spans)


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
        and not any(model.get(name) for name in odd)
        and {*kinds(spec.get("pre_tokenizer"))} <= {"ByteLevel", "Split", "Digits"}
        and not any(prefixed)
        and {each["type"] for each in normalizers(spec)} <= {"NFC"}
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


def _spelled(spec: Mapping[str, Any]) -> list[bytes]:
    """Return the bytes of each id, as a byte-level BPE or SentencePiece spells them; what is wrong is found with the
    texts."""
    vocab = spec["model"]["vocab"]
    entries = {text: number for number, (text, _) in enumerate(vocab)} if isinstance(vocab, list) else vocab
    added = {token["content"]: token["id"] for token in spec.get("added_tokens") or ()}
    found = [b""] * (1 + max([*entries.values(), *added.values()]))
    spell = _byte_level if "ByteLevel" in kinds(spec.get("pre_tokenizer")) else _sentencepiece
    for text, number in entries.items():
        found[number] = spell(text)
    for text, number in added.items():
        found[entries.get(text, number)] = text.encode()
    return found


_BYTE = re.compile("<0x([0-9A-F]{2})>")
_BYTES = str.maketrans({each: chr(byte) for each, byte in bytes_of_characters().items()})


def _byte_level(entry: str) -> bytes:
    return entry.translate(_BYTES).encode("latin-1", "replace")


def _sentencepiece(entry: str) -> bytes:
    match = _BYTE.fullmatch(entry)
    return bytes([int(match[1], 16)]) if match else entry.replace("▁", " ").encode()
