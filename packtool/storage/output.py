"""Output directories: never mixed with something else, never whole-looking before they are whole.

While a command runs, everything it must remember lies in `unfinished/` inside the output. `finish` writes `run.json`,
then the manifest, then removes `unfinished/`. What was killed on the way can be resumed if options and inputs still
have the same key.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import xxhash

from packtool.errors import DataError, UsageError
from packtool.storage import manifest as manifests
from packtool.storage.files import PARTIAL, sync_directory, write_bytes
from packtool.storage.names import REJECTED

UNFINISHED = "unfinished"
"""Directory for what only an unfinished output has: state, scratch files, finished pieces to resume from."""
_STATE = "state.json"
_OURS = re.compile(
    rf"({manifests.MANIFEST}|{manifests.RUN}|{manifests.REPORT}|{UNFINISHED}|{re.escape(REJECTED)}"
    rf"|[a-z_]+(-\d{{5,}})?\.npy|bucket-\d+)({re.escape(PARTIAL)})?"
)


class State(msgspec.Struct, frozen=True):
    """Which command works here (or worked, in `run.json`), and the key of its options and inputs."""

    command: str
    key: str


@dataclass(frozen=True)
class Output:
    """An output directory that is safe to write to.

    Attributes:
        path: the directory; it exists.
        work: its `unfinished` directory, for scratch files and finished pieces; gone after `finish`.
        state: command and key.
        resumed: an earlier run with the same key stopped here; its pieces are in `path` and `work`.
        finished: an earlier run with the same key finished here; there is nothing left to do.
    """

    path: Path
    work: Path
    state: State
    resumed: bool
    finished: bool

    def finish(self, manifest: manifests.Manifest, run: Mapping[str, Any] | None = None) -> None:
        """Turn the directory into a dataset. All shards must be in place and durable.

        Args:
            manifest: written last, atomically.
            run: facts that may differ between equal runs (timings, machine, workers), for `run.json`.
        """
        facts = {"command": self.state.command, "key": self.state.key, **(run or {})}
        write_bytes(self.path / manifests.RUN, manifests.encode(facts))
        sync_directory(self.path)
        manifests.write(self.path, manifest)
        shutil.rmtree(self.work, ignore_errors=True)

    def discard(self) -> None:
        """Leave nothing behind, after an error with nothing that a resumed run could use."""
        shutil.rmtree(self.work, ignore_errors=True)
        if not any(self.path.iterdir()):
            self.path.rmdir()


def key_of(*parts: Any) -> str:
    """A hash of anything msgspec can write as JSON: options and inputs, for `prepare`."""
    return xxhash.xxh3_128_hexdigest(msgspec.json.encode(parts, order="deterministic"))


def prepare(
    path: Path | str,
    command: str,
    *,
    key: str,
    inputs: Iterable[Path | str] = (),
    overwrite: bool = False,
    resume: bool = False,
) -> Output:
    """Make sure that `command` may write to `path`, and create it.

    Args:
        path: output directory.
        command: name of the command.
        key: `key_of` the options and inputs that the output depends on.
        inputs: local files and directories that are read.
        overwrite: remove what packtool left there before. Anything else there is never removed.
        resume: go on with what an earlier run with the same key left there; an empty output simply starts.

    Raises:
        UsageError: both `overwrite` and `resume`; output inside an input or the other way round; not empty;
            unfinished or finished with another key.
        DataError: not a directory, or it can't be created.
    """
    path = Path(path)
    if overwrite and resume:
        raise UsageError("overwrite-and-resume", "--overwrite and --resume exclude each other", remedy="give one")
    _refuse_overlap(path, inputs)
    state = State(command, key)
    work = path / UNFINISHED
    if path.exists() and not path.is_dir():
        raise DataError("not-a-directory", "not a directory", remedy="choose another output", where=str(path))
    entries = _entries(path)
    resumed = finished = False
    if entries and resume:
        finished = _require_same(path, state)
        resumed = True
    elif entries and overwrite:
        _remove_ours(path, entries)
    elif entries:
        hint = "--resume to go on, --overwrite to start again" if UNFINISHED in entries else "--overwrite to replace it"
        raise UsageError("output-not-empty", f"holds {entries[0]} already", remedy=f"give {hint}", where=str(path))
    output = Output(path, work, state, resumed, finished)
    if finished:
        shutil.rmtree(work, ignore_errors=True)  # a kill between manifest and clean-up leaves it behind
        return output
    try:
        work.mkdir(parents=True, exist_ok=True)
        write_bytes(work / _STATE, manifests.encode(state))
    except OSError as error:
        raise DataError(
            "output-not-writable", f"can't be written ({error.strerror})", remedy="choose another", where=str(path)
        ) from None
    return output


def read_state(path: Path) -> State | None:
    """Which command worked on the finished or unfinished output at `path`; None if that can't be told."""
    finished = (path / manifests.MANIFEST).exists()
    try:
        file = path / manifests.RUN if finished else path / UNFINISHED / _STATE
        return msgspec.json.decode(file.read_bytes(), type=State)
    except (OSError, msgspec.MsgspecError):
        return None


def look(path: Path | str, command: str, key: str) -> str:
    """What lies at `path`, without touching it.

    Returns:
        ``nothing``; ``finished`` or ``unfinished`` work of this command with this key; ``other``: anything else.
    """
    path = Path(path)
    if not path.exists() or (path.is_dir() and not _entries(path)):
        return "nothing"
    try:
        return "finished" if _require_same(path, State(command, key)) else "unfinished"
    except UsageError:
        return "other"


def _entries(path: Path) -> list[str]:
    """What the directory holds; nothing, if a command was killed there before it could write down its key."""
    names = sorted(entry.name for entry in path.iterdir()) if path.exists() else []
    if names == [UNFINISHED] and {entry.name for entry in (path / UNFINISHED).iterdir()} <= {_STATE + PARTIAL}:
        return []
    return names


def _refuse_overlap(path: Path, inputs: Iterable[Path | str]) -> None:
    target = path.resolve()
    for each in inputs:
        source = Path(each).resolve()
        if target == source or source in target.parents:
            what = f"the output lies inside the input {each}"
        elif target in source.parents:
            what = f"the input {each} lies inside the output"
        else:
            continue
        raise UsageError("output-overlaps-input", what, remedy="choose an output elsewhere", where=str(path))


def _require_same(path: Path, state: State) -> bool:
    """Check that what lies in `path` has the same state; whether it is finished."""
    found = read_state(path)
    if found is None:
        raise UsageError(
            "nothing-to-resume",
            "not empty, and not the output of an interrupted run",
            remedy="give --overwrite, or another output",
            where=str(path),
        )
    if found.command != state.command:
        what = f"written by packtool {found.command}, not by packtool {state.command}"
    elif found.key != state.key:
        what = "begun with other options or inputs"
    else:
        return (path / manifests.MANIFEST).exists()
    remedy = "give the same ones, or --overwrite to start again"
    raise UsageError("resume-differs", what, remedy=remedy, where=str(path))


def _remove_ours(path: Path, entries: list[str]) -> None:
    for name in entries:
        if not _OURS.fullmatch(name):
            raise UsageError(
                "output-has-other-files",
                f"holds {name}, which packtool did not write",
                remedy="move it away, or choose another output",
                where=str(path),
            )
    # The manifest goes first: from then on nobody takes the rest for a dataset.
    (path / manifests.MANIFEST).unlink(missing_ok=True)
    sync_directory(path)
    for name in entries:
        entry = path / name
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink(missing_ok=True)
