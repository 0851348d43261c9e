"""`info`: say what a path is, whether it is complete, and what to do next."""

from __future__ import annotations

import shlex
from collections import Counter
from itertools import islice
from pathlib import Path
from typing import Any

from packtool.commands.info_dataset import dataset_info, is_output, member_info
from packtool.commands.path_info import Info, free_name
from packtool.errors import DataError, PacktoolError, UsageError
from packtool.formats.names import TOKENIZER
from packtool.options.inspecting import InfoArguments
from packtool.options.signature import takes
from packtool.places.local import LocalPlace
from packtool.places.typed import place_of

MOST_FILES = 10_000
"""Most files to count in a directory."""
_HEAD = 1024  # bytes of a file in which the first entries of a tokenizer.json lie


@takes(InfoArguments)
def info(options: InfoArguments) -> Info:
    """Describe a path.

    Raises:
        DataError: nothing lies at the path, or a manifest there can't be read.
        UsageError: the file is not valid TOML, or a blend or a configuration with an error.
    """
    place = place_of(options.path)
    if not isinstance(place, LocalPlace):
        return dataset_info(place)
    path = place.path
    if not path.exists():
        raise DataError("missing-input", "no such file or directory", remedy="check the path", where=str(path))
    if path.is_file():
        return _file(path)
    if path.is_dir():
        return _directory(path)
    raise DataError("not-a-file", "neither a file nor a directory", remedy="give a file or directory", where=str(path))


def _directory(path: Path) -> Info:
    if is_output(path):
        return dataset_info(LocalPlace(path))
    if (path / TOKENIZER).is_file():
        return _tokenizer(path)
    parts = list(map(_part, filter(is_output, sorted(path.iterdir()))))
    if parts:
        states = [part.state for part in parts]
        worst = max(states, key=("whole", "incomplete", "unfinished", "damaged").index)
        counts = {"datasets": len(parts), "whole": states.count("whole")}
        return Info(path, "directory of datasets", worst, counts, parts=parts)
    return _not_written(path)


def _part(path: Path) -> Info:
    """Describe one of several datasets, also one that can't be read: the others can."""
    try:
        return dataset_info(LocalPlace(path))
    except PacktoolError as error:
        quoted = shlex.quote(str(path))
        return Info(path, "dataset", "damaged", {"problem": error.what}, next=[f"packtool info {quoted}"])


def _file(path: Path) -> Info:
    if path.suffix == ".toml":
        return _toml(path)
    if path.name == TOKENIZER or _begins_as_tokenizer(path):
        return _tokenizer(path)
    return member_info(path) or _not_written(path)


def _toml(path: Path) -> Info:
    """Describe a blend, or the configuration of a run."""
    from packtool.blending.blend import Blend
    from packtool.commands.run import stages
    from packtool.config import read
    from packtool.support.toml_file import read_toml

    facts: dict[str, Any] = {"bytes": path.stat().st_size}
    quoted = shlex.quote(str(path))
    if "sources" in read_toml(path).values:
        blend = Blend.read(path)
        facts |= {"sources": ", ".join(sorted(blend.sources)), "stages": len(blend.stages)}
        return Info(path, "blend", "unknown", facts, next=[f"packtool stats {quoted}"])
    run = f"packtool run {quoted}"
    try:
        stages(read(path))
    except UsageError as error:
        if error.code != "missing-input":
            raise
        run += " --input INPUT"
    return Info(path, "configuration", "unknown", facts, next=[f"{run} --dry-run", run])


def _begins_as_tokenizer(path: Path) -> bool:
    """Return whether a file of any name begins with the entries that every tokenizer.json has first."""
    with path.open("rb") as file:
        head = file.read(_HEAD)
    return all(entry in head for entry in (b'"version"', b'"truncation"', b'"padding"', b'"added_tokens"'))


def _tokenizer(path: Path) -> Info:
    from packtool.commands.info_tokenizer import tokenizer_info  # encoders, which others do without

    return tokenizer_info(path)


def _not_written(path: Path) -> Info:
    """Describe a file or directory by names and sizes; what is read of it, a dry run of `tokenize` says."""
    files = [path]
    if path.is_dir():
        files = list(islice(filter(Path.is_file, path.rglob("*")), MOST_FILES))
    if not files:
        following = [f"packtool tokenize corpus.jsonl -o {shlex.quote(str(path))}"]
        return Info(path, "empty directory", "unknown", next=following)
    kinds: Counter[str] = Counter()
    size = 0
    for file in files:
        kinds["".join(file.suffixes[-2:]) or "no suffix"] += 1
        size += file.stat().st_size
    most_common = ", ".join(f"{count} {suffix}" for suffix, count in kinds.most_common(5))
    facts = {"files": len(files), "bytes": size, "kinds": most_common}
    command = f"packtool tokenize {shlex.quote(str(path))} -o {free_name('tokens')}"
    return Info(path, "not written by packtool", "unknown", facts, next=[f"{command} --dry-run", command])
