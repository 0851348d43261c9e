"""Texts encoded by an encoder of packtool, and by the tokenizers library."""

import json
from collections.abc import Iterable
from itertools import islice
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tokenizers import Tokenizer
from tokenizers.models import BPE

from packtool.text.encoding.encoder_choice import FAST, choose_encoder, installed, load_encoder
from packtool.text.encoding.encoders import EncoderRecipe, ReferenceEncoder
from packtool.text.encoding.families import Shape
from packtool.text.encoding.load import FoundTokenizer
from packtool.text.encoding.long_texts import AT, pieces
from packtool.text.encoding.verify import Verified
from tests.text.encoding import shapes

needs_gigatoken = pytest.mark.skipif(not installed("gigatoken"), reason="there is no gigatoken for this platform")


def build(data: bytes, encoder: str, special_as_text: bool = False) -> Verified:
    found = FoundTokenizer({"tokenizer.json": data}, "t")
    recipe = choose_encoder(found, encoder, special_as_text=special_as_text)
    return load_encoder(recipe, data)


def chosen(spec: dict[str, Any], encoder: str = "auto") -> EncoderRecipe:
    return choose_encoder(FoundTokenizer({"tokenizer.json": json.dumps(spec).encode()}, "t"), encoder)


def recipe(encoder: str, shape: Shape | None = None, cut: str = "") -> EncoderRecipe:
    """A recipe that nothing was asked for."""
    return EncoderRecipe(
        encoder=encoder,
        why="",
        shape=shape or Shape(),
        cut=cut,
        added_tokens=(),
        vocab_size=1 << 20,
        special_as_text=False,
    )


def alone(spec: dict[str, Any], encoder: str, shape: Shape | None = None) -> Any:
    """The encoder that would be verified, whether or not the tokenizer has such a shape."""
    data, made, fast = json.dumps(spec).encode(), recipe(encoder, shape), FAST[encoder]
    return SimpleNamespace(encode=fast.load(data, made, ReferenceEncoder(data)))


def ids(encoder: Any, texts: list[str]) -> list[list[int]]:
    flat, lengths = encoder.encode(texts)
    return [part.tolist() for part in np.split(flat, np.cumsum(lengths)[:-1])]


def expected(spec: dict[str, Any], texts: list[str], special_as_text: bool = False) -> list[list[int]]:
    tokenizer = Tokenizer.from_str(json.dumps(spec))
    tokenizer.encode_special_tokens = special_as_text
    tokenizer.no_truncation()
    tokenizer.no_padding()
    if isinstance(tokenizer.model, BPE):
        tokenizer.model.dropout = None
    return [each.ids for each in tokenizer.encode_batch_fast(texts, add_special_tokens=False)]


def differing(
    spec: dict[str, Any], texts: Iterable[str], encoder: str = "auto", special_as_text: bool = False
) -> list[str]:
    """The texts whose ids are not those of the tokenizers library."""
    mine, some, wrong = build(shapes.data(spec), encoder, special_as_text), iter(texts), []
    while batch := list(islice(some, 50_000)):
        pairs = zip(ids(mine, batch), expected(spec, batch, special_as_text), strict=True)
        wrong += [text for text, (found, library) in zip(batch, pairs, strict=True) if found != library]
    return wrong


def cut_into(text: str, cut: str, reference: ReferenceEncoder) -> list[str]:
    """The pieces of a text, which have the ids of the whole."""
    parts = list(pieces(text, cut))
    assert (" " if cut == AT else "").join(parts) == text
    assert reference.encode(parts)[0].tolist() == reference.spell(text).tolist(), text
    return parts
