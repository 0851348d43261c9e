"""The running check of the fast encoder against the reference."""

import functools
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
from packtool.text.encoding.verify import ENOUGH, OFTEN, SELDOM, Verified, probes
from tests.text.encoding import shapes
from tests.text.encoding.encoding import recipe


class Lying(ReferenceEncoder):
    """The reference, but what it gives is changed."""

    def __init__(self, change: Callable[[str, Any], Any]) -> None:
        super().__init__(shapes.data(shapes.spec()))
        self._change = change
        self._true = functools.cache(lambda text: super(Lying, self).encode([text])[0])  # thousands of texts are equal

    def encode(self, texts: Any, utf8: Any = None) -> Any:
        found = [self._change(text, self._true(text)) for text in texts]
        return np.concatenate([np.empty(0, np.uint32), *found]), np.array([len(ids) for ids in found], np.int64)


def verified(change: Callable[[str, Any], Any], often: int = 16, shape: Shape | None = None) -> Verified:
    reference = ReferenceEncoder(shapes.data(shapes.spec()))
    return Verified(Lying(change).encode, reference, recipe("gigatoken", shape, cut=BEFORE), often=often)


def right(text: str, ids: Any) -> Any:
    del text
    return ids


def without_z(text: str, ids: Any) -> Any:
    return ids[1:] if "Z" in text else ids


def half_zeroed(text: str, ids: Any) -> Any:
    """Wrong in the later half of long texts only."""
    return np.where(np.arange(len(ids)) * 2 > len(ids), 0, ids).astype(np.uint32) if len(text) > 1024 else ids


def test_the_sample_is_one_text_in_so_many_then_one_in_more() -> None:
    """However they come, in calls of any size."""
    encoder = verified(right, often=OFTEN)
    for _ in range(10 * OFTEN // 128):
        encoder.encode(["a text"] * 128)
    assert 4 <= encoder.checked <= 24
    encoder = verified(right, often=4)
    encoder.encode(["a text"] * 4 * ENOUGH * 2)
    assert ENOUGH <= encoder.checked <= ENOUGH + 8
    encoder.encode(["a text"] * SELDOM * 10)
    assert ENOUGH + 5 <= encoder.checked <= ENOUGH + 20


def test_a_kind_of_text_is_found_as_often_as_is_said() -> None:
    """A share p of texts is missed by n comparisons with a chance of (1 - p)^n."""
    found = 0
    for seed in range(40):
        encoder = verified(without_z, often=8)
        kinds = np.random.default_rng(seed).random(8 * ENOUGH) < 0.01
        texts = np.where(kinds, "Z", "a").tolist()
        try:
            encoder.encode(texts)
        except EncoderMismatchError:
            found += 1
    assert found / 40 == pytest.approx(1 - 0.99**ENOUGH, abs=0.12)


def test_long_texts_are_not_among_the_first_that_are_checked() -> None:
    encoder = verified(half_zeroed, often=1 << 20)
    long = "words and words " * 2000
    encoder.encode([long, "short", long, "short", long])
    assert encoder.checked == 2


def test_stored_ids_are_checked_to_the_end_of_long_texts() -> None:
    for text in ("words and words " * 100, "words and words " * (PIECE // 8)):
        encoder = verified(half_zeroed)
        with pytest.raises(EncoderMismatchError, match="give different ids"):
            encoded([text] * 100, [None] * 100, encoder)


def test_a_cut_is_checked_with_both_of_its_sides() -> None:
    encoder = verified(right, often=OFTEN)
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
    lacks = Shape(lacks_bytes=True)
    verified(beyond, shape=lacks).require(["plain", "<x>"])  # but for those that the reference encodes
    with pytest.raises(EncoderMismatchError, match="give different ids"):
        verified(lambda text, ids: ids[1:], shape=lacks).require(["<x>", "plain"])


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
