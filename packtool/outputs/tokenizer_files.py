"""Keep the tokenizer's files with a dataset, so that it can be decoded and added to."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

from packtool.errors import DataError
from packtool.formats.names import TOKENIZER
from packtool.formats.schema import InputEntry, OtherFile, TokenizerInfo
from packtool.outputs.output import Output
from packtool.places.typed import Typed, place_of


def default_tokenizer() -> bytes:
    """Return the tokenizer.json of the small byte-level BPE that comes with packtool."""
    return (Path(__file__).parents[1] / "assets" / TOKENIZER).read_bytes()


def is_default(info: TokenizerInfo) -> bool:
    """Return whether a tokenizer is the small one that comes with packtool."""
    return info.sha256 == hashlib.sha256(default_tokenizer()).hexdigest()


def describe_tokenizer(info: TokenizerInfo, name: str | None = None) -> str:
    """Describe a tokenizer by the name that was given and its checksum; the one of packtool, by its purpose.

    >>> gpt2 = TokenizerInfo(sha256="c0ffee" * 8, vocab_size=50257, eos_id=50256, eos_token="<|endoftext|>")
    >>> describe_tokenizer(gpt2, "openai-community/gpt2")
    'openai-community/gpt2 (sha256 c0ffeec0ffee)'
    """
    if is_default(info):
        return "packtool's small one, for trying things out"
    checksum = f"sha256 {info.sha256[:12]}"
    if name is None:
        return checksum
    return f"{name} ({checksum})"


def write_tokenizer(output: Output, files: Mapping[str, bytes]) -> list[OtherFile]:
    """Write a tokenizer's files, by name, and return their entries for the manifest."""
    return [output.file(name, data) for name, data in files.items()]


def read_tokenizer(place: Typed, entries: Sequence[InputEntry]) -> dict[str, bytes]:
    """Return the files of a dataset's tokenizer, by name, after checking them; {} if it has no tokenizer."""
    place = place_of(place)
    return {entry.name: place.checked(entry) for entry in entries}


def copy_tokenizer(source: Typed, entries: Sequence[InputEntry], output: Output) -> list[OtherFile]:
    """Copy a dataset's tokenizer to another dataset."""
    return write_tokenizer(output, read_tokenizer(source, entries))


def require_tokenizer(place: Typed, entries: Sequence[InputEntry], sha256: str) -> None:
    """Raise a DataError unless the tokenizer of a dataset is the one that made its tokens."""
    data = read_tokenizer(place, entries).get(TOKENIZER)
    if data is None:
        return
    digest = hashlib.sha256(data).hexdigest()
    if digest != sha256:
        what = f"its sha256 is {digest[:12]}…, but the manifest says {sha256[:12]}…"
        remedy = "make the dataset again, or copy it again"
        raise DataError("other-tokenizer", what, remedy=remedy, where=place_of(place).where(TOKENIZER))
