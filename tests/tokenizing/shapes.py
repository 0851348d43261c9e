"""Tokenizers of many shapes, trained on a few sentences, and texts to try them on."""

from __future__ import annotations

import functools
import json
import random
from typing import Any

from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

from packtool.tokenizing.patterns import DEEPSEEK, GPT2, GPT4, O200K, QWEN2, TEKKEN

EOS = "<|endoftext|>"
_SAMPLE = [
    "The quick brown fox jumps over the lazy dog's back; it didn't mind, and they'll say so in 2024.",
    "def main(argv):\n    for i in range(100):\n        print(f'{i:03d}')\n    return 0\n",
    "Zwölf Boxkämpfer jagen Viktor quer über den großen Sylter Deich. Ça va? Déjà vu à l'été.",
    "Съешь же ещё этих мягких французских булок, да выпей чаю. 今天天气很好，我们去公园。日本語の文章です。",
    "http://example.org/path?query=1&other=%20x  <b>bold</b> 3.14159 1,000,000 $5.00 50%   \t\r\n  end",
    "é e\u0301 ﬁ ½ Å \u212b 😀👍🏽 \u200d\ufeff\u00a0\u3000",
]


@functools.cache
def trained() -> str:
    """A small byte-level BPE, as JSON."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=900,
        special_tokens=[EOS],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(_SAMPLE * 4, trainer)
    return str(tokenizer.to_str())


def spec(**changes: Any) -> dict[str, Any]:
    """The tokenizer.json of `trained`, parsed, with some top-level entries replaced."""
    return {**json.loads(trained()), **changes}


def data(spec: dict[str, Any]) -> bytes:
    """A parsed tokenizer.json as bytes."""
    return json.dumps(spec).encode()


def split(pattern: str = GPT2, **changes: Any) -> dict[str, Any]:
    """Pre-tokenizer that isolates a pattern, then ByteLevel without its own."""
    isolate = {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False, **changes}
    return {"type": "Sequence", "pretokenizers": [isolate, byte_level(use_regex=False)]}


def digits(individual: bool = True, **changes: Any) -> dict[str, Any]:
    """Pre-tokenizer that isolates numeric characters, then ByteLevel with its own pattern."""
    isolate = {"type": "Digits", "individual_digits": individual}
    return {"type": "Sequence", "pretokenizers": [isolate, byte_level(**changes)]}


def splits(*patterns: str) -> dict[str, Any]:
    """Pre-tokenizer that isolates several patterns, one after the other."""
    each = [split(pattern)["pretokenizers"][0] for pattern in patterns]
    return {"type": "Sequence", "pretokenizers": [*each, byte_level(use_regex=False)]}


SPACES = {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}
ONE_SPACE = {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "}
PREPEND = {"type": "Prepend", "prepend": "▁"}
GEMMA_SPLIT = {"type": "Split", "pattern": {"String": " "}, "behavior": "MergedWithPrevious", "invert": False}
METASPACE = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": False}


@functools.cache
def _sentencepiece() -> str:
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    special = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    trainer = trainers.BpeTrainer(vocab_size=900, special_tokens=special, limit_alphabet=150, show_progress=False)
    tokenizer.train_from_iterator(_SAMPLE[:4] * 4, trainer)
    return str(tokenizer.to_str())


def sentencepiece(*tokens: AddedToken, **changes: Any) -> dict[str, Any]:
    """A small BPE on characters with byte fallback."""
    parsed = json.loads(_sentencepiece())
    parsed["added_tokens"] = parsed["added_tokens"][:3]
    tokenizer = Tokenizer.from_str(json.dumps({**parsed, "pre_tokenizer": None, **changes}))
    for token in tokens:
        (tokenizer.add_special_tokens if token.special else tokenizer.add_tokens)([token])
    found: dict[str, Any] = json.loads(tokenizer.to_str())
    return found


@functools.cache
def _unigram() -> str:
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    special = ["<pad>", "</s>", "<unk>"]
    trainer = trainers.UnigramTrainer(vocab_size=400, special_tokens=special, unk_token="<unk>", show_progress=False)
    tokenizer.train_from_iterator(_SAMPLE * 4, trainer)
    return str(tokenizer.to_str())


def unigram(*tokens: AddedToken, **changes: Any) -> dict[str, Any]:
    """A small Unigram that marks words."""
    tokenizer = Tokenizer.from_str(_unigram())
    for token in tokens:
        (tokenizer.add_special_tokens if token.special else tokenizer.add_tokens)([token])
    return {**json.loads(tokenizer.to_str()), **changes}


def bert(**changes: Any) -> dict[str, Any]:
    """BERT's normalizer."""
    flags = {"clean_text": True, "handle_chinese_chars": True, "strip_accents": None, "lowercase": True}
    return {"type": "BertNormalizer", **flags, **changes}


