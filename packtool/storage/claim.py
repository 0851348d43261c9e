"""Whether a run may write to an output, and with what it goes on: there, or at the URL that the output belongs to."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from packtool.call import typed
from packtool.engines import Share
from packtool.errors import DataError, UsageError
from packtool.places import transfer
from packtool.places.staging import Upload
from packtool.storage import lock, remote
from packtool.storage import manifest as manifests
from packtool.storage.files import write_bytes, write_once
from packtool.storage.publish import (
    STATE,
    UNFINISHED,
    is_staged,
    publish,
    remove_work,
    require_no_links,
    require_removable,
)
from packtool.storage.state import (
    Begun,
    State,
    entries_of,
    read_begun,
    read_state,
    read_state_file,
    require_same,
)
from packtool.storage.uploads import Destination, Uploads

if TYPE_CHECKING:
    from packtool.storage.output import Output


def claimed(
    output: Output, *, overwrite: bool, resume: bool, share: Share | None, arguments: Mapping[str, Any]
) -> Output:
    """An output in its directory, which this run alone writes to, or tasks that share it; without a lock where nothing
    is left to do.

    Args:
        overwrite, resume, share, arguments: as of `packtool.storage.output.prepare`.

    Raises:
        PacktoolError: it may not write there.
    """
    path, state, work = output.path, output.state, output.work
    resume = resume or share is not None
    task = 0 if share is None else share.number
    # Before anything is written there.
    resumed, finished = _decide(path, state, overwrite=overwrite, resume=resume, shared=share is not None)
    output = replace(output, resumed=resumed, finished=finished)
    if finished and not work.exists():
        return output
    held = _locked(path, work, f"{state.command} --task {share}" if task else state.command, task)
    output = replace(output, lock=held)
    try:
        if share is not None and task:
            return _join(output, share, arguments)
        return _claim(output, overwrite=overwrite, resume=resume)
    except BaseException:
        output.release()
        raise


def uploaded(output: Output, upload: Upload, *, overwrite: bool, resume: bool) -> Output:
    """An output that is uploaded while it is written. What lies at its URL decides; the directory here holds no more
    than what is on its way there, and what the work needs.

    Raises:
        PacktoolError: it may not write there.
    """
    path, state, url = output.path, output.state, upload.url
    found = remote.look(url)
    if remote.decide(upload, found, state, overwrite=overwrite, resume=resume):
        remote.stand_for(path, upload)
        return replace(output, resumed=True, finished=True)
    resumed = resume and found.unfinished == state
    output = replace(output, resumed=resumed, lock=_locked(path, output.work, state.command, 0))
    try:
        if not resumed or read_state_file(output.work / STATE) != state:
            _empty(path)
        if not resumed and any(name.startswith(f"{UNFINISHED}/") for name in found.names):
            transfer.remove_below(f"{url}/{UNFINISHED}")
        _make(output)
        destination = Destination(
            url, output.work.absolute(), found.replacing if resumed else found.finished is not None
        )
        uploads = Uploads(destination, found.work() if resumed else {}, quiet=upload.quiet)
        output = replace(output, delivery=uploads)
        begun = manifests.encode(Begun(state.command, state.key, typed()))
        write_bytes(output.work / STATE, begun)
        transfer.write(destination.of(output.work.absolute() / STATE), begun)
        uploads.pull()
    except OSError as error:
        output.release()
        raise _not_writable(path, error) from None
    except BaseException:
        output.release()
        raise
    return output


def _empty(path: Path) -> None:
    """Remove what an earlier run left in a staging directory."""
    remove_work(path)
    for entry in path.iterdir():
        if entry.name == UNFINISHED:
            continue
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()


def _locked(path: Path, work: Path, command: str, task: int) -> lock.Lock:
    try:
        return lock.take(work, command, task)
    except OSError as error:
        raise _not_writable(path, error) from None


def _claim(output: Output, *, overwrite: bool, resume: bool) -> Output:
    """What `prepare` does once it has the lock."""
    path = output.path
    if is_staged(path) and (overwrite or resume):  # a run was killed between its last file and its manifest
        publish(path)
        if read_state_file(path / manifests.RUN) == read_state_file(output.work / STATE):
            remove_work(path)
    resumed, finished = _decide(path, output.state, overwrite=overwrite, resume=resume)
    output = replace(output, resumed=resumed, finished=finished)
    if finished:
        if read_state_file(output.work / STATE) in (None, output.state):
            remove_work(path)
        return output
    if overwrite:
        remove_work(path)
    before = read_begun(path) if resumed else None
    begun = before if before is not None and before.tasks else Begun(output.state.command, output.state.key, typed())
    try:
        _make(output)
        write_bytes(output.work / STATE, manifests.encode(begun))
    except OSError as error:
        raise _not_writable(path, error) from None
    return replace(output, tasks=begun.tasks)


def _join(output: Output, share: Share, arguments: Mapping[str, Any]) -> Output:
    """What `prepare` does once a task shares the lock."""
    path = output.path
    if is_staged(path):
        what = "all tasks are done, and a merge was interrupted"
        raise DataError("not-merged", what, remedy=f"run packtool merge {path}", where=str(path))
    begun = Begun(output.state.command, output.state.key, typed(), share.count, dict(arguments))
    try:
        _make(output)
        if not output.finished and not output.resumed:
            write_once(output.work / STATE, manifests.encode(begun))
    except OSError as error:
        raise _not_writable(path, error) from None
    _, finished = _decide(path, output.state, overwrite=False, resume=True, shared=True)
    found = read_begun(path)
    if not finished and found is not None and found.tasks != share.count:
        what = f"begun as {found.tasks} tasks" if found.tasks else "begun by a run without --task"
        remedy = f"give --task I/{found.tasks}" if found.tasks else "give --resume instead of --task to go on with it"
        raise UsageError("resume-differs", what, remedy=remedy, where=str(path))
    return replace(output, resumed=True, finished=finished, tasks=share.count)


def _make(output: Output) -> None:
    for directory in (output.staged, output.scratch):
        directory.mkdir(parents=True, exist_ok=True)


def _not_writable(path: Path, error: OSError) -> DataError:
    what = f"can't be written ({error.strerror})"
    return DataError("output-not-writable", what, remedy="choose another", where=str(path))


def _decide(path: Path, state: State, *, overwrite: bool, resume: bool, shared: bool = False) -> tuple[bool, bool]:
    """Whether a run goes on here with what an earlier one left, and whether that one had finished.

    Raises:
        PacktoolError: it may not write here at all.
    """
    if path.exists() and not path.is_dir():
        raise DataError("not-a-directory", "not a directory", remedy="choose another output", where=str(path))
    entries = entries_of(path)
    if not entries:
        return False, False
    require_no_links(path)
    if resume:
        return True, require_same(path, state, *(["remove the output"] if shared else []))
    if overwrite:
        if not is_staged(path):
            require_removable(path)
        return False, False
    raise _not_empty(path, entries)


def _not_empty(path: Path, entries: list[str]) -> UsageError:
    if manifests.MANIFEST in entries:
        what, remedy = f"holds a finished {manifests.kind_at(path)} already", "give --overwrite to replace it"
    elif UNFINISHED in entries:
        state = read_state(path)
        what = f"holds the unfinished work of an interrupted {f'packtool {state.command}' if state else 'command'}"
        remedy = "give --resume to go on, --overwrite to start again"
    else:
        what, remedy = f"holds {entries[0]} already", "choose another output, or move it away"
    return UsageError("output-not-empty", what, remedy=remedy, where=str(path))
