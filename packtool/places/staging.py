"""Where datasets of object stores lie on local disks while a command works on them.

    STAGING/outputs/DIGEST/packed         what a command writes for s3://bucket/packed, until it is uploaded
    STAGING/inputs/DIGEST/tokens          what a command reads of s3://bucket/tokens
    STAGING/datasets/DIGEST/packed        what trainers read of s3://bucket/packed

The last part of a URL is the name of the directory, since datasets are known by it.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

import xxhash

from packtool.errors import names


@dataclass(frozen=True)
class Upload:
    """Where a local output belongs.

    Attributes:
        url: of the dataset.
        quiet: no progress bar.
    """

    url: str
    quiet: bool


_outputs: dict[str, Upload] = {}


def cache_directory() -> Path:
    """Where packtool keeps what it can fetch again: `packtool` in the user's cache directory."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache").absolute() / "packtool"


def directory_for(url: str, root: Path, kind: str, version: str = "") -> Path:
    """The directory for a dataset.

    Args:
        root: the staging directory.
        kind: `inputs`, `outputs` or `datasets`.
        version: of what lies at the URL now.
    """
    digest = xxhash.xxh3_64_hexdigest(f"{url} {version}".encode())
    return root.absolute() / kind / digest / url.rpartition("/")[2]


def stage_output(url: str, root: Path, *, quiet: bool) -> Path:
    """The local directory that stands for an output while it is written."""
    path = directory_for(url, root, "outputs")
    _outputs[str(path)] = Upload(url, quiet)
    names[str(path)] = url
    return path


def upload_of(path: Path) -> Upload | None:
    """Where an output belongs; None where it stays."""
    return _outputs.get(str(path))


def remove(path: Path) -> None:
    """Remove a directory of `directory_for`, and those above it that are empty now."""
    shutil.rmtree(path.parent, ignore_errors=True)
    for parent in (path.parent.parent, path.parent.parent.parent):
        try:
            parent.rmdir()
        except OSError:
            return
