"""Train the tokenizer that packtool ships: a small byte-level BPE with the pre-tokenizer of GPT-2.

    python scripts/train_tokenizer.py [OUTPUT]

The text is Python's own standard library (PSF-2.0): its reference, its docstrings and its sources. One Python version
and one version of `tokenizers` give the same bytes every time; the file in packtool/assets was made with Python 3.11.
It exists so that packtool works out of the box and its tests need no network. Train real models with a real tokenizer.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

from stdlib_text import docstrings, modules, reference
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

VOCABULARY = 8192
EOS = "<|endoftext|>"
PROSE_WEIGHT = 8
"""Prose is seen this often, so that the sources, ten times as large, do not crowd English out of the vocabulary."""
LONGEST_TOKEN = 16
"""Characters: keeps the rules of tables in the documentation out of the vocabulary."""
OUTPUT = Path(__file__).parents[1] / "packtool" / "assets" / "tokenizer.json"


def train(texts: Iterable[str], vocabulary: int = VOCABULARY) -> str:
    """The tokenizer.json of a byte-level BPE trained on `texts`. EOS is id 0, then come the 256 bytes."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=[EOS],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        max_token_length=LONGEST_TOKEN,
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer.to_str() + "\n"


def training_text() -> list[str]:
    """Prose, weighted, and sources without the character tables of `encodings`."""
    prose = [document.text for part in (reference(), docstrings()) for document in part]
    sources = [document.text for document in modules() if not document.source.startswith("encodings/")]
    return prose * PROSE_WEIGHT + sources


if __name__ == "__main__":
    output = Path(sys.argv[1]) if len(sys.argv) > 1 else OUTPUT
    output.write_text(train(training_text()), encoding="utf-8")
    print(f"{output}: {output.stat().st_size:,} bytes")  # noqa: T201
