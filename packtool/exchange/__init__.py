"""Read and write tokens in the formats of other tools.

    token store, packed dataset ─▶ `exported.py` ─▶ a format's `part` for each shard, then its `finish`
    files of another tool       ─▶ a format's `read` ─▶ `imported.py` ─▶ token store

A format is one file in `formats/` with a `FORMAT`, and its name in `packtool/options/names.py`. `model.py` has what
they share. The laws in tests/exchange/test_exchange.py hold for all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module

from packtool.errors import UsageError
from packtool.exchange.model import Format
from packtool.options.check import suggest
from packtool.options.names import EXPORTS, IMPORTS

FORMATS: dict[str, Format] = {
    name: import_module(f"packtool.exchange.formats.{name}".replace("-", "_")).FORMAT
    for name in dict.fromkeys((*EXPORTS, *IMPORTS))
}


def format_named(name: str, names: Sequence[str]) -> Format:
    """Return the format of this name, one of `EXPORTS` or `IMPORTS`.

    Raises:
        UsageError: there is no such format; lists the others.
    """
    if name not in names:
        what, remedy = f"there is no format {name!r} for this", suggest(name.lower(), names)
        raise UsageError("unknown-exchange", what, remedy=remedy, where="--format")
    return FORMATS[name]
