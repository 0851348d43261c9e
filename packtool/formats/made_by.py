"""Say how a finished output was made: the command that makes it again, and the tokenizer by the name that was given.

Both stand in its `run.json`, beside what may differ between equal runs: manifests hold no paths.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from packtool.errors import DataError, UsageError
from packtool.formats import manifest as manifests
from packtool.formats.names import TOKENIZER
from packtool.formats.schema import TokenizerInfo
from packtool.options.arguments import as_recorded_by, command_line
from packtool.options.kinds import LOCATION
from packtool.places.place import Place


def command_again(place: Place) -> str | None:
    """Return the command that makes a finished output again; None where its `run.json` does not tell.

    Paths are absolute, as the command was given them on the machine that ran it.
    """
    run = _run(place)
    command: Any = run.get("command")
    arguments = as_recorded_by(command, run.get("arguments"))
    if not arguments:
        return None
    return command_line(command, arguments, str(place.shown))


def excluded_by(place: Place) -> list[str]:
    """Return the names of the lists and stores whose documents an output excludes; empty where that is unknown."""
    arguments = _run(place).get("arguments")
    if not isinstance(arguments, dict):
        return []
    names = arguments.get("exclude")
    if not isinstance(names, list):
        return []
    return list(map(str, names))


def tokenizer_named(places: Iterable[Place]) -> str | None:
    """Return the name of the tokenizer, as `tokenize` was given it, that these outputs share; None if it is unknown."""
    for place in places:
        run = _run(place)
        arguments = as_recorded_by(run.get("command"), run.get("arguments")) or {}
        name = arguments.get("tokenizer", run.get("tokenizer"))
        if isinstance(name, str):
            with suppress(UsageError, ValueError):  # a URL with credentials, which are not to be shown
                LOCATION.parse(name)
                return name
    return None


def _run(place: Place) -> dict[str, Any]:
    try:
        return manifests.read_run(place)
    except (OSError, DataError):
        return {}


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
