"""The running check of the fast encoder against the reference."""

from __future__ import annotations

from typing import Any

import pytest

from packtool.tokenizing.encoders import EncoderMismatchError, ReferenceEncoder
from packtool.tokenizing.verify import SAMPLE, Verified
from tests.tokenizing import shapes


class Lying(ReferenceEncoder):
    """The reference, but wrong from a certain text on."""

    name = "gigatoken"

    def __init__(self, wrong: str) -> None:
        super().__init__(shapes.data(shapes.spec()))
        self._wrong = wrong

    def encode(self, texts: Any, utf8: Any = None) -> Any:
        return super().encode([text.replace(self._wrong, "") for text in texts])


def test_a_wrong_id_in_the_sample_is_found() -> None:
    reference = ReferenceEncoder(shapes.data(shapes.spec()))
    encoder = Verified(Lying("Z"), reference, cut="before")
    encoder.encode(["fine"] * 50)
    assert encoder.checked > 1
    encoder.restart()
    assert encoder.checked == 0
    with pytest.raises(EncoderMismatchError, match="give different ids"):
        encoder.encode(["aZb"])
    encoder.restart()
    encoder.encode(["fine"] * 10)
    with pytest.raises(EncoderMismatchError):  # not among the first, but the sample gets there
        encoder.encode(["a longer text with Z in it" * 4] * SAMPLE)


def test_the_sample_is_about_one_text_in_a_thousand() -> None:
    reference = ReferenceEncoder(shapes.data(shapes.spec()))
    encoder = Verified(Lying("Z"), reference, cut="before")
    for _ in range(10):
        encoder.encode(["an ordinary text of a hundred characters or so" * 2] * 1000)
    assert 4 <= encoder.checked <= 20
