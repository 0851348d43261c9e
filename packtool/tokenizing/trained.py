"""Which tokens of a text train: those with a character in a span that does."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from packtool.conversations.mask import Spans, token_mask
from packtool.plan import I64
from packtool.tokenizing.encoders import U32, EncoderMismatchError, reference_tokenizer
from packtool.tokenizing.families import bytes_of_characters, kinds
from packtool.tokenizing.spec import parse

if TYPE_CHECKING:
    from tokenizers import Tokenizer

Mask = npt.NDArray[np.uint8]


class TrainedTokens:
    """Masks of tokens from spans of characters.

    The bytes that each entry of the vocabulary stands for say where tokens begin and end, wherever they spell exactly
    the text. Where they do not, since the tokenizer changed it, `tokenizers` is asked for offsets.

    Args:
        data: the tokenizer.json.
    """

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._reference: Tokenizer | None = None
        self._bytes = _spelled(parse(data))
        self._sizes = np.array([len(each) for each in self._bytes], np.int64)

    def masks(
        self, texts: Sequence[str], utf8: Sequence[bytes], spans: Sequence[Spans], ids: U32, lengths: I64
    ) -> Mask:
        """1 for each token that has a character in a span of its text.

        Args:
            texts: whole, and their bytes.
            spans: of the characters of each that train.
            ids: of all texts, one after another.
            lengths: ids of each text.
        """
        masks = np.zeros(len(ids), np.uint8)
        ends = np.cumsum(lengths)
        begins = ends - lengths
        if len(ids) and int(ids.max()) >= len(self._bytes):  # added tokens have other ids than the file says
            return np.concatenate(
                [
                    self._by_reference(text, trained, part)
                    for text, trained, part in zip(texts, spans, np.split(ids, ends[:-1]), strict=True)
                ]
            )
        spelled = list(map(self._bytes.__getitem__, ids.tolist()))
        sizes = self._sizes[ids]
        for text, data, trained, begin, end in zip(texts, utf8, spans, begins.tolist(), ends.tolist(), strict=True):
            if b"".join(spelled[begin:end]) == data:
                stops = np.cumsum(sizes[begin:end])
                offsets = np.stack([stops - sizes[begin:end], stops], axis=1)
                masks[begin:end] = token_mask(offsets, _in_bytes(text, data, trained))
            else:
                masks[begin:end] = self._by_reference(text, trained, ids[begin:end])
        return masks

    def _by_reference(self, text: str, spans: Spans, ids: U32) -> Mask:
        if self._reference is None:
            self._reference = reference_tokenizer(self._data)
        encoding = self._reference.encode(text, add_special_tokens=False)
        if encoding.ids != ids.tolist():
            what = "an encoder and tokenizers give different ids for a text with this tokenizer"
            raise EncoderMismatchError("encoder-mismatch", what, remedy="give --encoder tokenizers", where="--encoder")
        return token_mask(np.array(encoding.offsets, np.int64).reshape(-1, 2), spans)


def _in_bytes(text: str, data: bytes, spans: Spans) -> Spans:
    """Spans of characters as spans of the text's bytes."""
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
    """The bytes of each id, as a byte-level BPE or SentencePiece spells them; what is wrong is found with the texts."""
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
