"""Recognize tokenizer files that are no tokenizer.json, and say how to convert each."""

from __future__ import annotations

import re
from pathlib import Path

_SAVE = (
    "load its directory with AutoTokenizer of transformers, call save_pretrained, and give the tokenizer.json it writes"
)
_PULL = "fetch it with git lfs pull"
_RAW = "download the raw file: on the hub, /resolve/ instead of /blob/"
_RANKS = re.compile(rb"\A[A-Za-z0-9+/]+=* \d+\r?\n")
_ENCODING = re.compile(r"[a-z]\d+k_[a-z]+")
_SAME_IDS = {
    "cl100k_base": "Xenova/gpt-4",
    "o200k_base": "Xenova/gpt-4o",
    "o200k_harmony": "openai/gpt-oss-20b",
    "r50k_base": "openai-community/gpt2",
}
"""Encodings of tiktoken, and a hub repository with a tokenizer.json of the same ids."""
_CONVERT = "call convert_tiktoken_to_fast of transformers.integrations.tiktoken, and give the tokenizer.json it writes"
_PARTS = ("vocab.txt", "merges.txt")
_NAMES = ("tekken.json", "*.tiktoken", "tokenizer.model*", "*.model", "*.gguf", *_PARTS)


def recognized(name: str, data: bytes) -> tuple[str, str] | None:
    """Recognise a file that is no tokenizer.json, and say what to do; None if nobody can tell.

    Args:
        name: of the file.
        data: its bytes.

    >>> recognized("tokenizer.json", b"version https://git-lfs.github.com/spec/v1\\noid sha256:00")
    ('a pointer of Git LFS, not the file itself', 'fetch it with git lfs pull')
    """
    start = data[:512].lstrip()
    tekken = start[:1] == b"{" and b'"token_bytes"' in data[: 1 << 16]
    kinds = (
        (start.startswith(b"version https://git-lfs"), "a pointer of Git LFS, not the file itself", _PULL),
        (start[:1] == b"<", "a web page, not the file itself", _RAW),
        (start.startswith(b"GGUF"), "a GGUF file", _SAVE.replace(" of", f" (gguf_file={name!r}) of", 1)),
        (_RANKS.match(start) is not None, "ranks of tiktoken, which lack their pattern and special tokens", _SAVE),
        (name.endswith((".model", ".spm")), "a model of SentencePiece", _SAVE),
        (name in _PARTS, "a part of a tokenizer, in an older format", _SAVE),
        (tekken, "a tekken.json of Mistral", "give the tokenizer.json of the same hub repository"),
    )
    return next(((what, remedy) for fits, what, remedy in kinds if fits), None)


def remedy_for_encoding(name: str) -> str:
    """Return what to give instead of a tiktoken encoding; empty if the name is none.

    >>> remedy_for_encoding("cl100k_base"), remedy_for_encoding("openai-community/gpt2")
    ('give Xenova/gpt-4, which has the same ids', '')
    """
    if name in _SAME_IDS:
        return f"give {_SAME_IDS[name]}, which has the same ids"
    return _CONVERT if _ENCODING.fullmatch(name) else ""


def beside(directory: Path) -> str:
    """Name a file in a directory that a tokenizer.json can be made of; empty if there is none."""
    names = (path.name for pattern in _NAMES for path in sorted(directory.glob(pattern)))
    return next(names, "")
