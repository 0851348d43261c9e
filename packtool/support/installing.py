"""Say how to install what is missing, in the environment that packtool runs in."""

from __future__ import annotations

import shlex
import sys
from importlib.util import find_spec
from pathlib import Path

PACKAGES = {
    "aws": "boto3",
    "chat": "jinja2",
    "dask": "distributed",
    "hub": "huggingface_hub",
    "torch": "torch",
}
"""The packages of each extra."""


def how_to_install(*packages: str, prefix: str | None = None) -> str:
    """Return the command that installs packages into the environment of packtool.

    The packages are named, not an extra of packtool: that works however packtool was installed, from a clone as well.

    Args:
        packages: as on the package index.
        prefix: of the environment; None for the one that runs.

    >>> how_to_install("scipy", prefix="/home/ann/.local/share/pipx/venvs/packtool")
    'pipx inject packtool scipy'
    >>> how_to_install("scipy", prefix="/home/ann/.local/share/uv/tools/packtool")
    'uv tool install packtool --with scipy'
    """
    place = Path(sys.prefix if prefix is None else prefix)
    names = " ".join(packages)
    parts = place.parts
    if "pipx" in parts:
        return f"pipx inject packtool {names}"
    if "uv" in parts and "tools" in parts:
        return f"uv tool install packtool --with {names}"
    python = shlex.quote(sys.executable)
    if find_spec("pip") is None:
        return f"uv pip install --python {python} {names}"
    return f"{python} -m pip install {names}"
