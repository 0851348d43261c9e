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
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import xxhash

from packtool.storage.files import write_bytes

_T = TypeVar("_T")
_PACKAGES = ("tokenizers-", "gigatoken-", "fastokens-", "splintr_rs-")
_DIGEST = 16
"""Bytes at the beginning of a file: a digest of what made the finding, and of the finding itself."""


def directory() -> Path:
    """Return where findings are kept."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "packtool" / "verified"


def finding(kept: Path | None, *asked: object) -> str:
    """Return the path of the file that keeps a finding; empty where none is kept.

    Args:
        kept: where findings are; None to keep none.
        asked: what it is of, digests of files included.
    """
    return "" if kept is None else str(kept / hashlib.sha256(repr(asked).encode()).hexdigest())


def found(path: str, kind: type[_T], find: Callable[[], _T]) -> _T:
    """Return an earlier run's finding, or make it and keep it."""
    result = earlier(path, kind)
    if result is None:
        result = find()
        keep(path, result)
    return result


def earlier(path: str, kind: type[_T]) -> _T | None:
    """Return an earlier run's finding; None if there is none, it is damaged, or other code or encoders made it."""
    data = b""
    if path:
        with suppress(OSError):
            data = Path(path).read_bytes()
    content = memoryview(data)[_DIGEST:]
    known = len(data) > _DIGEST and data[:_DIGEST] == _digest(content)
    return msgspec.msgpack.decode(content, type=kind) if known else None


def keep(path: str, result: Any) -> None:
    """Store a finding if possible, in place of an older one; otherwise the next run makes it again."""
    if path:
        content = msgspec.msgpack.encode(result)
        with suppress(OSError):
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            write_bytes(Path(path), _digest(content) + content)


def _digest(content: bytes | memoryview) -> bytes:
    digest = xxhash.xxh3_128(_decides())
    digest.update(content)
    return digest.digest()


@functools.cache
def _decides() -> bytes:
    """List what decides beside the question: the modules here, so that another state of a checkout finds anew, and the
    encoders' versions; `importlib.metadata` takes longer to import than all else here."""
    modules = ((path.name, path.stat()) for path in Path(__file__).parent.glob("*.py"))
    packages = (each.name for place in sys.path for each in Path(place).glob("*.dist-info"))
    return repr(
        (
            sorted((name, stat.st_size, stat.st_mtime_ns) for name, stat in modules),
            sorted(name for name in packages if name.startswith(_PACKAGES)),
        )
    ).encode()
