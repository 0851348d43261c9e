"""Say how to install what is missing, in the environment that packtool runs in."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from packtool.errors import UsageError

BEYOND_READING = ("huggingface_hub", "obstore", "pyarrow", "rich", "tokenizers", "tqdm", "typer")
"""Packages that packtool is installed with, and that reading datasets does without."""


@contextmanager
def needing(what: str) -> Iterator[None]:
    """Name the package to install where an import in the block finds that it is missing.

    Args:
        what: needs it, as the subject of a sentence.

    Raises:
        UsageError: naming the packages that are not there.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        missing = [name for name in BEYOND_READING if find_spec(name) is None]
        if error.name is None or error.name.partition(".")[0] not in missing:
            raise
        sentence = f"{what} needs {', '.join(missing)}; only reading written datasets does without"
        raise UsageError("missing-package", sentence, remedy=how_to_install(*missing)) from None


def how_to_install(*packages: str, prefix: str | None = None) -> str:
    """Return the command that installs packages into the environment of packtool.

    The packages are named, not an extra of packtool: that works however packtool was installed, from a clone as well.

    Args:
        packages: as on the package index.
        prefix: of the environment; None for the one that runs.

    >>> how_to_install("scipy", prefix="/home/ann/.local/share/pipx/venvs/packtool")
    'pipx inject packtool scipy'
    """
    place = Path(sys.prefix if prefix is None else prefix)
    names = " ".join(packages)
    if "pipx" in place.parts:
        return f"pipx inject packtool {names}"
    # Tools that uv installed have no pip either. `uv tool install` would look for packtool itself on an index.
    python = shlex.quote(sys.executable)
    if find_spec("pip") is None:
        return f"uv pip install --python {python} {names}"
    return f"{python} -m pip install {names}"
