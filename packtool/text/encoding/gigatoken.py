"""The fast encoder for the tokenizers that families.py knows; its own file readers are never used."""

from __future__ import annotations

import functools
import resource
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from packtool.planning.plan import I64
from packtool.support.decoding import from_json
from packtool.text.encoding.added import written_entries
from packtool.text.encoding.encoders import U32, EncoderRecipe, ReferenceEncoder, guarded, unsuitable_error
from packtool.text.encoding.families import BYTE_CHARACTERS
from packtool.text.encoding.spec import for_encoding
from packtool.text.encoding.unicode import table

_MAX_CACHE = 1 << 29
"""Bytes by which a process may grow before gigatoken is loaded again: it remembers every word that it has seen."""
FLAGS = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
SEPARATOR = "\U0010fffepacktool\U0010fffe"
"""Stands between the texts of a batch, as a special token of its own, which no pre-token crosses."""


def prepared(data: bytes, recipe: EncoderRecipe) -> bytes:
    """Return the tokenizer.json that gigatoken is loaded from: the plainest form that means the same."""
    entries, shape = for_encoding(data), recipe.shape
    model = entries["model"]
    tokens = from_json(entries.get("added_tokens", b"[]"), list[dict[str, Any]] | None) or []
    if recipe.special_as_text:
        tokens = [token for token in tokens if not token.get("special")]
    known = {token["content"] for token in tokens}
    vocab: dict[str, int] = {}
    if shape.foreign or shape.digits:
        vocab = from_json(model["vocab"], dict[str, int])
    if shape.foreign:
        vocab = {text: number for text, number in vocab.items() if text in known or BYTE_CHARACTERS.issuperset(text)}
        model["vocab"] = vocab
    if shape.digits:
        tokens += digit_tokens(vocab, recipe.vocab_size + 1, known)
    if shape.joined:
        tokens.append({"id": recipe.vocab_size, "content": SEPARATOR, **FLAGS})
    entries |= {name: msgspec.Raw(value.encode()) for name, value in shape.rewritten}
    return msgspec.json.format(msgspec.json.encode({**entries, "added_tokens": tokens}), indent=-1)


def digit_tokens(vocab: Mapping[str, int], first: int, taken: Collection[str]) -> list[dict[str, Any]]:
    """List added tokens that make every numeric character a pre-token of its own, which gigatoken has no pattern for.

    An added token splits a text where it stands, as the pre-tokenizer does before a digit and after it. So every
    numeric character becomes one. ASCII digits keep their ids, since they are entries of their own; other characters
    may take several ids, and get a placeholder above all ids, which is replaced afterwards.

    Args:
        vocab: of the model.
        first: the first placeholder; above all ids.
        taken: texts of the tokenizer's own added tokens, which keep their ids.
    """
    numeric = [chr(code) for code in np.flatnonzero(table("numeric")) if chr(code) not in taken]
    kept = {character: vocab[character] for character in numeric if character.isascii() and character in vocab}
    others = [character for character in numeric if character not in kept]
    ids = kept | {character: first + number for number, character in enumerate(others)}
    return [{"id": number, "content": text, **FLAGS} for text, number in ids.items()]


class GigatokenEncoder:
    """gigatoken, on one thread.

    A batch is encoded as one text with separators: gigatoken's own batches need a whole library for nested arrays.

    Args:
        data: the tokenizer.json.
        recipe: for it.
        reference: encodes single characters and what gigatoken can't.

    Raises:
        EncoderUnsuitableError: gigatoken does not support it after all.
    """

    def __init__(self, data: bytes, recipe: EncoderRecipe, reference: ReferenceEncoder) -> None:
        self._prepared = prepared(data, recipe)
        self._reference = reference
        self._separator = recipe.vocab_size
        self._joined = recipe.shape.joined
        self._placeholders: list[str] = []
        if recipe.shape.digits:
            _, added = written_entries(self._prepared)
            self._placeholders = [token["content"] for token in added if token["id"] > self._separator]
        self._spell = functools.cache(reference.spell)
        self._load()

    def _load(self) -> None:
        self._backend = _load(self._prepared)
        self._at_first = _own_memory()

    def __call__(self, texts: Sequence[str], utf8: Sequence[bytes] | None = None) -> tuple[U32, I64]:
        """See `Encode`."""
        if not texts:
            return np.empty(0, np.uint32), np.empty(0, np.int64)
        if _own_memory() > self._at_first + _MAX_CACHE:
            self._backend = None
            self._load()
        utf8 = utf8 or [text.encode() for text in texts]
        if not self._joined:
            parts = list(map(self._encode, utf8))
            return np.concatenate(parts), np.array(list(map(len, parts)), np.int64)
        ids = self._encode(SEPARATOR.encode().join(utf8))
        between = ids == self._separator
        ends = np.flatnonzero(between)
        if len(ends) != len(texts) - 1:  # the one batch in the world with our separator in a text
            return self._reference.encode(texts)
        lengths = np.diff(ends, prepend=-1, append=len(ids)) - 1
        return ids[~between], lengths

    def _encode(self, text: bytes) -> U32:
        """Return the ids of a text, each placeholder replaced by the ids of the character it stands for."""
        ids: U32 = np.asarray(guarded("gigatoken", self._backend.encode, text))
        if not self._placeholders:
            return ids
        places = np.flatnonzero(ids > self._separator)
        if not len(places):
            return ids
        before, *others = np.split(ids, places)
        parts = [before]
        for part in others:  # each begins with a placeholder; the first one's id is the next after the separator's
            character = self._placeholders[part[0] - self._separator - 1]
            parts += [self._spell(character), part[1:]]
        return np.concatenate(parts)


def _load(prepared: bytes) -> Any:
    from gigatoken.gigatoken_rs import BPETokenizer, SentencePieceTokenizer, load_hf_json

    backend = guarded("gigatoken", load_hf_json, prepared, loads=True)
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
