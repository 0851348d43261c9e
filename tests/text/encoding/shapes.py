"""Tokenizers of many shapes, trained on a few sentences."""

import functools
import json
import random
from collections.abc import Sequence
from itertools import groupby, pairwise, product
from typing import Any

from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

from packtool.text.encoding.families import GPT2

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


def token(text: str, number: int, **flags: bool) -> dict[str, Any]:
    """An entry of `added_tokens`: a special token with no other flags than these."""
    others = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    return {"id": number, "content": text, **others, "special": True, **flags}


SHOWN = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
BYTE_OF = {chr(byte): byte for byte in SHOWN}
BYTE_OF |= {chr(0x100 + number): byte for number, byte in enumerate(sorted({*range(256)} - {*SHOWN}))}
"""The bytes by the characters that a byte-level vocabulary writes for them, those first that stand for themselves."""
CHARACTER_OF = {byte: character for character, byte in BYTE_OF.items()}


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


def byte_level(**changes: Any) -> dict[str, Any]:
    """ByteLevel pre-tokenizer."""
    return {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True, **changes}


FALCON = {
    "type": "Sequence",
    "pretokenizers": [
        {"type": "Punctuation", "behavior": "Contiguous"},
        byte_level(),
        {"type": "Digits", "individual_digits": False},
        {"type": "Split", "pattern": {"Regex": "[0-9][0-9][0-9]"}, "behavior": "Isolated", "invert": False},
    ],
}
SPACES = {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}
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
    return _added({**parsed, "pre_tokenizer": None, **changes}, tokens)


def normalizers_of(*each: dict[str, Any]) -> dict[str, Any]:
    """A Sequence of normalizers."""
    return {"type": "Sequence", "normalizers": list(each)}


def with_added(*tokens: AddedToken, **changes: Any) -> dict[str, Any]:
    """With more added tokens."""
    return _added(spec(**changes), tokens)


def _added(spec: dict[str, Any], tokens: Sequence[AddedToken]) -> dict[str, Any]:
    tokenizer = Tokenizer.from_str(json.dumps(spec))
    for special, alike in groupby(tokens, key=lambda token: token.special):  # one by one, thousands take minutes
        (tokenizer.add_special_tokens if special else tokenizer.add_tokens)([*alike])
    parsed: dict[str, Any] = json.loads(tokenizer.to_str())
    return parsed


def pairs(texts: Sequence[str] | None = None, **changes: Any) -> dict[str, Any]:
    """A byte-level BPE that joins any two bytes, so that every boundary of a pre-tokenizer shows in the ids.

    Args:
        texts: where given, it joins no other bytes than those that are neighbours in them, or in their NFC: for these
            texts it is the same, and loads in less time.
    """
    bytes_ = sorted(pre_tokenizers.ByteLevel.alphabet())
    both = list(product(bytes_, bytes_)) if texts is None else sorted(_neighbours(texts))
    random.Random(0).shuffle(both)
    vocab = {text: number for number, text in enumerate([*bytes_, *map("".join, both)])}
    model = {**spec()["model"], "vocab": vocab, "merges": list(map(" ".join, both))}
    return spec(model=model, added_tokens=[], **changes)


def _neighbours(texts: Sequence[str]) -> set[tuple[str, str]]:
    """Neighbouring bytes, each as the character that stands for it."""
    joined = "\n".join(texts)
    spell = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False).pre_tokenize_str
    found: set[tuple[str, str]] = set()
    for text in (joined, normalizers.NFC().normalize_str(joined)):
        [(characters, _)] = spell(text)
        found.update(pairwise(characters))
    return found


NFC = json.loads(normalizers.NFC().__getstate__())
CLIP = r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"
CLIP_NORMALIZER = normalizers_of(
    NFC, {"type": "Replace", "pattern": {"Regex": r"\s+"}, "content": " "}, {"type": "Lowercase"}
)


def with_entries(*foreign: str) -> dict[str, Any]:
    """`spec` with these entries, too."""
    model = spec()["model"]
    vocab = dict(model["vocab"])
    for text in foreign:
        vocab[text] = len(vocab)
    return spec(model={**model, "vocab": vocab})
