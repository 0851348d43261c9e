"""Describe what packtool did not write: how many files of which kinds, and the command that says how it reads them."""

from __future__ import annotations

import shlex
from collections import Counter
from itertools import islice
from pathlib import Path

from packtool.commands.path_info import Info, free_name

MOST_FILES = 10_000
"""Most files to count in a directory."""


def texts_info(path: Path) -> Info:
    """Describe a file or directory by names and sizes; what is read of it, a dry run of `tokenize` says."""
    files = [path]
    if path.is_dir():
        files = list(islice(filter(Path.is_file, path.rglob("*")), MOST_FILES))
    if not files:
        following = [f"packtool tokenize corpus.jsonl -o {shlex.quote(str(path))}"]
        return Info(path, "empty directory", "unknown", next=following)
    kinds = Counter("".join(child.suffixes[-2:]) or "no suffix" for child in files)
    facts = {
        "files": len(files),
        "bytes": sum(child.stat().st_size for child in files),
        "kinds": ", ".join(f"{count} {suffix}" for suffix, count in kinds.most_common(5)),
    }
    command = f"packtool tokenize {shlex.quote(str(path))} -o {free_name('tokens')}"
    return Info(path, "not written by packtool", "unknown", facts, next=[f"{command} --dry-run", command])
