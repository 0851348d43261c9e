"""Describe a tokenizer: its vocabulary, how documents end, and which encoder is fast for it."""

from __future__ import annotations

import shlex
from pathlib import Path

from packtool.commands.path_info import Info, free_name
from packtool.errors import UsageError
from packtool.text.encoding.encoder_choice import choose_encoder
from packtool.text.encoding.load import find_tokenizer
from packtool.text.encoding.rebuilt import rebuilt_class
from packtool.text.encoding.special import candidates, marked, sentinels, special


def tokenizer_info(path: Path) -> Info:
    """Describe a tokenizer.json, or a directory that holds one.

    Raises:
        DataError: it can't be read.
    """
    found = find_tokenizer(path)
    recipe = choose_encoder(found)
    try:
        number, text = special("eos", None, found.vocab, found.configs, marked(found.spec))
        eos = f"{text} ({number})"
    except UsageError:
        eos = f"to name: {', '.join(candidates('eos', found.vocab, marked(found.spec))) or 'none is known'}"
    known = sentinels(found.vocab)
    named = [f"{text} ({found.vocab[text]})" for text in known.texts] if known else []
    facts = {
        "model": found.spec["model"].get("type"),
        "vocabulary": found.vocab_size,
        "EOS": eos,
        "encoder": f"{recipe.encoder}: {recipe.why}",
        "to fill in the middle": ", ".join(named) or "no known sentinels",
    }
    rebuilt = rebuilt_class(found.configs)
    if rebuilt:
        facts["in Transformers 5"] = f"{rebuilt} is built anew from the vocabulary: its ids may differ from this file's"
    return Info(
        path,
        "tokenizer",
        "unknown",
        facts,
        next=[f"packtool tokenize CORPUS -o {free_name('tokens')} --tokenizer {shlex.quote(str(path))}"],
    )
