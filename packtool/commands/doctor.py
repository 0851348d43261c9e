"""`doctor`: versions, encoders and extras, and what is missing."""

from __future__ import annotations

import importlib
import os
import platform
import shutil
import sys
import tempfile
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from packtool import __version__
from packtool.errors import PacktoolError
from packtool.executor import available_cpus

REQUIRED = {
    "msgspec": "reads JSONL, reads and writes manifests",
    "numpy": "arrays",
    "pyarrow": "reads Parquet, moves tokens",
    "rich": "draws tables",
    "tokenizers": "encoder for every tokenizer.json",
    "tqdm": "draws progress",
    "typer": "command line",
    "xxhash": "checksums",
}
OPTIONAL = {
    "gigatoken": ("fast encoder for byte-level BPE", "gigatoken"),
    "huggingface_hub": ("tokenizers by hub id", "'packtool[hub]'"),
    "scipy": ("pack --optimize", "'packtool[optimize]'"),
}
"""Package: what it is for, what to install for it."""


@dataclass(frozen=True)
class Check:
    """One line of the diagnosis.

    Attributes:
        name: what was looked at.
        state: ``ok``, ``missing`` (something optional) or ``broken``.
        found: version, size or reason.
        remedy: what to do; empty when ok.
    """

    name: str
    state: str
    found: str
    remedy: str = ""


def doctor() -> list[Check]:
    """Look at everything packtool needs; nothing is changed."""
    checks = [
        Check("packtool", "ok", f"{__version__} in {Path(__file__).parents[1]}"),
        Check("python", "ok", f"{platform.python_version()} at {sys.executable}"),
        Check("platform", "ok", f"{platform.platform()}, {available_cpus()} CPUs, {_memory()}"),
        _temporary(),
    ]
    checks += [_package(name, purpose, f"pip install {name}", "broken") for name, purpose in REQUIRED.items()]
    checks += [_package(name, purpose, f"pip install {what}", "missing") for name, (purpose, what) in OPTIONAL.items()]
    return [*checks, _encoders()]


def _package(name: str, purpose: str, remedy: str, absent: str) -> Check:
    try:
        importlib.import_module(name)
    except ImportError as error:
        broken = absent if isinstance(error, ModuleNotFoundError) and error.name == name else "broken"
        return Check(name, broken, f"{error}; {purpose}", remedy)
    return Check(name, "ok", f"{metadata.version(name)}; {purpose}")


def _memory() -> str:
    try:
        return f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GiB of memory"
    except (ValueError, OSError, AttributeError):
        return "memory unknown"


def _temporary() -> Check:
    try:
        with tempfile.TemporaryFile() as file:
            file.write(b"packtool")
        free = shutil.disk_usage(tempfile.gettempdir()).free
    except OSError as error:
        return Check("temporary", "broken", str(error), "set TMPDIR to a directory that can be written")
    return Check("temporary", "ok", f"{tempfile.gettempdir()}, {free / 1e9:.1f} GB free")


def _encoders() -> Check:
    """Encode the built-in probes with every encoder there is, as `tokenize` does before it trusts the fast one."""
    try:
        from packtool.tokenizing.choose import build, choose
        from packtool.tokenizing.load import load

        tokenizer = load()
        name, why = choose(tokenizer.spec)
        build(tokenizer.data, name)
    except (ImportError, PacktoolError) as error:
        return Check("encoders", "broken", str(error), "install packtool and what it needs again")
    if name == "tokenizers":
        return Check("encoders", "missing", f"tokenizers only: {why}", "pip install gigatoken for the fast one")
    return Check("encoders", "ok", f"{name} agrees with tokenizers on the built-in tokenizer")
