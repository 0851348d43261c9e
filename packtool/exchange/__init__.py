"""Tokens to and from the formats of other tools.

    token store, packed dataset ─▶ `contents.py` ─▶ a format's `part` for each shard, then its `finish`
    files of another tool       ─▶ a format's `read` ─▶ `documents.py` ─▶ token store

A format is one file in `formats/` with a `FORMAT`, and its name in `packtool/options/names.py`. `model.py` has what
they share. The laws in tests/exchange/test_formats.py hold for all of them.
"""

from __future__ import annotations

from difflib import get_close_matches
from importlib import import_module

from packtool.errors import UsageError
from packtool.exchange.model import Format
from packtool.options.names import EXPORTS, IMPORTS

FORMATS: dict[str, Format] = {
    name: import_module(f"packtool.exchange.formats.{name}".replace("-", "_")).FORMAT
    for name in dict.fromkeys((*EXPORTS, *IMPORTS))
}


def exporter(name: str) -> Format:
    """Return the format of this name, for writing.

    Raises:
        UsageError: there is none; lists those there are.
    """
    return _one_of({each: FORMATS[each] for each in EXPORTS}, name)


def importer(name: str) -> Format:
    """Return the format of this name, for reading.

    Raises:
        UsageError: there is none; lists those there are.
    """
    return _one_of({each: FORMATS[each] for each in IMPORTS}, name)


def _one_of(formats: dict[str, Format], name: str) -> Format:
    if name not in formats:
        close = get_close_matches(name.lower(), formats, n=1)
        raise UsageError(
            "unknown-exchange",
            f"there is no format {name!r} for this",
            remedy=f"did you mean {close[0]}?" if close else f"choose one of {', '.join(formats)}",
            where="--format",
        )
    return formats[name]
