"""Check that the fast encoder gives the ids of the reference: on fixed probes, and on a running sample."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter

import numpy as np

from packtool.planning.plan import I64
from packtool.text.encoding.encoders import (
    U32,
    Encode,
    EncoderMismatchError,
    EncoderRecipe,
    ReferenceEncoder,
    mismatch_error,
)
from packtool.text.encoding.long_texts import AT
from packtool.text.encoding.unicode import having, table

SAMPLE = 512
"""One in this many texts is encoded by the reference too, whatever its length. The reference is some 50 to 80 times
slower, so this takes a tenth of the encoder's time, and three or four per cent of the whole command's."""
_FIRST = 2
"""Texts at the beginning of a block that are checked in any case, unless they are long."""
_LONG = 1 << 14
_TOGETHER = 256
"""Added tokens that are probed in one text."""

_PROBES = (
    "",
    " ",
    "The quick brown fox jumps over the lazy dog. It's 1999, isn't it? We'll see; they've 12345 reasons!",
    "I'M SURE YOU'RE RIGHT, HE'D SAY: 'TIS ''s 'S ’s don’t",
    "  leading, trailing  \t and\u00a0inner \u2003 spaces   ",
    "line\nline\r\nline\n\n\nline \n  \n\tindented\n    def f(x):\n        return x**2  # note\n",
    "x" * 300 + " " * 70 + "\n" * 40 + "=" * 90 + "1234567890" * 9,
    "https://example.org/a_b-c?d=1&e=%20#f foo@bar.baz C:\\dir\\file.txt $1,234.56 3.14e-10 50% A/B",
    "naïve café Ångström ﬁ ½ ² Ⅷ ǅ ß İ ı ẞ – — … “quotes” ‘single’ «guillemets»",
    "e\u0301 a\u030a \u1100\u1161\u11a8 \u0e01\u0e33 q\u0307\u0323 \u212b \u2126 \u0344 \u0958",
    "Привет, мир! Γειά σου Κόσμε. שלום עולם مرحبا بالعالم नमस्ते दुनिया สวัสดีชาวโลก",
    "今天天气很好。日本語のテキスト、カタカナ。한국어 문장입니다. 中文English混合123数字",
    "😀😃 👩‍👩‍👧‍👦 🏳️‍🌈 🇨🇭 👍🏽 \U0001f9ff \U00020000\U0002ffff \U0010ffff",
    "\x00\x01\x1b[0m\x7f \x80\x85\x9f \u200b\u200d\ufeff\ufffd\ufffe \u2028\u2029 \u202eabc",
    "٠١٢ ೪೫ ᭑ 𝟙𝟚 ㊿ ⑩ Ⅻ ¼",
    '{"key": [1, 2.5, true, null], "s": "\\u00e9\\n"} <tag a="b">&amp;</tag> $x^2_{ij}$ /* c */ // d',
)


def probes(added_tokens: Sequence[str]) -> list[str]:
    """Write texts that exercise a tokenizer: scripts, spaces, digits, controls, its added tokens, some in context."""
    texts = list(_PROBES)
    tokens = list(added_tokens)
    for token in tokens[:64]:
        texts += [token, f"a{token}b", f" {token} {token}\n{token}{token}", token[:-1] + " " + token[1:]]
    return texts + [" ".join(tokens[at : at + _TOGETHER]) for at in range(0, len(tokens), _TOGETHER)]


class Verified:
    """An encoder that checks itself against the reference as it goes.

    Args:
        encode: what encodes; the reference itself needs no check.
        reference: what it is checked against. Texts with characters that are too new for one of them go to it, and
            those with a byte that has no entry.
        recipe: of the encoder.
        sample: one in this many texts is checked.

    Attributes:
        checked: texts that were compared since the block began.
    """

    def __init__(
        self,
        encode: Encode,
        reference: ReferenceEncoder,
        recipe: EncoderRecipe,
        *,
        sample: int = SAMPLE,
    ) -> None:
        self.reference = reference
        self.recipe = recipe
        self._fast = encode
        self._newer = table(*recipe.shape.newer) if recipe.shape.newer else None
        self._sample_of = sample
        self._chance = random.Random(0)
        self.restart()

    def restart(self) -> None:
        """Begin a block: its first texts will be checked."""
        self.checked = 0
        self._first = _FIRST

    def encode(
        self, texts: Sequence[str], utf8: Sequence[bytes] | None = None, ends: Sequence[bool] | None = None
    ) -> tuple[U32, I64]:
        """Return all ids, one text after another, and the number of ids of each text.

        Args:
            utf8: the texts as bytes, where they are at hand.
            ends: whether each text ends its document. Where it does not, the next is a piece of the same document,
                and the two are checked together, so that the cut between them is checked, too.

        Raises:
            EncoderMismatchError: on the first difference.
        """
        if self.recipe.encoder == "tokenizers":
            return self.reference.encode(texts)
        ids, lengths = self._encode(texts, utf8)
        self._check(texts, ids, lengths, ends)
        return ids, lengths

    def _encode(self, texts: Sequence[str], utf8: Sequence[bytes] | None = None) -> tuple[U32, I64]:
        """Encode with the fast encoder, but with the reference what is too new for one of them, or lacks an entry."""
        utf8 = utf8 or list(map(str.encode, texts))
        apart = [] if self._newer is None else having(self._newer, texts, utf8)
        if not any(apart):
            ids, lengths = self._fast(texts, utf8)
            if not len(ids) or ids.max() < self.recipe.vocab_size:
                return ids, lengths
            if not self.recipe.shape.lacks_bytes:
                raise self._wrong()
            apart = [bool((part >= self.recipe.vocab_size).any()) for part in _split(ids, lengths)]
        encoded = []
        for to_reference, group in groupby(zip(apart, texts, strict=True), itemgetter(0)):
            group_texts = [text for _, text in group]
            encoded.append(self.reference.encode(group_texts) if to_reference else self._encode(group_texts))
        ids, lengths = map(np.concatenate, zip(*encoded, strict=True))
        return ids, lengths

    def require(self, texts: Sequence[str]) -> None:
        """Check all of `texts`, but for what only the reference encodes: of that they would prove nothing.

        Raises:
            EncoderMismatchError: on the first difference.
        """
        if (newer := self._newer) is not None:
            texts = ["".join(character for character in text if not newer[ord(character)]) for text in texts]
        for text, ids in zip(texts, _split(*self._fast(texts, None)), strict=True):
            if not (self.recipe.shape.lacks_bytes and (ids >= self.recipe.vocab_size).any()):
                self._compare(text, ids)

    def _check(self, texts: Sequence[str], ids: U32, lengths: I64, ends: Sequence[bool] | None) -> None:
        """Compare a sample of these texts."""
        places = np.cumsum(lengths)
        for number, text in enumerate(texts):
            if self._first > 0 and len(text) <= _LONG:
                self._first -= 1
            elif self._chance.random() * self._sample_of >= 1:
                continue
            last = number if ends is None or ends[number] or number + 1 == len(texts) else number + 1
            whole = (" " if self.recipe.cut == AT else "").join(texts[number : last + 1])
            self._compare(whole, ids[places[number] - lengths[number] : places[last]])

    def _compare(self, text: str, ids: U32) -> None:
        """Require that these are the ids of a text."""
        self.checked += 1
        if not np.array_equal(ids, self.reference.spell(text)):
            raise self._wrong()

    def _wrong(self) -> EncoderMismatchError:
        name = self.recipe.encoder
        what = f"{name} and tokenizers give different ids for a text with this tokenizer"
        return mismatch_error(what, f"--encoder {name}")


def _split(ids: U32, lengths: I64) -> list[U32]:
    """Return the ids of each text."""
    return np.split(ids, np.cumsum(lengths)[:-1])
