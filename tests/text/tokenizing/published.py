"""The forms in which the cards of models write a prompt to fill in the middle, and a document cut as one of them."""

import tempfile
from fractions import Fraction
from itertools import count
from pathlib import Path
from typing import Any

import msgspec

import packtool
from packtool.formats.token_store import TokenStore
from packtool.text.tokenizing.fim import Cut, FillInTheMiddle, cut

PREFIX, MIDDLE, SUFFIX = "def print_hello_world():\n    ", '"""Greet."""', "\n    print('Hello world!')"

FORMS = {
    "StarCoder": "<fim_prefix>{prefix}<fim_suffix>{suffix}<fim_middle>",
    "StarCoder, suffix first": "<fim_prefix><fim_suffix>{suffix}<fim_middle>{prefix}",
    "DeepSeek-Coder": "<｜fim▁begin｜>{prefix}<｜fim▁hole｜>{suffix}<｜fim▁end｜>",
    "Qwen Coder, CodeGemma": "<|fim_prefix|>{prefix}<|fim_suffix|>{suffix}<|fim_middle|>",
    "Code Llama": "▁<PRE>{prefix}▁<SUF>{suffix}▁<MID>",
    "Seed-Coder, suffix first": "<[fim-suffix]>{suffix}<[fim-prefix]>{prefix}<[fim-middle]>",
    "Codestral, suffix first": "[SUFFIX]{suffix}[PREFIX]{prefix}",
}
"""What each card gives to its tokenizer as one text."""


def prompt(form: str) -> str:
    """The prompt for this document."""
    return FORMS[form].format(prefix=PREFIX, suffix=SUFFIX)


def stored(tokenizer: Path, *, suffix_first: bool, leads: bool = False) -> list[int]:
    """The ids that `tokenize` stores of the document, cut as in the prompts, without EOS.

    Args:
        leads: the model knows this form alone.
    """
    text, begin, rate = PREFIX + MIDDLE + SUFFIX, len(PREFIX), Fraction(suffix_first)
    wanted = Cut(begin, begin + len(MIDDLE), suffix_first)
    fim = FillInTheMiddle(rate=Fraction(1), spm_rate=rate, seed=0, texts=("", "", ""), ids=(0, 0, 0))
    seed = next(seed for seed in count() if cut(text, msgspec.structs.replace(fim, seed=seed)) == wanted)
    with tempfile.TemporaryDirectory() as place:
        options: dict[str, Any] = {"tokenizer": tokenizer, "fim_rate": 1, "fim_seed": seed, "workers": 1}
        if not leads:
            options["fim_spm_rate"] = rate
        packtool.tokenize([{"text": text}], f"{place}/store", **options)
        found: list[int] = TokenStore(f"{place}/store").document(0).tolist()
    return found[:-1]
