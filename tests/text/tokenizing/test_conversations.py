"""Tokens train as the offsets of `tokenizers` say, however their text was composed."""

import json
import random
from itertools import pairwise

import numpy as np
import pytest

from packtool.text.encoding.encoders import ReferenceEncoder
from packtool.text.tokenizing.conversations import TrainedTokens, token_mask
from tests.text.conversations.fuzz import WORDS
from tests.text.tokenizing.runs import ASSET

APART = ("e\u0301", "\u212b", "\u1100\u1161\u11a8", "a\u0323\u0307", "\u0958", "\u0301")


class Counting(ReferenceEncoder):
    """Counts how often offsets were asked for."""

    count = 0

    @property
    def tokenizer(self):
        type(self).count += 1
        return self._library

    @tokenizer.setter
    def tokenizer(self, library):
        self._library = library


@pytest.mark.parametrize("normalizer", [None, {"type": "NFC"}, {"type": "NFKC"}])
def test_masks_are_those_of_the_reference(normalizer: dict[str, str] | None) -> None:
    data = json.dumps({**json.loads(ASSET.read_bytes()), "normalizer": normalizer}).encode()
    reference = Counting(data)
    trained = TrainedTokens(data, reference)
    draw = random.Random(0)
    texts, spans = [], []
    for _ in range(300):
        text = "".join(draw.choices(WORDS + APART, k=draw.randint(1, 30)))
        cuts = sorted(draw.sample(range(len(text) + 1), min(len(text) + 1, 2 * draw.randint(1, 3))))
        texts.append(text)
        spans.append(tuple(tuple(pair) for pair in list(pairwise(cuts))[::2]))
    tokenizer = ReferenceEncoder(data).tokenizer
    encodings = [tokenizer.encode(text, add_special_tokens=False) for text in texts]
    expected = [
        token_mask(*np.array(each.offsets, np.int64).reshape(-1, 2).T, some)
        for each, some in zip(encodings, spans, strict=True)
    ]
    Counting.count = 0
    found = trained.masks(
        texts,
        [text.encode() for text in texts],
        spans,
        np.array([number for each in encodings for number in each.ids], np.uint32),
        np.array([len(each.ids) for each in encodings], np.int64),
    )
    np.testing.assert_array_equal(found, np.concatenate(expected))
    asked = Counting.count  # where a bound is within what is composed, and where more than composition is done
    assert asked == 0 if normalizer is None else 0 < asked < 300 * (0.2 if normalizer["type"] == "NFC" else 1)
