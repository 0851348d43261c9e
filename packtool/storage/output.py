"""Output directories: one writer, never mixed with something else, never whole-looking before they are whole.

While a command runs, everything that it writes lies in `unfinished/` inside the output, the dataset itself in
`unfinished/dataset`. `finish` puts it in its place, in place of the dataset that `--overwrite` was to replace. What was
killed on the way can be resumed if options and inputs still have the same key. So can several tasks go on with it at
the same time, each with its share of the pieces, until `merge` finishes it.
"""

from __future__ import annotations

import errno
import functools
import os
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Any

from packtool.call import typed
from packtool.engines import Share
from packtool.errors import DataError, UsageError
from packtool.places import transfer
from packtool.places.staging import Upload, upload_of
from packtool.storage import lock, remote
from packtool.storage import manifest as manifests
from packtool.storage.delivery import Delivery, Destination, Entry
from packtool.storage.files import write_bytes, write_once
from packtool.storage.lock import Lock
from packtool.storage.pieces import Done, Pieces, nothing
from packtool.storage.publish import (
    SCRATCH,
    STAGED,
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
    state_of,
)
from packtool.storage.uploads import Uploads


@dataclass(frozen=True)
class Output:
    """An output directory that is safe to write to: nobody else does.

    Attributes:
        path: the directory; it exists.
        work: its `unfinished` directory, for scratch files and finished pieces; gone after `finish`.
        staged: the directory in it for the files of the dataset.
        state: command and key.
        resumed: an earlier run with the same key stopped here; its pieces are in `work`.
        finished: an earlier run with the same key finished here; there is nothing left to do.
        tasks: how many were begun to share the work; 0 where one run does all of it.
        delivery: where finished pieces go.
        lock: held while this run works; None where there is nothing to do.
    """

    path: Path
    work: Path
    staged: Path
    state: State
    resumed: bool
    finished: bool
    tasks: int = 0
    delivery: Delivery = field(default_factory=Delivery)
    lock: Lock | None = None

    @property
    def scratch(self) -> Path:
        """The directory in `work` for files that are not finished."""
        return self.work / SCRATCH

    def pieces(
        self, kind: str, type: type[Done], files: Callable[[int, Done], tuple[Path, Sequence[Entry]]] = nothing
    ) -> Pieces[Done]:
        """Its pieces of a kind; see `Pieces`."""
        return Pieces(self.work, kind, type, files, self.delivery)

    def finish(self, manifest: manifests.Manifest, run: Mapping[str, Any] | None = None) -> None:
        """Turn what was staged into a dataset. All files must be there and durable.

        Args:
            manifest: written last, atomically.
            run: facts that may differ between equal runs (timings, machine, workers), for `run.json`.
        """
        facts = {"command": self.state.command, "key": self.state.key, **(run or {})}
        write_bytes(self.staged / manifests.RUN, manifests.encode(facts))
        self.delivery.finish(self.path, manifest)
        self.discard()

    def __enter__(self) -> Output:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Let others write here, however the block ends.

        Raises:
            DataError: in place of the system's error for a full disk, which names neither the output nor the way on.
        """
        self.release()
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            what = "no space left on the device" if error.errno == errno.ENOSPC else "disk quota exceeded"
            again = "run the task again" if self.tasks else "run the command again with --resume"
            remedy = f"free some space, then {again}: what is finished is kept"
            raise DataError("disk-full", what, remedy=remedy, where=str(self.path)) from None

    def discard(self) -> None:
        """Leave nothing unfinished behind: all is done, or there is nothing that a resumed run could use."""
        remove_work(self.path)
        self.release()

    def release(self) -> None:
        """Let others write here. Doing it again does no harm."""
        self.delivery.close()
        if self.lock is not None and self.lock.release() and not self.lock.shared:
            for directory in (self.staged, self.scratch, self.work, self.path):
                with suppress(OSError):
                    directory.rmdir()  # if there is nothing in it


def prepare(
    path: Path | str,
    command: str,
    *,
    key: str,
    inputs: Iterable[Path | str] = (),
    overwrite: bool = False,
    resume: bool = False,
    share: Share | None = None,
    arguments: Mapping[str, Any] | None = None,
) -> Output:
    """Make sure that `command` may write to `path`, and nobody else does but other tasks; create it.

    Args:
        path: output directory.
        command: name of the command.
        key: `key_of` the options and inputs that the output depends on.
        inputs: local files and directories that are read.
        overwrite: replace the dataset that is there, once the new one is whole, and forget what an unfinished run left.
            Nothing else there is ever removed.
        resume: go on with what an earlier run with the same key left there; an empty output simply starts.
        share: of the work that this task does, beside others that are not waited for, or the merge of what they did; it
            always goes on with what is there.
        arguments: of the command, with which `merge` calls it again.

    Raises:
        UsageError: both `overwrite` and `resume`, or `overwrite` and `share`; output inside an input or the other way
            round; not empty; unfinished or finished with another key; other files than packtool's.
        DataError: not a directory, or it can't be created; another run writes there.
    """
    if not str(path):
        raise UsageError("bad-option", "an empty name", remedy="give a directory", where="--output")
    path, state, inputs = Path(path), State(command, key), list(inputs)
    if overwrite and resume:
        raise UsageError("overwrite-and-resume", "--overwrite and --resume exclude each other", remedy="give one")
    if share is not None and overwrite:
        what = "can't be combined with --task, since every task would remove what the others did"
        raise UsageError("bad-option", what, remedy="remove the output first", where="--overwrite")
    _refuse_overlap(path, inputs)
    output = Output(path, path / UNFINISHED, path / UNFINISHED / STAGED, state, resumed=False, finished=False)
    if (upload := upload_of(path)) is not None:
        output = _claim_url(output, upload, overwrite=overwrite, resume=resume)
    else:
        output = _claim_directory(output, overwrite=overwrite, resume=resume, share=share, arguments=arguments or {})
    if output.lock is None:
        return output
    return output


def lies_at(path: Path | str, command: str, key: str) -> str:
    """What lies at an output, as `state_of` says it, without touching it."""
    upload = upload_of(Path(path))
    return state_of(path, command, key) if upload is None else remote.lies_at(upload, State(command, key))


def _refuse_overlap(path: Path, inputs: Iterable[Path | str]) -> None:
    target = path.resolve()
    folder = functools.cache(os.path.realpath)
    for each in inputs:
        # Most inputs are plain files of few directories: what these are is asked once.
        name = os.fspath(each)
        head, tail = os.path.split(name)
        source = (
            Path(name).resolve() if Path(name).is_symlink() or tail in ("", ".", "..") else Path(folder(head), tail)
        )
        if target == source or source in target.parents:
            what = "the output is the input" if target == source else f"the output lies inside the input {each}"
        elif target in source.parents:
            what = f"the input {each} lies inside the output"
        else:
            continue
        raise UsageError("output-overlaps-input", what, remedy="choose an output elsewhere", where=str(path))


def _claim_directory(
    output: Output, *, overwrite: bool, resume: bool, share: Share | None, arguments: Mapping[str, Any]
) -> Output:
    """An output in its directory, which this run alone writes to, or tasks that share it; without a lock where nothing
    is left to do.

    Args:
        overwrite, resume, share, arguments: as of `prepare`.

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
        return _go_on(output, overwrite=overwrite, resume=resume)
    except BaseException:
        output.release()
        raise


def _claim_url(output: Output, upload: Upload, *, overwrite: bool, resume: bool) -> Output:
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


def _go_on(output: Output, *, overwrite: bool, resume: bool) -> Output:
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
