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
from packtool.exchange.model import Format, Holdable
from packtool.options.check import suggest
from packtool.options.names import EXPORTS, IMPORTS, any_of

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


def require_held(format: Format, contents: Holdable) -> None:
    """Require that a format can hold the contents.

    Raises:
        UsageError: it can't; names the formats that can.
    """
    reject = format.reject(contents)
    if reject is None:
        return
    able = tuple(sorted(name for name in EXPORTS if FORMATS[name].reject(contents) is None))
    choices = []
    if able:
        choices.append(f"choose {any_of(able)}")
    if reject.otherwise:
        choices.append(reject.otherwise)
    remedy = ", or ".join(choices) or "choose other contents"
    raise UsageError(reject.code, reject.told(format, contents), remedy=remedy, where="--format")
