"""Publish finished files as a dataset, all at once, replacing an older one if need be.

A command writes its files to `unfinished/dataset`, its manifest last to `unfinished/whole.json`, and a dataset that was
there before stays as it is. Then the new one changes places with the old one by renaming. A run that is killed on the
way leaves a directory without a manifest, and the whole new dataset in `unfinished/`; whoever comes next does the rest.

    old manifest → unfinished/replaced.json, new files over old ones, old files that are left go, new manifest
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from packtool.errors import DataError, PacktoolError, UsageError
from packtool.places.local import PARTIAL, LocalPlace, sync_directory
from packtool.places.place import Place
from packtool.storage import manifest as manifests
from packtool.storage.lock import LOCK
from packtool.storage.names import EXPORTED, REJECTED, REPORT, TOKENIZER_FILES, UNFINISHED
from packtool.storage.schema import listed

STAGED = "dataset"
"""Directory in it for the files of the dataset."""
STATE = "state.json"
WHOLE = "whole.json"
"""The manifest of a dataset that is ready to be put in its place."""
_REPLACED = "replaced.json"
_ARRAY = r"[a-z_]+(-\d{5,})?\.npy"
_BUCKET = r"(bucket-\d{5,}/)?"
_TOKENIZER = "|".join(map(re.escape, TOKENIZER_FILES))
_COLUMNS = r"columns-\d{5,}\.parquet"
DATASET_FILE = rf"({_BUCKET}{_ARRAY}|{EXPORTED}|{_COLUMNS}|{_TOKENIZER}|{manifests.RUN}|{REPORT}|{re.escape(REJECTED)})"
"""What the files of datasets are called."""
RECORDS = "pieces"
"""Directory in `unfinished/` for the records of finished pieces."""
SCRATCH = "scratch"
"""Directory in `unfinished/` for all else: files that are not finished, or have no final name yet."""
_OF_WORK = re.compile(
    rf"({STATE}|{LOCK}|{WHOLE}|{_REPLACED}|{STAGED}/{DATASET_FILE})((\.[0-9a-f]{{8}})?{re.escape(PARTIAL)})?"
    rf"|({RECORDS}|{SCRATCH})/.*"
)


def is_ours(name: str) -> bool:
    """Return whether packtool may have written a file of this name in an output.

    >>> is_ours("tokens-00000.npy"), is_ours("unfinished/state.json"), is_ours("notes.txt")
    (True, True, False)
    """
    scratch = name.removeprefix(f"{UNFINISHED}/")
    if scratch != name:
        return _OF_WORK.fullmatch(scratch) is not None
    return name == manifests.MANIFEST or re.fullmatch(DATASET_FILE, name) is not None


def publish(path: Path) -> None:
    """Put the whole dataset in `unfinished/` in its place. Doing it again after it was interrupted does the rest.

    Raises:
        UsageError: a file that packtool did not write lies where one of the dataset belongs.
    """
    work = path / UNFINISHED
    staged = work / STAGED
    new = _files_of(work, WHOLE)
    if (path / manifests.MANIFEST).exists():
        _require_only(path, _files_of(path))
        for directory in (*_directories(staged, new), work):
            sync_directory(directory)
        (path / manifests.MANIFEST).replace(work / _REPLACED)
        sync_directory(path)
    elif not (work / _REPLACED).exists():
        _require_only(path, {name for name in new if not (staged / name).exists()})
    old = _files_of(work, _REPLACED) if (work / _REPLACED).exists() else []
    for name in new:
        if (staged / name).exists():
            (path / name).parent.mkdir(exist_ok=True)
            (staged / name).replace(path / name)
    for name in set(old) - set(new):
        (path / name).unlink(missing_ok=True)
        if "/" in name:
            with suppress(OSError):
                (path / name).parent.rmdir()  # if it was the last file of its bucket
    for directory in _directories(path, new):
        sync_directory(directory)
    (work / WHOLE).replace(path / manifests.MANIFEST)
    for directory in (path, path.absolute().parent):
        sync_directory(directory)


def is_staged(path: Path) -> bool:
    """Return whether `unfinished/` holds a whole dataset, ready to be published."""
    return (path / UNFINISHED / WHOLE).exists()


def _files_of(directory: Path, manifest: str = manifests.MANIFEST) -> list[str]:
    """List the files of a finished dataset, except its manifest."""
    return [each.name for each in listed(manifests.read(directory, manifest))] + [manifests.RUN]


def _require_only(path: Path, ours: Iterable[str]) -> None:
    """Refuse a directory that holds other files than a manifest, these, and those of unfinished work."""
    known = {manifests.MANIFEST, *ours}
    for name in _walk(path):
        if name not in known and not (name.startswith(f"{UNFINISHED}/") and is_ours(name)):
            raise other_files(name, path)


def other_files(name: str, where: Path | Place) -> UsageError:
    """Return the error for an output that holds a file which packtool did not write."""
    what = f"holds {name}, which packtool did not write"
    remedy = "move it away, or choose another output"
    return UsageError("output-has-other-files", what, remedy=remedy, where=str(where))


def require_removable(path: Path) -> None:
    """Refuse a directory that holds anything but one readable dataset and the remains of an unfinished run."""
    ours: list[str] = []
    if (path / manifests.MANIFEST).exists():
        try:
            ours = _files_of(path)
        except PacktoolError as error:
            raise UsageError(
                "output-has-other-files",
                f"holds a manifest that does not tell which files are packtool's: {error.what}",
                remedy="remove the directory yourself, or choose another output",
                where=str(path),
            ) from None
    _require_only(path, ours)


def require_no_links(path: Path) -> None:
    """Refuse an unfinished output with symbolic links, which packtool never makes: it would write through them."""
    work = path / UNFINISHED
    links = [UNFINISHED] if work.is_symlink() else [name for name in _walk(path) if (path / name).is_symlink()]
    for name in links:
        if name.startswith(UNFINISHED) or (path / name).is_dir():
            what = f"holds the symbolic link {name}, which packtool did not make"
            raise DataError("link-in-output", what, remedy="remove it, or choose another output", where=str(path))


def remove_work(path: Path) -> None:
    """Remove what packtool wrote to `unfinished/`, but the lock, and the directory if nothing else is in it."""
    work = path / UNFINISHED
    for directory, names, files in os.walk(work, topdown=False):
        for name in files:
            relative = str(Path(directory, name).relative_to(work))
            if relative != LOCK and _OF_WORK.fullmatch(relative):
                Path(directory, name).unlink(missing_ok=True)
        for name in names:
            with suppress(OSError):
                Path(directory, name).rmdir()


def _walk(path: Path) -> Iterator[str]:
    """Yield the names of all files and symbolic links below a directory. Links are not followed."""
    for directory, names, files in os.walk(path):
        for name in (*files, *(name for name in names if Path(directory, name).is_symlink())):
            yield str(Path(directory, name).relative_to(path))


def _directories(path: Path, files: Iterable[str]) -> list[Path]:
    """List the directories of a dataset: its own, and those of its buckets."""
    return [path, *(LocalPlace(path).below(name).path for name in sorted({str(Path(f).parent) for f in files} - {"."}))]
