"""packtool turns text corpora into training-ready token shards, with every token accounted for.

The commands are functions too: ``packtool.tokenize``, ``packtool.pack``, ``packtool.shuffle``,
``packtool.materialize``, ``packtool.export``, ``packtool.import_``, ``packtool.stats``, ``packtool.show``,
``packtool.find``, ``packtool.info``, ``packtool.verify``, ``packtool.run``, ``packtool.doctor``; ``packtool.open``
reads what they write, and a ``packtool.Blend`` of several. They are loaded on first use, so that importing packtool
(and ``packtool --help``) costs next to nothing. ``packtool.torch`` has the loader for PyTorch.
"""

from __future__ import annotations

import importlib

from packtool.support.version import __version__

TYPE_CHECKING = False  # that of `typing`, which takes as long to import as all that comes before the command listens
if TYPE_CHECKING:
    from packtool.blending.blend import Blend as Blend
    from packtool.commands.doctor import doctor as doctor
    from packtool.commands.export import export as export
    from packtool.commands.find import find as find
    from packtool.commands.import_ import import_ as import_
    from packtool.commands.info import info as info
    from packtool.commands.materialize import materialize as materialize
    from packtool.commands.pack import pack as pack
    from packtool.commands.run import run as run
    from packtool.commands.show import show as show
    from packtool.commands.shuffle import shuffle as shuffle
    from packtool.commands.stats import stats as stats
    from packtool.commands.tokenize import tokenize as tokenize
    from packtool.commands.verify import verify as verify
    from packtool.reading import open as open

_COMMANDS = (
    "doctor",
    "export",
    "find",
    "import_",
    "info",
    "materialize",
    "pack",
    "run",
    "show",
    "shuffle",
    "stats",
    "tokenize",
    "verify",
)
_PUBLIC = {
    "Blend": "packtool.blending.blend",
    "open": "packtool.reading",
    **{name: f"packtool.commands.{name}" for name in _COMMANDS},
}

__all__ = ["__version__", *_PUBLIC]  # noqa: PLE0604 - all of them are names


def __dir__() -> list[str]:
    return sorted(__all__)


def __getattr__(name: str) -> object:
    if name in _PUBLIC:
        from packtool.support.installing import needing

        with needing(f"packtool.{name}"):
            return getattr(importlib.import_module(_PUBLIC[name]), name)
    raise AttributeError(f"module 'packtool' has no attribute {name!r}")
