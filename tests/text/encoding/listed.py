"""Tokenizers on the list of what gigatoken is right for, and tokenizers that are not."""

from typing import Any

from tokenizers import AddedToken

from packtool.text.encoding.families import DEEPSEEK, GPT2, GPT4, O200K, QWEN2, TEKKEN
from tests.text.encoding.shapes import (
    EOS,
    GEMMA_SPLIT,
    METASPACE,
    NFC,
    PREPEND,
    SPACES,
    byte_level,
    digits,
    normalizers_of,
    sentencepiece,
    spec,
    split,
    splits,
    with_added,
    with_entries,
)

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
    "digits and tokens": with_added(
        *(AddedToken(text, special=True) for text in ("<1>", "<|2")),
        AddedToken("<m>", lstrip=True, rstrip=True, special=True),
        pre_tokenizer=digits(),
    ),
    "digits and NFC": with_added(AddedToken("<1>", special=True), pre_tokenizer=digits(), normalizer=NFC),
    "foreign entries": with_entries("🇨🇭", "é́", "日本", "½"),
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
    "asking for more": spec(
        truncation={"direction": "Right", "max_length": 8, "strategy": "LongestFirst", "stride": 0},
        padding={
            "strategy": {"Fixed": 20},
            "direction": "Right",
            "pad_to_multiple_of": None,
            "pad_id": 0,
            "pad_type_id": 0,
            "pad_token": EOS,
        },
        model={**spec()["model"], "dropout": 0.5},
    ),
    "tokens and NFC": with_added(AddedToken("été", normalized=False), normalizer=NFC),
    "overlapping tokens": with_added(AddedToken("ab<", normalized=True), AddedToken("<c>", normalized=False)),
    "overlapping spaces": with_added(
        AddedToken("  ", normalized=True), AddedToken("<m>", lstrip=True, normalized=False)
    ),
    "single words": with_added(AddedToken("fox", single_word=True)),
    "ModernBERT": with_added(
        *(AddedToken(" " * size, normalized=True) for size in range(24, 1, -1)),
        AddedToken("|||IP_ADDRESS|||", normalized=True),
        AddedToken("[MASK]", lstrip=True, special=True),
        normalizer=NFC,
    ),
}
"""Shapes on the list: gigatoken must give the ids of tokenizers."""


def _model(**changes: Any) -> dict[str, Any]:
    return spec(model={**spec()["model"], **changes})


UNLISTED = {
    "no pre-tokenizer": (spec(pre_tokenizer=None), "its pre-tokenizer, none"),
    "ByteLevel without its pattern": (spec(pre_tokenizer=byte_level(use_regex=False)), "its pre-tokenizer, ByteLevel"),
    "runs of digits": (spec(pre_tokenizer=digits(individual=False)), "its pre-tokenizer, Digits + ByteLevel"),
    "digits found later": (
        with_added(AddedToken("<1>", normalized=True), pre_tokenizer=digits()),
        "'<1>' is looked for after its digits",
    ),
    "a pattern that was not compared": (
        spec(pre_tokenizer=split(r"\d|\w+|\W")),
        "does not split as any that is listed",
    ),
    "other splits": (spec(pre_tokenizer=splits(*DEEPSEEK[:2])), "its pre-tokenizer, Split + Split + ByteLevel"),
    "keeping matches of a pattern with gaps": (
        spec(pre_tokenizer=split(GPT2, behavior="Removed", invert=True)),
        "its pre-tokenizer, Split + ByteLevel",
    ),
    "SentencePiece and NFC": (sentencepiece(normalizer=normalizers_of(NFC, SPACES)), "marks spaces in an unknown way"),
    "SentencePiece and digits": (
        sentencepiece(normalizer=SPACES, pre_tokenizer={"type": "Digits", "individual_digits": True}),
        "its pre-tokenizer is Digits",
    ),
    "SentencePiece, normalized tokens": (
        sentencepiece(AddedToken("<x>", normalized=True), normalizer=SPACES),
        "'<x>' is looked for in normalized text",
    ),
    "prefix space": (spec(pre_tokenizer=byte_level(add_prefix_space=True)), "its pre-tokenizer, ByteLevel"),
    "split and ByteLevel's own": (
        spec(pre_tokenizer={"type": "Sequence", "pretokenizers": [split(GPT4)["pretokenizers"][0], byte_level()]}),
        "its pre-tokenizer, Split + ByteLevel",
    ),
    "removing split": (spec(pre_tokenizer=split(behavior="Removed")), "its pre-tokenizer, Split + ByteLevel"),
    "many tokens of single words": (
        with_added(*(AddedToken(f"fox {number}", single_word=True) for number in range(20))),
        "its added tokens 'fox 0' and 19 others are looked for in an unusual way",
    ),
    "normalized tokens": (
        with_added(AddedToken("é", normalized=True), normalizer=NFC),
        "'é' is looked for in normalized text",
    ),
    "word suffix": (_model(end_of_word_suffix="</w>"), "it has a suffix on words"),
    "word prefix": (_model(continuing_subword_prefix="##"), "it has a prefix on continuing subwords"),
    "unknown token": (_model(unk_token=EOS), "it has an unknown token"),
    "bytes without an entry": (
        _model(vocab={text: number for text, number in spec()["model"]["vocab"].items() if text != "À"}),
        "some bytes have no entry",
    ),
    "byte fallback": (_model(byte_fallback=True), "it has byte fallback, but not for every byte"),
    "lower case": (spec(normalizer={"type": "Lowercase"}), "its normalizer is Lowercase, not NFC or none"),
}
"""Shapes that are not, and why."""