def wordpiece(*tokens: AddedToken, **changes: Any) -> dict[str, Any]:
    """A small WordPiece that normalizes and splits as BERT does: every letter of some scripts, and words of English."""
    letters = [chr(code) for code in range(0x21, 0x530) if chr(code).isprintable()] + list("日本語한국어。「」😀あア")
    words = [
        "the",
        "of",
        "and",
        "quick",
        "brown",
        "fox",
        "jump",
        "cafe",
        "don",
        "isn",
        "over",
        "lazy",
        "dog",
        "19",
        "20",
        "2024",
        "def",
        "return",
        "print",
    ]
    endings = ["s", "ed", "ing", "er", "00", "99", "x"]
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    entries = [*special, *letters, *words, *(f"##{each}" for each in [*letters, *words, *endings])]
    model = models.WordPiece(
        vocab={text: number for number, text in enumerate(dict.fromkeys(entries))}, unk_token="[UNK]"
    )
    tokenizer = Tokenizer(model)
    tokenizer.add_special_tokens([AddedToken(text, normalized=False) for text in special])
    for token in tokens:
        (tokenizer.add_special_tokens if token.special else tokenizer.add_tokens)([token])
    parsed = json.loads(tokenizer.to_str())
    return {**parsed, "normalizer": bert(), "pre_tokenizer": {"type": "BertPreTokenizer"}, **changes}


def normalizers_of(*each: dict[str, Any]) -> dict[str, Any]:
    """A Sequence of normalizers."""
    return {"type": "Sequence", "normalizers": list(each)}


def byte_level(**changes: Any) -> dict[str, Any]:
    """ByteLevel pre-tokenizer."""
    return {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True, **changes}


def with_added(*tokens: AddedToken, **changes: Any) -> dict[str, Any]:
    """With more added tokens."""
    tokenizer = Tokenizer.from_str(json.dumps(spec(**changes)))
    for token in tokens:
        (tokenizer.add_special_tokens if token.special else tokenizer.add_tokens)([token])
    parsed: dict[str, Any] = json.loads(tokenizer.to_str())
    return parsed


@functools.cache
def _pairs() -> tuple[dict[str, int], list[str]]:
    bytes_ = sorted(pre_tokenizers.ByteLevel.alphabet())
    both = [first + second for first in bytes_ for second in bytes_]
    random.Random(0).shuffle(both)
    vocab = {text: number for number, text in enumerate([*bytes_, *both])}
    return vocab, [f"{first} {second}" for first, second in both]


def pairs(**changes: Any) -> dict[str, Any]:
    """A byte-level BPE that joins any two bytes, so that every boundary of a pre-tokenizer shows in the ids."""
    vocab, merges = _pairs()
    return spec(model={**spec()["model"], "vocab": vocab, "merges": merges}, added_tokens=[], **changes)


NFC = json.loads(normalizers.NFC().__getstate__())


def _with_entries(*foreign: str) -> dict[str, Any]:
    model = spec()["model"]
    vocab = dict(model["vocab"])
    for text in foreign:
        vocab[text] = len(vocab)
    return spec(model={**model, "vocab": vocab})


