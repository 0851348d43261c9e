"""Start processes from a user's script without running the script again in each of them.

A process that Python spawns imports the script of its parent. What packtool's processes run is packtool's own; a script
would otherwise have to be guarded by ``if __name__ == "__main__"``, or would begin anew in each of them.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType


class _Script:
    """The script of this process, which several threads may hide at the same time: the last of them puts it back."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._hidden = 0
        self._module = sys.modules["__main__"]

    def hide(self) -> None:
        with self._lock:
            if not self._hidden:
                self._module, sys.modules["__main__"] = sys.modules["__main__"], ModuleType("__main__")
            self._hidden += 1

    def show(self) -> None:
        with self._lock:
            self._hidden -= 1
            if not self._hidden:
                sys.modules["__main__"] = self._module


_SCRIPT = _Script()


@contextmanager
def without_script() -> Iterator[None]:
    """Hide the caller's script from processes that are started meanwhile."""
    _SCRIPT.hide()
    try:
        yield
    finally:
        _SCRIPT.show()
