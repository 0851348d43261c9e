"""Keep what earlier runs found out about a tokenizer.json, in the user's cache.

To parse the file, load the reference and ask the probes takes longest where little is encoded. So what was found is
kept: for this very file, this very code, these versions of the encoders, and what was asked.
"""

from __future__ import annotations

import functools
import hashlib
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from packtool.storage.files import write_bytes

_T = TypeVar("_T")
_PACKAGES = ("tokenizers-", "gigatoken-", "fastokens-", "splintr_rs-")


def directory() -> Path:
    """Return where findings are kept."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "packtool" / "verified"


def finding(kept: Path | None, *asked: object) -> Path | None:
    """Return the file that keeps a finding; None where none is kept.

    Args:
        kept: where findings are; None to keep none.
        asked: what it is of, digests of files included.
    """
    if kept is None:
        return None
    key = repr((asked, _decides()))
    return kept / hashlib.sha256(key.encode()).hexdigest()


@functools.cache
def _decides() -> list[object]:
    """List what decides beside the question: the modules here, so that another state of a checkout finds anew, and the
    encoders' versions; `importlib.metadata` takes longer to import than all else here."""
    modules = ((path.name, path.stat()) for path in Path(__file__).parent.glob("*.py"))
    packages = (each.name for place in sys.path for each in Path(place).glob("*.dist-info"))
    return [
        sorted((name, stat.st_size, stat.st_mtime_ns) for name, stat in modules),
        sorted(name for name in packages if name.startswith(_PACKAGES)),
    ]


def found(path: Path | None, kind: type[_T], find: Callable[[], _T]) -> _T:
    """Return an earlier run's finding, or make it and keep it."""
    result = earlier(path, kind)
    if result is None:
        result = find()
        keep(path, result)
    return result


def earlier(path: Path | None, kind: type[_T]) -> _T | None:
    """Return an earlier run's finding; None if there is none, or it is damaged."""
    try:
        return None if path is None else msgspec.json.decode(path.read_bytes(), type=kind)
    except (OSError, msgspec.MsgspecError):
        return None


def keep(path: Path | None, result: Any = True) -> None:
    """Store a finding if possible; otherwise the next run makes it again."""
    if path is not None:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_bytes(path, msgspec.json.encode(result))
        except OSError:
            return
