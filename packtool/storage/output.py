"""Output directories: one writer, never mixed with something else, never whole-looking before they are whole.

While a command runs, everything that it writes lies in `unfinished/` inside the output, the dataset itself in
`unfinished/dataset`. `finish` puts it in its place, in place of the dataset that `--overwrite` was to replace. What was
killed on the way can be resumed if options and inputs still have the same key. So can several tasks go on with it at
the same time, each with its share of the pieces, until `merge` finishes it.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from contextvars import ContextVar
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from packtool.call import typed
from packtool.errors import DataError, UsageError
from packtool.places.mirror import fetch_all
from packtool.places.staging import Upload, upload_of
from packtool.share import Share
from packtool.storage import lock, remote
from packtool.storage import manifest as manifests
from packtool.storage.files import write_bytes, write_once
from packtool.storage.lock import Lock
from packtool.storage.publish import (
    STAGED,
    STATE,
    UNFINISHED,
    WHOLE,
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

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

_held: ContextVar[ExitStack | None] = ContextVar("held", default=None)


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
        lock: held while this run works; None where there is nothing to do.
    """

    path: Path
    work: Path
    staged: Path
    state: State
    resumed: bool
    finished: bool
    tasks: int = 0
    lock: Lock | None = None

    def finish(self, manifest: manifests.Manifest, run: Mapping[str, Any] | None = None) -> None:
        """Turn what was staged into a dataset. All files must be there and durable.

        Args:
            manifest: written last, atomically.
            run: facts that may differ between equal runs (timings, machine, workers), for `run.json`.
        """
        facts = {"command": self.state.command, "key": self.state.key, **(run or {})}
        write_bytes(self.staged / manifests.RUN, manifests.encode(facts))
        manifests.write(self.work, manifest, WHOLE)
        publish(self.path)
        if (upload := upload_of(self.path)) is not None:
            remote.publish(self.path, upload)
        self.discard()

    def discard(self) -> None:
        """Leave nothing unfinished behind: all is done, or there is nothing that a resumed run could use."""
        remove_work(self.path)
        self.release()

    def release(self) -> None:
        """Let others write here. Doing it again does no harm."""
        if self.lock is not None and self.lock.release() and not self.lock.shared:
            for directory in (self.staged, self.work, self.path):
                with suppress(OSError):
                    directory.rmdir()  # if there is nothing in it


def one_writer(command: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """A command that lets go of its output when it ends, however it ends."""

    @functools.wraps(command)
    def run(*args: Parameters.args, **options: Parameters.kwargs) -> Result:
        with ExitStack() as stack:
            token = _held.set(stack)
            try:
                return command(*args, **options)
            finally:
                _held.reset(token)

    return run


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
    if share is not None:
        if overwrite:
            what = "can't be combined with --task, since every task would remove what the others did"
            raise UsageError("bad-option", what, remedy="remove the output first", where="--overwrite")
        resume = True
    task = 0 if share is None else share.number
    _refuse_overlap(path, inputs)
    work = path / UNFINISHED
    upload = upload_of(path)
    if upload is not None and remote.decide(upload, state, overwrite=overwrite, resume=resume):
        remote.stand_for(path, upload)
        return Output(path, work, work / STAGED, state, resumed=True, finished=True)
    # Before anything is written there.
    resumed, finished = _decide(path, state, overwrite=overwrite, resume=resume, shared=share is not None)
    if finished and not work.exists() and upload is None:
        return Output(path, work, work / STAGED, state, resumed, finished)
    try:
        held = lock.take(work, f"{command} --task {share}" if task else command, task)
    except OSError as error:
        raise _not_writable(path, error) from None
    output = Output(path, work, work / STAGED, state, resumed, finished, lock=held)
    try:
        if share is not None and task:
            output = _join(output, share, arguments or {})
        else:
            output = _claim(output, overwrite=overwrite, resume=resume)
        _reach(output, upload, inputs, resume=resume)
    except BaseException:
        output.release()
        raise
    if (stack := _held.get()) is not None:
        stack.callback(output.release)
    return output


def _reach(output: Output, upload: Upload | None, inputs: Sequence[Path | str], *, resume: bool) -> None:
    """Do what is left of a finished output, or have here what is needed to make it."""
    if upload is not None:
        remote.begin(output.path, upload, output.state, resume=resume)
        if output.finished:
            remote.publish(output.path, upload)
    if not output.finished:
        fetch_all(inputs)


def lies_at(path: Path | str, command: str, key: str) -> str:
    """What lies at an output, as `state_of` says it, without touching it."""
    upload = upload_of(Path(path))
    return state_of(path, command, key) if upload is None else remote.lies_at(upload, State(command, key))


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
        output.staged.mkdir(exist_ok=True)
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
        output.staged.mkdir(exist_ok=True)
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
