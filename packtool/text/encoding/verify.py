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

OFTEN, ENOUGH, SELDOM = 512, 256, 4096
"""One text in `OFTEN` is encoded by the reference too, whatever its length, until a worker has compared `ENOUGH`; from
then on, one in `SELDOM`. The reference takes more than 100 times as long as the fast encoder, so this takes a tenth of
the command's CPU time at first, and 2 % later.

n comparisons miss a kind of text that is a share p of all with a chance of (1 - p)^n: `ENOUGH` of them find one that is
2 % of the texts with 99 %. Rarer kinds are the matter of what is known of a tokenizer before it gets a fast encoder."""
_FIRST = 2  # texts that are compared at the very beginning, unless they are long
_LONG = 1 << 14
_TOGETHER = 256  # added tokens that are probed in one text

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
    """An encoder that checks itself against the reference as it goes, through all blocks of a worker.

    Args:
        encode: function that encodes; the reference itself is not checked.
        reference: encoder to compare with. It also encodes the texts that the fast encoder would get wrong: with a
            character that is too new, a byte that has no entry, or an added token that is found elsewhere.
        recipe: of the encoder.
        often, seldom: one in this many texts is checked, at first and later.
    """

    def __init__(
        self,
        encode: Encode,
        reference: ReferenceEncoder,
        recipe: EncoderRecipe,
        *,
        often: int = OFTEN,
        seldom: int = SELDOM,
    ) -> None:
        self.reference = reference
        self.recipe = recipe
        self.checked = 0  # texts that were compared, probes not included
        self._fast = encode
        self._newer = table(*recipe.shape.newer) if recipe.shape.newer else None
        self._often = often
        self._seldom = seldom
        self._chance = random.Random(0)
        self._first = _FIRST
        self._next = self._gap(0)  # number of the next text to check, counted from the next call's first

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
        """Encode with the fast encoder; texts that it would get wrong, with the reference."""
        by_reference = self._for_reference(texts, utf8)
        if any(by_reference):
            return self._encode_apart(texts, by_reference)
        ids, lengths = self._fast(texts, utf8)
        vocab_size = self.recipe.vocab_size
        if not len(ids) or ids.max() < vocab_size:
            return ids, lengths
        if not self.recipe.shape.lacks_bytes:
            raise self._wrong()
        return self._encode_apart(texts, [bool((part >= vocab_size).any()) for part in _split(ids, lengths)])

    def _for_reference(self, texts: Sequence[str], utf8: Sequence[bytes] | None) -> list[bool]:
        """Mark the texts with a character that is too new for the encoder, or with an added token that it may find in
        another place than the reference."""
        marked = [False] * len(texts)
        if self._newer is not None:
            marked = having(self._newer, texts, utf8 or list(map(str.encode, texts)))
        for token in self.recipe.shape.apart:
            marked = [before or token in text for before, text in zip(marked, texts, strict=True)]
        return marked

    def _encode_apart(self, texts: Sequence[str], by_reference: Sequence[bool]) -> tuple[U32, I64]:
        """Encode the marked texts with the reference, and the others with the fast encoder."""
        parts = []
        for apart, group in groupby(zip(by_reference, texts, strict=True), itemgetter(0)):
            neighbours = [text for _, text in group]
            encode = self.reference.encode if apart else self._encode
            parts.append(encode(neighbours))
        every_ids, every_length = zip(*parts, strict=True)
        return np.concatenate(every_ids), np.concatenate(every_length)

    def require(self, texts: Sequence[str]) -> None:
        """Check all texts but those that only the reference encodes: comparing them would prove nothing.

        Raises:
            EncoderMismatchError: on the first difference.
        """
        newer = self._newer
        if newer is not None:
            texts = ["".join(character for character in text if not newer[ord(character)]) for text in texts]
        for token in self.recipe.shape.apart:
            texts = [text for text in texts if token not in text]
        for text, ids in zip(texts, _split(*self._fast(texts, None)), strict=True):
            if not (self.recipe.shape.lacks_bytes and (ids >= self.recipe.vocab_size).any()):
                self._compare(text, ids)

    def _check(self, texts: Sequence[str], ids: U32, lengths: I64, ends: Sequence[bool] | None) -> None:
        """Compare a sample of these texts with the reference."""
        stops = np.cumsum(lengths)
        for number in self._chosen(texts):
            last = number
            if ends is not None and not ends[number] and number + 1 < len(texts):
                last = number + 1
            between = " " if self.recipe.cut == AT else ""
            whole = between.join(texts[number : last + 1])
            self._compare(whole, ids[stops[number] - lengths[number] : stops[last]])

    def _chosen(self, texts: Sequence[str]) -> list[int]:
        """Choose the texts to check: the very first that are not long, and some at random."""
        chosen = []
        for number, text in enumerate(texts):
            if self._first == 0:
                break
            if len(text) <= _LONG:
                chosen.append(number)
                self._first -= 1
        while self._next < len(texts):
            chosen.append(self._next)
            self._next += 1 + self._gap(self.checked + len(chosen))
        self._next -= len(texts)
        self.checked += len(chosen)
        return chosen

    def _gap(self, checked: int) -> int:
        """Draw how many texts to skip before the next check, after so many checks."""
        every = self._often if checked < ENOUGH else self._seldom
        return self._chance.randrange(2 * every - 1)  # every - 1 on average

    def _compare(self, text: str, ids: U32) -> None:
        """Require that these are the ids of a text."""
        if not np.array_equal(ids, self.reference.spell(text)):
            raise self._wrong()

    def _wrong(self) -> EncoderMismatchError:
        name = self.recipe.encoder
        what = f"{name} and tokenizers give different ids for a text with this tokenizer"
        return mismatch_error(what, f"--encoder={name}")


def _split(ids: U32, lengths: I64) -> list[U32]:
    """Return the ids of each text."""
    return np.split(ids, np.cumsum(lengths)[:-1])
