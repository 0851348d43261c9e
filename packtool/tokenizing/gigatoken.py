"""The fast encoder for the tokenizers that families.py knows; its own file readers are never used."""

from __future__ import annotations

import functools
import resource
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Any

import msgspec
import numpy as np

from packtool.plan import I64
from packtool.tokenizing import merges
from packtool.tokenizing.encoders import U32, guarded, unsuitable_error
from packtool.tokenizing.families import BYTE_CHARACTERS, Shape
from packtool.tokenizing.spec import for_encoding
from packtool.tokenizing.unicode import table

_MAX_CACHE = 1 << 29
"""Bytes by which a process may grow before gigatoken is loaded again: it remembers every word that it has seen."""
FLAGS = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
SEPARATOR = "\U0010fffepacktool\U0010fffe"
"""Stands between the texts of a batch, as a special token of its own, which no pre-token crosses."""


class GigatokenEncoder:
    """gigatoken, on one thread.

    A batch is encoded as one text with separators: gigatoken's own batches need a whole library for nested arrays.

    Args:
        data: a tokenizer.json.
        shape, vocab_size, special_as_text: as the recipe has them (see encoder_choice.py).
        spell: the ids of one character alone, by the reference.
        applied: the merges that apply (see merges.py).

    Raises:
        EncoderUnsuitableError: gigatoken does not support it after all.
    """

    name = "gigatoken"

    def __init__(
        self,
        data: bytes,
        shape: Shape,
        vocab_size: int,
        *,
        spell: Callable[[str], U32],
        applied: bytes = b"",
        special_as_text: bool = False,
    ) -> None:
        entries = for_encoding(data)
        entries["model"] = merges.without_others(entries["model"], applied)
        tokens = msgspec.json.decode(entries.get("added_tokens", b"[]"))
        tokens = [token for token in tokens or () if not (special_as_text and token.get("special"))]
        entries |= {name: msgspec.Raw(value.encode()) for name, value in shape.rewritten}
        known = frozenset(token["content"] for token in tokens)
        self._digits = None
        if shape.foreign or shape.digits:
            vocab = msgspec.json.decode(entries["model"]["vocab"], type=dict[str, int])
            if shape.foreign:
                vocab = {text: n for text, n in vocab.items() if text in known or BYTE_CHARACTERS.issuperset(text)}
                entries["model"]["vocab"] = vocab
            if shape.digits:
                self._digits = Digits(vocab, vocab_size + 1, spell, known)
                tokens += self._digits.tokens
        self._entries, self._tokens = entries, tokens
        self._separator = vocab_size
        self._joined = shape.joined
        self._load()

    def _load(self) -> None:
        separators = [{"id": self._separator, "content": SEPARATOR, **FLAGS}] if self._joined else []
        self._backend = _load(self._entries, [*self._tokens, *separators])
        self._at_first = _own_memory()

    def encode(self, texts: Sequence[str], utf8: Sequence[bytes] | None = None) -> tuple[U32, I64]:
        """See `Encoder.encode`."""
        if not texts:
            return np.empty(0, np.uint32), np.empty(0, np.int64)
        if _own_memory() > self._at_first + _MAX_CACHE:
            self._backend = None
            self._load()
        if not self._joined:
            return self._encode_singly(self._backend, texts)
        joined = SEPARATOR.encode().join(utf8 or [text.encode() for text in texts])
        ids = self._expanded(np.asarray(guarded("gigatoken", self._backend.encode, joined)))
        between = ids == self._separator
        ends = np.flatnonzero(between)
        if len(ends) != len(texts) - 1:  # the one batch in the world with our separator in a text
            return self._encode_singly(_load(self._entries, self._tokens), texts)
        lengths = np.diff(ends, prepend=-1, append=len(ids)) - 1
        return ids[~between], lengths

    def _encode_singly(self, backend: Any, texts: Sequence[str]) -> tuple[U32, I64]:
        ids = [self._expanded(np.asarray(guarded("gigatoken", backend.encode, text.encode()))) for text in texts]
        return np.concatenate(ids), np.array([len(each) for each in ids], np.int64)

    def _expanded(self, ids: U32) -> U32:
        return ids if self._digits is None else self._digits.expand(ids)


class Digits:
    """Every numeric character as a pre-token of its own, which gigatoken has no pattern for.

    An added token splits a text where it stands, as the pre-tokenizer does before a digit and after it. So every
    numeric character becomes one: those of ASCII with the id they have, since they are entries of their own; the
    others, which may take several ids, with a placeholder above all ids, which is replaced afterwards.

    Args:
        vocab: of the model.
        first: the first placeholder; above all ids.
        spell: the ids of one character alone.
        taken: texts of the tokenizer's own added tokens, which keep their ids.
    """

    def __init__(
        self, vocab: Mapping[str, int], first: int, spell: Callable[[str], U32], taken: frozenset[str]
    ) -> None:
        numeric = [chr(code) for code in np.flatnonzero(table("numeric")) if chr(code) not in taken]
        kept = {each: vocab[each] for each in numeric if each.isascii() and each in vocab}
        self._first = first
        self._characters = [each for each in numeric if each not in kept]
        self._spell = functools.cache(spell)
        ids = kept | {each: first + number for number, each in enumerate(self._characters)}
        self.tokens: list[dict[str, Any]] = [{"id": number, "content": each, **FLAGS} for each, number in ids.items()]

    def expand(self, ids: U32) -> U32:
        """Replace every placeholder among ids by the ids it stands for."""
        places = np.flatnonzero(ids >= self._first)
        if not len(places):
            return ids
        before, *others = np.split(ids, places)
        spelled = [self._spell(self._characters[part[0] - self._first]) for part in others]
        return np.concatenate([before, *chain.from_iterable(zip(spelled, (part[1:] for part in others), strict=True))])


def _load(entries: Mapping[str, Any], tokens: list[dict[str, Any]]) -> Any:
    """Load gigatoken for a tokenizer.json with these added tokens; all else is copied, not parsed."""
    from gigatoken.gigatoken_rs import BPETokenizer, SentencePieceTokenizer, load_hf_json

    backend = guarded("gigatoken", load_hf_json, msgspec.json.encode({**entries, "added_tokens": tokens}), loads=True)
    if not isinstance(backend, BPETokenizer | SentencePieceTokenizer):
        raise unsuitable_error("gigatoken takes this tokenizer for one of another kind")
    return backend


def _own_memory() -> int:
    """Return the bytes of memory that are this process's alone; 0 if the system does not tell."""
    try:
        with open("/proc/self/statm", "rb") as file:  # noqa: PTH123 - called for every batch
            _, resident, shared, *_ = map(int, file.read().split())
    except OSError:
        return 0
    return (resident - shared) * resource.getpagesize()
