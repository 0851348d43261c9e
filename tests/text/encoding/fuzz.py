"""Texts that try to break an encoder: for any tokenizer, any number of them, the same for the same seed."""

import random
from collections.abc import Iterator, Sequence
from typing import Any

from packtool.text.encoding.families import BYTE_CHARACTERS
from packtool.text.encoding.unicode import table
from tests.text.encoding.shapes import BYTE_OF

RANGES = (
    *((0, 0x7F), (0x80, 0x24F), (0x250, 0x36F), (0x370, 0x5FF), (0x600, 0x8FF), (0x900, 0xDFF), (0xE00, 0x11FF)),
    *((0x1200, 0x1FFF), (0x2000, 0x2BFF), (0x2C00, 0x2FFF), (0x3000, 0x33FF), (0x3400, 0x9FFF), (0xA000, 0xABFF)),
    *((0xAC00, 0xD7FF), (0xE000, 0xFFFF), (0x10000, 0x11FFF), (0x12000, 0x1FFFF), (0x20000, 0x10FFFF)),
)
SPACES = " \n\t\r\v\f\x1c\x85\u00a0\u1680\u2003\u2028\u200b\u3000\ufeff▁"
ODD = "'’\u0301\u0323\u030a;\u037e`\u1fefK\u212aÅ\u212bé<=>\u0338①²½Ⅻ٣᭑𝟙ſ\u200d\ufe0f\u1161\u11a8ǅİıẞΣς_|-/\\\"“"
ENDINGS = (
    *("'s", "'S", "'LL", "'ve", "’t", "'re", "'", "n't", "ing", "ed", "。", "、", "。\n", "!\n\n", "...", "}\n"),
    "*/",
)
CODE = (
    "def f(x: int) -> str:\n    return f'{x:>10}'\n\n",
    "for (int i = 0; i < n; ++i) {\n\t\ta[i] += b[i] * 3.14e-10f;\n\t}\r\n",
    '{"key": [1, 2.5, null], "s": "\\u00e9\\n"}',
    "SELECT * FROM t WHERE a >= 10 AND b != 'x''y'; -- c\n",
    '<div class="a b">&nbsp;<!-- c --></div>\n\n\n',
    "$ git log --oneline | head -n 20 > /tmp/x.txt 2>&1\n",
    "https://example.org/a_b-c?d=1&e=%20#f foo@bar.baz C:\\dir\\file.txt",
)
PROSE = (
    "The quick brown fox jumps over the lazy dog; it didn't mind, and they'll say so in 2024.",
    "Zwölf Boxkämpfer jagen Viktor quer über den großen Sylter Deich. Ça va? Déjà vu à l'été, œuf, naïveté.",
    "Съешь же ещё этих мягких французских булок, да выпей чаю. Ξεσκεπάζω την ψυχοφθόρα βδελυγμία.",
    "今天天气很好，我们去公园。日本語の文章です。カタカナとひらがな。모든 인간은 태어날 때부터 자유롭다.",
    "सभी मनुष्यों को गौरव और अधिकारों के मामले में १२३ स्वतन्त्रता। বাংলা ভাষা ৎ। தமிழ் மொழி. മലയാളം ഭാഷ.",
    "يولد جميع الناس أحرارًا متساوين في الكرامة ١٢٣. כל בני האדם נולדו בני חורין. มนุษย์ทั้งหลายเกิดมามีอิสระ ๑๒๓",
    "အားလုံး လူ့အခွင့်အရေး၊ ខ្មែរ ភាសា, ქართული ენა, Հայերեն լեզու, አማርኛ ቋንቋ, བོད་སྐད།, Tiếng Việt: Tất cả mọi người",
    "😀😃 👩‍👩‍👧‍👦 🏳️‍🌈 🇨🇭 👍🏽 \U0001f9ff \U00020000 e\u0301 a\u030a\u0323 \u1100\u1161\u11a8 ﬁ ½ \u2126 ǆ",
)


def entries(vocab: Sequence[str]) -> list[str]:
    """The texts that vocabulary entries stand for, in byte-level vocabularies and those of SentencePiece."""
    byte_level = "Ġ" in "".join(vocab[:2000]) or BYTE_CHARACTERS.issuperset("".join(vocab[:300]))
    if not byte_level:
        return [entry.replace("▁", " ") for entry in vocab]
    return [
        bytes(map(BYTE_OF.__getitem__, entry)).decode("utf-8", "replace") if BYTE_OF.keys() >= set(entry) else entry
        for entry in vocab
    ]


