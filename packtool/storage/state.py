"""What lies at an output, and which command put it there with which options: whether a run may go on, and with what."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec
import xxhash

from packtool.errors import DataError, PacktoolError, UsageError
from packtool.storage import manifest as manifests
from packtool.storage.files import PARTIAL
from packtool.storage.listing import listed
from packtool.storage.lock import LOCK
from packtool.storage.publish import SCRATCH, STAGED, STATE, UNFINISHED
from packtool.storage.reading import decode, read_file

_BEFORE_STATE = re.compile(rf"{LOCK}|task-\d+\.lock|{STATE}(\.[0-9a-f]{{8}})?{re.escape(PARTIAL)}")
"""What a command may leave that was killed before it could write down its key."""


class State(msgspec.Struct, frozen=True):
    """Which command works here (or worked, in `run.json`), and the key of its options and inputs."""

    command: str
    key: str


class Begun(State, frozen=True):
    """The state, and how to go on.

    Attributes:
        call: the command line that began the work.
        tasks: how many share it; 0 where one run does all of it.
        arguments: of the command, for `merge`, where tasks share it.
    """

    call: str = ""
    tasks: int = 0
    arguments: dict[str, Any] = {}


def key_of(*parts: Any) -> str:
    """A hash of anything msgspec can write as JSON: options and inputs, for `prepare`."""
    return xxhash.xxh3_128_hexdigest(msgspec.json.encode(parts, order="deterministic"))


def read_call(path: Path) -> str:
    """The command line that began the unfinished work at `path`; empty if that is not known."""
    begun = read_begun(path)
    return "" if begun is None else begun.call


def read_begun(path: Path) -> Begun | None:
    """What is unfinished at `path`; None if that is not known."""
    try:
        return decode(read_file(path / UNFINISHED / STATE), Begun)
    except (OSError, ValueError, PacktoolError):
        return None


def read_state(path: Path) -> State | None:
    """Which command worked on the unfinished or finished output at `path`; None if that can't be told."""
    return read_state_file(path / UNFINISHED / STATE) or _finished_state(path)


def _finished_state(path: Path) -> State | None:
    return read_state_file(path / manifests.RUN) if (path / manifests.MANIFEST).exists() else None


def read_state_file(file: Path) -> State | None:
    try:
        return decode(read_file(file), State)
    except (OSError, ValueError, PacktoolError):
        return None


def state_of(path: Path | str, command: str, key: str) -> str:
    """What lies at `path`, without touching it.

    Returns:
        ``nothing``; ``finished`` or ``unfinished`` work of this command with this key; ``other``: anything else.
    """
    path = Path(path)
    if not path.exists() or (path.is_dir() and not entries_of(path)):
        return "nothing"
    try:
        return "finished" if require_same(path, State(command, key)) else "unfinished"
    except PacktoolError:
        return "other"


def entries_of(path: Path) -> list[str]:
    """What the directory holds; nothing, if a command was killed there before it could write down its key."""
    names = sorted(entry.name for entry in path.iterdir()) if path.exists() else []
    if names == [UNFINISHED] and (path / UNFINISHED).is_dir() and not (path / UNFINISHED).is_symlink():
        left = {e.name for e in (path / UNFINISHED).iterdir() if not _BEFORE_STATE.fullmatch(e.name)}
        if left <= {STAGED, SCRATCH} and not any(any((path / UNFINISHED / name).iterdir()) for name in left):
            return []
    return names


def require_same(path: Path, state: State, anew: str = "give --overwrite") -> bool:
    """Check that what lies in `path` has the same state; whether it is finished. `anew`: how to start again."""
    finished, unfinished = _finished_state(path), read_state_file(path / UNFINISHED / STATE)
    if finished == state:
        _require_whole(path)
        return True
    if unfinished == state:
        return False
    found = unfinished or finished
    if found is None:
        raise UsageError(
            "nothing-to-resume",
            "not empty, and not the output of an interrupted run",
            remedy=f"{anew}, or give another output",
            where=str(path),
        )
    if found.command != state.command:
        what = f"written by packtool {found.command}, not by packtool {state.command}"
    else:
        what = "begun with other options or inputs"
    remedy = f"give the same ones, or {anew} to start again"
    raise UsageError("resume-differs", what, remedy=remedy, where=str(path))


def _require_whole(path: Path) -> None:
    """Refuse to keep a finished dataset that has lost files, or parts of them, since.

    Raises:
        DataError: naming the first one.
    """
    for each in listed(manifests.read(path)):
        file = path / each.name
        if not file.is_file() or file.stat().st_size != each.bytes:
            raise DataError(
                "missing-shard",
                "named in the manifest, but not there as it was written",
                remedy="copy it again, or give --overwrite to make all of it again",
                where=str(file),
            )