LISTED = {
    "GPT-2": spec(),
    "NFC": spec(normalizer=NFC),
    "split as GPT-4": spec(pre_tokenizer=split(GPT4)),
    "split as Qwen 2": spec(pre_tokenizer=split(QWEN2), normalizer=NFC),
    "split as o200k": spec(pre_tokenizer=split(O200K)),
    "split as Tekken": spec(pre_tokenizer=split(TEKKEN)),
    "ignoring merges": spec(model={**spec()["model"], "ignore_merges": True}, pre_tokenizer=split(GPT4)),
    "special tokens": with_added(AddedToken("<|im_start|>", special=True), AddedToken("<pad>", special=True)),
    "added words": with_added(AddedToken("brown fox", normalized=False), AddedToken("def", normalized=True)),
    "stripping tokens": with_added(AddedToken("<mask>", lstrip=True, special=True), AddedToken("<end>", rstrip=True)),
    "nested tokens": with_added(AddedToken("<a>", special=True), AddedToken("<a><b>", special=True)),
    "GPT-4 as converted": spec(pre_tokenizer=split(GPT4, behavior="Removed", invert=True)),
    "o200k as converted": spec(pre_tokenizer=split(O200K, behavior="Removed", invert=True)),
    "DeepSeek": with_added(
        AddedToken("<|User|>", normalized=True), normalizer=normalizers_of(), pre_tokenizer=splits(*DEEPSEEK)
    ),
    "GPT-NeoX": with_added(AddedToken("    ", normalized=True), AddedToken("||IP||", normalized=True), normalizer=NFC),
    "digits": spec(pre_tokenizer=digits()),
    "digits and NFC": with_added(AddedToken("<1>", special=True), pre_tokenizer=digits(), normalizer=NFC),
    "foreign entries": _with_entries("🇨🇭", "é́", "日本", "½"),
    "Llama 2": sentencepiece(normalizer=normalizers_of(PREPEND, SPACES)),
    "Phi 3": sentencepiece(
        AddedToken("<|end|>", rstrip=True, special=True), normalizer=normalizers_of(PREPEND, SPACES)
    ),
    "Gemma": sentencepiece(
        AddedToken("\n\n", normalized=False),
        AddedToken("▁▁", normalized=False),
        AddedToken("<h1>", normalized=False),
        normalizer=SPACES,
        pre_tokenizer=GEMMA_SPLIT,
    ),
    "Yi": sentencepiece(normalizer=normalizers_of(SPACES)),
    "Metaspace": sentencepiece(AddedToken("<h1>", normalized=False), normalizer=None, pre_tokenizer=METASPACE),
    "tokens and NFC": with_added(AddedToken("été", normalized=False), normalizer=NFC),
}
"""Shapes on the list: gigatoken must give the ids of tokenizers."""


def _model(**changes: Any) -> dict[str, Any]:
    return spec(model={**spec()["model"], **changes})