def texts(spec: dict[str, Any], count: int, seed: int = 0, real: Sequence[str] = ()) -> Iterator[str]:
    """So many texts for a parsed tokenizer.json.

    Args:
        spec: the tokenizer; its vocabulary and added tokens are what texts are made of.
        count: how many.
        seed: other texts for another one.
        real: paragraphs of real text, to be cut and mutated; those above where there are none.
    """
    rng = random.Random(seed)
    known = spec["model"]["vocab"]  # of Unigram, a list of texts with their scores
    vocab = entries([text for text in (known if isinstance(known, dict) else dict(known)) if text])
    added = [token["content"] for token in spec.get("added_tokens") or ()] or ["<|none|>"]
    sources = list(real) or [*PROSE, *CODE]
    kinds = (_fuzz, _vocabulary, _vocabulary, _mutated, _mutated, _mutated, _runs, _added, _mixed)
    for number in range(count):
        yield kinds[number % len(kinds)](rng, vocab, added, sources)


def _fuzz(rng: random.Random, vocab: list[str], added: list[str], sources: list[str]) -> str:
    return "".join(_piece(rng, vocab) for _ in range(rng.randrange(1, 16)))


def _piece(rng: random.Random, vocab: list[str]) -> str:
    kind = rng.randrange(6)
    if kind == 0:
        return rng.choice(SPACES) * rng.choice((1, 1, 1, 2, 3, 9))
    if kind == 1:
        return "".join(rng.choice(ODD) for _ in range(rng.randrange(1, 4)))
    if kind == 2:
        return str(rng.randrange(10 ** rng.randrange(1, 12)))
    if kind == 3:
        return rng.choice(vocab) + rng.choice(ENDINGS)
    low, high = rng.choice(RANGES)
    unassigned = table("unassigned")  # few of them: texts with one go to the reference
    codes = (rng.randint(low, high) for _ in range(rng.randrange(2, 8)))
    kept = (code for code in codes if not unassigned[code] or rng.random() < 0.01)
    return "".join(chr(code) for code in kept if not 0xD800 <= code < 0xE000)


def _vocabulary(rng: random.Random, vocab: list[str], added: list[str], sources: list[str]) -> str:
    glue = rng.choice(("", "", "", " ", "\n"))
    return glue.join(rng.choice(vocab) for _ in range(rng.randrange(1, 14)))


def _mutated(rng: random.Random, vocab: list[str], added: list[str], sources: list[str]) -> str:
    text = rng.choice(sources)
    start = rng.randrange(len(text))
    characters = list(text[start : start + rng.randrange(10, 160)])
    for _ in range(rng.randrange(0, 5)):
        at = rng.randrange(len(characters) + 1)
        change = rng.randrange(5)
        if change == 0:
            characters.insert(at, rng.choice(SPACES))
        elif change == 1:
            characters.insert(at, rng.choice(ODD))
        elif change == 2:
            characters[at : at + 1] = [each.swapcase() for each in characters[at : at + 1]]
        elif change == 3:
            characters[at : at + rng.randrange(1, 4)] = []
        else:
            characters[at:at] = characters[at - 5 : at]
    return "".join(characters)


def _runs(rng: random.Random, vocab: list[str], added: list[str], sources: list[str]) -> str:
    length = rng.choice((1, 2, 3, 7, 20, 63, 130))
    units = (rng.choice(SPACES), rng.choice(ODD), rng.choice("aZ09=-#.\u4e00ก😀"), rng.choice(vocab)[:6], "ab", "1 ")
    return "".join(rng.choice(units) * rng.randrange(1, length + 1) for _ in range(rng.randrange(1, 4)))


def _added(rng: random.Random, vocab: list[str], added: list[str], sources: list[str]) -> str:
    parts = []
    for _ in range(rng.randrange(1, 5)):
        token = rng.choice(added)
        if rng.random() < 0.15:  # nearly one
            at = rng.randrange(len(token))
            token = token[:at] + rng.choice((" ", "", "x", "\u0301", token)) + token[at + 1 :]
        parts += [rng.choice(("", "", " ", "  ", "\n", "a", "1", "\u0301", "▁", rng.choice(vocab))), token]
    return "".join([*parts, rng.choice(("", " ", "a", "'s", "\u0301", "\n", "2"))])


def _mixed(rng: random.Random, vocab: list[str], added: list[str], sources: list[str]) -> str:
    kinds = (_fuzz, _vocabulary, _mutated, _runs, _added)
    return rng.choice(("", " ", "\n")).join(
        rng.choice(kinds)(rng, vocab, added, sources) for _ in range(rng.randrange(2, 4))
    )
