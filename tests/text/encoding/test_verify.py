"""The running check of the fast encoder against the reference."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tokenizers import AddedToken

from packtool.text.encoding.encode import encoded
from packtool.text.encoding.encoders import EncoderMismatchError, ReferenceEncoder
from packtool.text.encoding.families import Shape
from packtool.text.encoding.long_texts import BEFORE, PIECE
from packtool.text.encoding.unicode import NFC, PATTERNS
from packtool.text.encoding.verify import SAMPLE, Verified, probes
from tests.text.encoding import shapes
from tests.text.encoding.encoding import recipe


class Lying(ReferenceEncoder):
    """The reference, but what it gives is changed."""

    def __init__(self, change: Callable[[str, Any], Any]) -> None:
        super().__init__(shapes.data(shapes.spec()))
        self._change = change

    def encode(self, texts: Any, utf8: Any = None) -> Any:
        found = [self._change(text, super(Lying, self).encode([text])[0]) for text in texts]
        return np.concatenate([np.empty(0, np.uint32), *found]), np.array([len(ids) for ids in found], np.int64)


def verified(change: Callable[[str, Any], Any], sample: int = 16) -> Verified:
    reference = ReferenceEncoder(shapes.data(shapes.spec()))
    return Verified(Lying(change).encode, reference, recipe("gigatoken", cut=BEFORE), sample=sample)


def without_z(text: str, ids: Any) -> Any:
    return ids[1:] if "Z" in text else ids


def half_zeroed(text: str, ids: Any) -> Any:
    """Wrong in the later half of long texts only."""
    return np.where(np.arange(len(ids)) * 2 > len(ids), 0, ids).astype(np.uint32) if len(text) > 1024 else ids


def test_a_wrong_id_in_the_sample_is_found() -> None:
    encoder = verified(without_z)
    encoder.encode(["fine"] * 50)
    assert encoder.checked > 1
    encoder.restart()
    assert encoder.checked == 0
    with pytest.raises(EncoderMismatchError, match="give different ids"):
        encoder.encode(["aZb"])
    encoder.restart()
    encoder.encode(["fine"] * 10)
    with pytest.raises(EncoderMismatchError):  # not among the first, but the sample gets there
        encoder.encode(["a longer text with Z in it" * 4] * 200)


def test_the_sample_is_one_text_in_so_many() -> None:
    encoder = verified(lambda text, ids: ids, sample=SAMPLE)
    for _ in range(10):
        encoder.encode(["a text"] * SAMPLE)
    assert 4 <= encoder.checked <= 24


def test_stored_ids_are_checked_to_the_end_of_long_texts() -> None:
    for text in ("words and words " * 100, "words and words " * (PIECE // 8)):
        encoder = verified(half_zeroed)
        with pytest.raises(EncoderMismatchError, match="give different ids"):
            encoded([text] * 100, [None] * 100, encoder)


def test_a_cut_is_checked_with_both_of_its_sides() -> None:
    encoder = verified(lambda text, ids: ids, sample=SAMPLE)
    with pytest.raises(EncoderMismatchError):
        encoder.encode(["the lazy do", "g over the fox"], ends=[False, True])
    encoder.encode(["cut where words", " begin"], ends=[False, True])
    assert encoder.checked == 2


def beyond(text: str, ids: Any) -> Any:
    return np.array([1 << 20], np.uint32) if "<" in text else ids


def test_an_id_beyond_the_vocabulary_is_a_difference() -> None:
    """Texts with one once went to the reference, and so did the probes of added tokens that got one."""
    encoder = verified(beyond)
    for check in (encoder.require, encoder.encode):
        with pytest.raises(EncoderMismatchError, match="give different ids"):
            check(["plain", "<x>"])
    lacks = recipe("gigatoken", Shape(lacks_bytes=True), cut=BEFORE)
    encoder = Verified(Lying(beyond).encode, ReferenceEncoder(shapes.data(shapes.spec())), lacks)
    encoder.require(["plain", "<x>"])
    assert encoder.checked == 1, "but for those that the reference encodes"


def test_no_probe_goes_to_the_reference() -> None:
    """Of what is too new, the probe keeps the rest."""

    def wrong(text: str, ids: Any) -> Any:
        return ids[1:] if "B" in text else ids

    for shape in (Shape(newer=PATTERNS), Shape(newer=NFC)):
        reference = ReferenceEncoder(shapes.data(shapes.spec()))
        encoder = Verified(Lying(wrong).encode, reference, recipe("gigatoken", shape))
        assert encoder.encode(["A\u1ad1 B"])[0].tolist() == reference.spell("A\u1ad1 B").tolist()
        with pytest.raises(EncoderMismatchError, match="give different ids"):
            encoder.require(["A\u1ad1 B"])


def test_every_added_token_is_probed() -> None:
    spec = shapes.with_added(*(AddedToken(f"<{number}>", normalized=False) for number in range(5000)))
    tokens = [token["content"] for token in spec["added_tokens"]]
    text = "\n".join(probes(tokens))
    assert all(token in text for token in tokens)