UNLISTED = {
    "no pre-tokenizer": (spec(pre_tokenizer=None), "it has no pre-tokenizer"),
    "ByteLevel without its pattern": (spec(pre_tokenizer=byte_level(use_regex=False)), "ByteLevel without its pattern"),
    "runs of digits": (spec(pre_tokenizer=digits(individual=False)), "keeps runs of digits together"),
    "digits found later": (
        with_added(AddedToken("<1>", normalized=True), pre_tokenizer=digits()),
        "'<1>' is looked for after its digits",
    ),
    "other splits": (spec(pre_tokenizer=splits(*DEEPSEEK[:2])), "its pre-tokenizer is Split + Split + ByteLevel"),
    "keeping matches of a pattern with gaps": (
        spec(pre_tokenizer=split(GPT2, behavior="Removed", invert=True)),
        "does more than isolate one pattern",
    ),
    "overlapping tokens": (
        with_added(AddedToken("ab<", normalized=True), AddedToken("<c>", normalized=False)),
        "'ab<' overlaps another that is looked for first",
    ),
    "overlapping spaces": (
        with_added(AddedToken("  ", normalized=True), AddedToken("<m>", lstrip=True, normalized=False)),
        "'  ' has spaces that another strips",
    ),
    "SentencePiece and NFC": (
        sentencepiece(normalizer=normalizers_of(json.loads(normalizers.NFC().__getstate__()), SPACES)),
        "marks spaces in an unknown way",
    ),
    "SentencePiece and digits": (
        sentencepiece(normalizer=SPACES, pre_tokenizer={"type": "Digits", "individual_digits": True}),
        "its pre-tokenizer is Digits",
    ),
    "SentencePiece, normalized tokens": (
        sentencepiece(AddedToken("<x>", normalized=True), normalizer=SPACES),
        "'<x>' is looked for in normalized text",
    ),
    "prefix space": (spec(pre_tokenizer=byte_level(add_prefix_space=True)), "it adds a space before texts"),
    "split and ByteLevel's own": (
        spec(pre_tokenizer={"type": "Sequence", "pretokenizers": [split(GPT4)["pretokenizers"][0], byte_level()]}),
        "does more than isolate one pattern",
    ),
    "removing split": (spec(pre_tokenizer=split(behavior="Removed")), "does more than isolate one pattern"),
    "single words": (with_added(AddedToken("fox", single_word=True)), "'fox' stands for single words only"),
    "normalized tokens": (
        with_added(AddedToken("é", normalized=True), normalizer=NFC),
        "'é' is looked for in normalized text",
    ),
    "word suffix": (_model(end_of_word_suffix="</w>"), "it has a suffix on words"),
    "word prefix": (_model(continuing_subword_prefix="##"), "it has a prefix on continuing subwords"),
    "dropout": (_model(dropout=0.5), "it has BPE dropout"),
    "unknown token": (_model(unk_token=EOS), "it has an unknown token"),
    "byte fallback": (_model(byte_fallback=True), "it has byte fallback, but not for every byte"),
    "lower case": (spec(normalizer={"type": "Lowercase"}), "its normalizer is Lowercase, not NFC or none"),
    "truncation": (
        spec(truncation={"direction": "Right", "max_length": 8, "strategy": "LongestFirst", "stride": 0}),
        "it truncates",
    ),
    "padding": (
        spec(
            padding={
                "strategy": {"Fixed": 20},
                "direction": "Right",
                "pad_to_multiple_of": None,
                "pad_id": 0,
                "pad_type_id": 0,
                "pad_token": EOS,
            }
        ),
        "it pads",
    ),
}
"""Shapes that are not, and why."""


def texts(count: int, seed: int) -> list[str]:
    """Random texts: pieces of sentences, of any script, spaces, controls, special tokens, combining marks."""
    rng = random.Random(seed)
    words = [word for sentence in _SAMPLE for word in sentence.split(" ")]
    odd = [
        EOS,
        "<|im_start|>",
        "<pad>",
        "<mask>",
        "<end>",
        "<a>",
        "<a><b>",
        "brown fox",
        "def",
        "été",
        "é",
        "'s",
        "'LL",
        "’t",
    ]
    spaces = [
        " ",
        "  ",
        "\n",
        "\n\n",
        "\t",
        "\r\n",
        "\u00a0",
        "\u2003",
        "\u3000",
        "\u200b",
        "\x0b",
        "\x85",
        "\u2028",
        "",
    ]
    ranges = [(0, 0x7F), (0x80, 0x24F), (0x300, 0x36F), (0x370, 0x5FF), (0x600, 0x11FF), (0x1F00, 0x2BFF)]
    ranges += [(0x3000, 0x9FFF), (0xAC00, 0xD7FF), (0xE000, 0xFFFF), (0x10000, 0x1FFFF), (0x20000, 0x10FFFF)]

    def piece() -> str:
        kind = rng.random()
        if kind < 0.4:
            return rng.choice(words)
        if kind < 0.6:
            return rng.choice(spaces) * rng.choice([1, 1, 1, 2, 3, 17])
        if kind < 0.7:
            return rng.choice(odd)
        if kind < 0.8:
            return str(rng.randrange(10 ** rng.randrange(1, 12)))
        low, high = rng.choice(ranges)
        return "".join(chr(rng.randint(low, high)) for _ in range(rng.randrange(1, 6)))

    return ["".join(piece() for _ in range(rng.randrange(0, 12))) for _ in range(count)]
