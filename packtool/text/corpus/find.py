"""Find the files that the arguments of commands name, and warn of what the user should know about them."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

import msgspec

from packtool.errors import UsageError
from packtool.formats import manifest as manifests
from packtool.places.local import LocalPlace
from packtool.places.url import is_remote
from packtool.text.corpus.discover import find
from packtool.text.corpus.records import CorpusFile, shown
from packtool.warnings import warn


def find_files(
    location: Path | str, format: str | None, include: Sequence[str] = (), exclude: Sequence[str] = ()
) -> list[CorpusFile]:
    """Find the files of one argument as `find` does, with a warning of those that are not read.

    Raises:
        DataError: nothing there, or it can't be read.
        UsageError: a dataset, whose text is tokens already.
    """
    _require_text(str(location))
    corpus = find(location, format, include=include, exclude=exclude)
    if corpus.skipped:
        names = ", ".join(corpus.skipped[:5]) + ", …" * (len(corpus.skipped) > 5)
        what = f"not read, since no format has their suffix: {names}"
        if len(corpus.skipped) > 5:
            what += f" ({len(corpus.skipped):,} files)"
        remedy = "name the files to read them, or give --include with a pattern, and --format if needed"
        warn("files-skipped", what, remedy=remedy, where=str(location))
    for link in corpus.repeated:
        what = "leads to a directory that is read under another name, so it is not read again"
        warn("directory-repeated", what, remedy="remove the link unless it is meant", where=link)
    return corpus.files


def _require_text(location: str) -> None:
    place = Path(location)
    kind = manifests.kind_at(LocalPlace(place)) if (place / manifests.MANIFEST).is_file() else None
    remedies = {
        "token store": f"pack it: packtool pack {shlex.quote(location)} -o rows",
        "packed dataset": f"train on it, or see what is in it: packtool stats {shlex.quote(location)}",
    }
    if kind in remedies:
        raise UsageError("not-text", f"a {kind} already, not text", remedy=remedies[kind], where=location)


def warn_of_repeats(files: Sequence[CorpusFile]) -> None:
    """Warn of a file that is named twice, perhaps by a glob or a link: reading it twice is rarely meant."""
    alike: dict[tuple[object, ...], list[str]] = {}
    for file in files:
        key = (file.inode, file.bytes, file.modified) if file.inode else (file.location,)
        alike.setdefault(key, []).append(file.location)
    repeated = [locations for locations in alike.values() if len(locations) > 1]
    if repeated:
        what = (
            f"{len(repeated)} files are named more than once, and are read as often"
            if len(repeated) > 1
            else f"named {len(repeated[0])} times, and read as often"
        )
        remedy = "name each file once, unless it is meant"
        warn("input-named-twice", what, remedy=remedy, where=shown(repeated[0][-1]))


def found_from_anywhere(file: CorpusFile) -> CorpusFile:
    """Name a file so that a worker with another working directory finds it."""
    location = file.location if is_remote(file.location) else str(Path(file.location).absolute())
    return msgspec.structs.replace(file, location=location)
