"""Make the console for results: styled on a terminal only, without trailing spaces in a file or a pipe."""

from __future__ import annotations

import os
import re
import sys
from typing import Any, TextIO, cast

from rich.console import Console


class _Trimmed:
    """A text stream that leaves out the spaces at the ends of lines; tables are filled up with them."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        self._stream.write(re.sub(r"[ \t]+(?=\n)", "", text))
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def results_console(stream: TextIO | None = None) -> Console:
    """Make a console for results.

    With NO_COLOR nothing is styled at all: many terminals show bold letters in another colour.

    Args:
        stream: to print on; standard output when None.
    """
    out = sys.stdout if stream is None else stream
    if os.environ.get("NO_COLOR"):
        return Console(file=cast("TextIO", _Trimmed(out)), color_system=None)
    if out.isatty():
        return Console(file=out)
    return Console(file=cast("TextIO", _Trimmed(out)))
