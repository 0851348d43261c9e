"""`doctor`: report versions, and what is missing with the command that installs it."""

from __future__ import annotations

import importlib
import platform
import sys
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from packtool.support.installing import how_to_install
from packtool.support.version import __version__

REQUIRED = {
    "huggingface_hub": "tokenizers by hub id, hf://",
    "msgspec": "reads JSONL, reads and writes manifests",
    "numpy": "arrays",
    "obstore": "object stores",
    "pyarrow": "reads Parquet, moves tokens",
    "rich": "draws tables",
    "tokenizers": "encoder for every tokenizer.json",
    "tqdm": "draws progress",
    "typer": "command line",
    "xxhash": "checksums",
}
if sys.version_info < (3, 14):  # which has it
    REQUIRED["backports-zstd"] = "reads zstd"
OPTIONAL = {
    "boto3": "AWS profiles",
    "gigatoken": "fast encoder for nearly all BPE tokenizers",
    "fastokens": "fast encoder for BPE on bytes with other regular expressions",
    "distributed": "--scheduler, a cluster of machines",
    "jinja2": "chat templates, for packtool.text.conversations",
    "torch": "packtool.torch, the loader for PyTorch",
}
"""The purpose of each package."""
MODULES = {"backports-zstd": "backports.zstd"}
"""The module of each package whose name differs."""


@dataclass(frozen=True)
class Check:
    """One line of the diagnosis.

    Attributes:
        name: what was looked at.
        state: ``ok``, ``missing`` (something optional) or ``broken``.
        found: version or reason.
        remedy: what to do; empty when ok.
    """

    name: str
    state: str
    found: str
    remedy: str = ""


def doctor() -> list[Check]:
    """Look for everything that packtool needs; nothing is changed."""
    return [
        Check("packtool", "ok", f"{__version__} in {Path(__file__).parents[1]}"),
        Check("python", "ok", f"{platform.python_version()} at {sys.executable}, {platform.platform()}"),
        *(_package(name, purpose, "broken") for name, purpose in REQUIRED.items()),
        *(_package(name, purpose, "missing") for name, purpose in OPTIONAL.items()),
    ]


def _package(name: str, purpose: str, absent: str) -> Check:
    module = MODULES.get(name, name)
    try:
        importlib.import_module(module)
    except ImportError as error:
        state = absent if isinstance(error, ModuleNotFoundError) and error.name == module else "broken"
        return Check(name, state, f"{error}; {purpose}", how_to_install(name))
    except Exception as error:  # a package may look at the machine when it is imported, and not like what it sees
        said = f"can't be imported here ({type(error).__name__}: {error}); {purpose}"
        return Check(name, "broken", said, "see what it needs of the machine, such as /proc")
    return Check(name, "ok", f"{metadata.version(name)}; {purpose}")
