"""Claim the place of an output: decide whether a run may write there, and what it resumes.

What is there decides: nothing; a dataset, finished by the same command with the same key or by another; unfinished
work of an interrupted run, or of tasks that share it; what packtool did not write. In a directory a lock keeps others
out. An object store has none: who begins first says so there, and whoever finds that another has begun since stops.
"""

from __future__ import annotations

import functools
import os
import shutil
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePath, PurePosixPath

from packtool.engines import Share
from packtool.errors import DataError, UsageError
from packtool.options.arguments import plain_arguments
from packtool.options.shared import Writing
from packtool.places.local import LocalPlace
from packtool.places.place import Place
from packtool.places.store import StorePlace
from packtool.places.typed import Typed, cache_directory, place_of
from packtool.places.url import is_remote
from packtool.storage import lock
from packtool.storage import manifest as manifests
from packtool.storage.files import write_bytes
from packtool.storage.names import UNFINISHED
from packtool.storage.output import Output
from packtool.storage.publish import (
    STATE,
    is_ours,
    is_staged,
    other_files,
    publish,
    remove_work,
    require_no_links,
    require_removable,
)
from packtool.storage.schema import listed
from packtool.storage.state import Begun, Found, State, look
from packtool.storage.uploads import UploadedOutput, directory_for, remove_directory, tidy


def claim(
    place: Typed,
    command: str,
    options: Writing,
    *,
    key: str,
    inputs: Iterable[Path | str] = (),
    share: Share | None = None,
) -> Output:
    """Make sure that `command` may write to a place, and nobody else does but other tasks; create it.

    Args:
        place: of the output.
        command: name of the command.
        options: of the command. `overwrite` replaces the dataset that is there, once the new one is whole, and forgets
            what an unfinished run left; nothing else there is ever removed. `resume` goes on with what an earlier run
            with the same key left there; an empty output simply starts.
        key: `key_of` the options and inputs that the output depends on.
        inputs: files, directories and URLs that are read.
        share: of the work that this task does, beside others that are not waited for, or the merge of what they did; it
            always goes on with what is there.

    Raises:
        UsageError: both `overwrite` and `resume`, or `overwrite` and `share`; output inside an input or the other way
            round; not empty; unfinished or finished with another key; other files than packtool's.
        DataError: not a directory, or it can't be created; another run writes there.
    """
    if not str(place):
        raise UsageError("bad-option", "an empty name", remedy="give a directory", where="--output")
    if options.overwrite and options.resume:
        raise UsageError("overwrite-and-resume", "--overwrite and --resume exclude each other", remedy="give one")
    if share is not None and options.overwrite:
        what = "can't be combined with --task, since every task would remove what the others did"
        raise UsageError("bad-option", what, remedy="remove the output first", where="--overwrite")
    there, state = place_of(place), State(command, key)
    if isinstance(there, StorePlace) and share is not None:
        raise not_shared()
    assert isinstance(there, LocalPlace | StorePlace)
    _refuse_overlap(there, inputs)
    if isinstance(there, StorePlace):
        return _claim_store(there, state, options)
    return _claim_directory(Output(there, there.path, state), options, share)


def not_shared() -> UsageError:
    """Return the error for tasks whose output or input is in an object store."""
    what = "tasks of one command share local directories, not those of an object store"
    remedy = "give directories on a shared file system, and copy the result"
    return UsageError("unsupported-store", what, remedy=remedy, where="--task")


def _refuse_overlap(place: LocalPlace | StorePlace, inputs: Iterable[Path | str]) -> None:
    """Refuse an output that is an input, or is inside one, or contains one. A URL never overlaps a local path."""
    local = isinstance(place, LocalPlace)
    target = place.path.resolve() if isinstance(place, LocalPlace) else PurePosixPath(str(place))
    folder = functools.cache(os.path.realpath)
    for each in inputs:
        if is_remote(str(each)) == local:
            continue
        name = os.fspath(each)
        head, tail = os.path.split(name)
        source: PurePath = PurePosixPath(name)
        if local:  # most inputs are plain files of few directories: what these are is asked once
            whole = Path(name).is_symlink() or tail in ("", ".", "..")
            source = Path(name).resolve() if whole else Path(folder(head), tail)
        if target == source or source in target.parents:
            what = "the output is the input" if target == source else f"the output lies inside the input {each}"
        elif target in source.parents:
            what = f"the input {each} lies inside the output"
        else:
            continue
        raise UsageError("output-overlaps-input", what, remedy="choose an output elsewhere", where=str(place))


def _claim_store(place: StorePlace, state: State, options: Writing) -> Output:
    """Claim an output in an object store. A local directory holds files to upload, and scratch files."""
    path = directory_for(str(place), cache_directory() if options.staging is None else Path(options.staging))
    contents = look(place)
    resumed, finished = _decide(place, contents, state, options, None)
    if finished:
        tidy(place, manifests.read(place))
        remove_directory(path)
        return Output(place, path, state, resumed=True, finished=True)
    output = UploadedOutput(place, path, state, contents, resumed=resumed, quiet=options.quiet)
    try:
        with _writable(output):
            output.lock = lock.take(output.work, state.command)
        if not resumed or not state.same(look(LocalPlace(path)).unfinished):
            _empty(path)
        if not resumed:
            place.remove([name for name in contents.names if name.startswith(f"{UNFINISHED}/")])
        with _writable(output):
            output.make()
        begun = manifests.encode(Begun(state.command, state.key, plain_arguments(options), run=uuid.uuid4().hex))
        output.take(begun, anew=not contents.names)
        write_bytes(output.work / STATE, begun)
        output.pull()
    except BaseException:
        output.release()
        raise
    return output


def _empty(path: Path) -> None:
    """Remove the remains of an earlier run from a staging directory."""
    remove_work(path)
    for entry in path.iterdir():
        if entry.name == UNFINISHED:
            continue
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()


def _claim_directory(output: Output, options: Writing, share: Share | None) -> Output:
    """Claim an output directory for one run, or for the tasks that share it. If nothing is left to do, take no lock."""
    command, task = output.state.command, 0 if share is None else share.number
    _look(output, options, share)  # before anything is written there
    if output.finished and not output.work.exists():
        return output
    with _writable(output):
        output.lock = lock.take(output.work, f"{command} --task {share}" if task else command, task)
    try:
        if share is not None and task:
            _join(output, options, share)
        else:
            _go_on(output, options, share)
    except BaseException:
        output.release()
        raise
    return output


def _go_on(output: Output, options: Writing, share: Share | None) -> None:
    """Resume or start the output of a run that holds its lock alone."""
    path = output.path
    goes_on = options.overwrite or _resumes(options, share)
    if goes_on and is_staged(path):  # killed between its last file and its manifest
        publish(path)
        there = look(output.place)
        if there.finished is not None and there.finished.same(there.unfinished):
            remove_work(path)
    before = _look(output, options, share).unfinished
    if output.finished:
        if before is None or output.state.same(before):
            remove_work(path)
        return
    if options.overwrite:
        remove_work(path)
    begun = Begun(output.state.command, output.state.key, plain_arguments(options))
    if output.resumed and before is not None and before.tasks:
        begun = before
    with _writable(output):
        output.make()
        write_bytes(output.work / STATE, manifests.encode(begun))
    output.tasks = begun.tasks


def _join(output: Output, options: Writing, share: Share) -> None:
    """Join the other tasks that share the lock of an output."""
    path = output.path
    if is_staged(path):
        what = "all tasks are done, and a merge was interrupted"
        raise DataError("not-merged", what, remedy=f"run packtool merge {path}", where=str(path))
    begun = Begun(output.state.command, output.state.key, plain_arguments(options), share.count)
    with _writable(output):
        output.make()
        if not output.finished and not output.resumed:
            LocalPlace(output.work).create(STATE, manifests.encode(begun))
    begun_as = _look(output, options, share).unfinished
    if not output.finished and begun_as is not None and begun_as.tasks != share.count:
        what, remedy = "begun by a run without --task", "give --resume instead of --task to go on with it"
        if begun_as.tasks:
            what, remedy = f"begun as {begun_as.tasks} tasks", f"give --task I/{begun_as.tasks}"
        raise UsageError("resume-differs", what, remedy=remedy, where=str(path))
    output.resumed, output.tasks = True, share.count


def _look(output: Output, options: Writing, share: Share | None) -> Found:
    """Look at the output; settle whether this run resumes it, and whether it had finished."""
    path = output.path
    if path.exists() and not path.is_dir():
        raise DataError("not-a-directory", "not a directory", remedy="choose another output", where=str(path))
    require_no_links(path)
    contents = look(output.place)
    output.resumed, output.finished = _decide(output.place, contents, output.state, options, share)
    return contents


def _resumes(options: Writing, share: Share | None) -> bool:
    """Return whether a run continues an earlier one, as every task does."""
    return options.resume or share is not None


def _decide(place: Place, contents: Found, state: State, options: Writing, share: Share | None) -> tuple[bool, bool]:
    """Decide whether a run resumes an earlier one; return that, and whether the earlier one had finished.

    Raises:
        PacktoolError: it may not write there at all.
    """
    if not contents.names:
        return False, False
    if _resumes(options, share):
        return True, _require_same(place, contents, state, "give --overwrite" if share is None else "remove the output")
    if not options.overwrite:
        raise _not_empty(place, contents)
    if not isinstance(place, LocalPlace):
        for name in sorted(contents.names):
            if not is_ours(name):
                raise other_files(name, place)
    elif not is_staged(place.path):
        require_removable(place.path)
    return False, False


def _require_same(place: Place, contents: Found, state: State, anew: str) -> bool:
    """Check that the work at a place has the same state; return whether it is finished. `anew`: how to start again."""
    if state.same(contents.finished):
        try:
            place.require(list(listed(manifests.read(place))))
        except DataError as error:
            what = "named in the manifest, but not there as it was written"
            remedy = "copy it again, or give --overwrite to make all of it again"
            raise DataError("missing-shard", what, remedy=remedy, where=error.where) from None
        return True
    if state.same(contents.unfinished):
        return False
    if contents.state is None:
        what, remedy = "not empty, and not the output of an interrupted run", f"{anew}, or give another output"
        raise UsageError("nothing-to-resume", what, remedy=remedy, where=str(place))
    what = "begun with other options or inputs"
    if contents.state.command != state.command:
        what = f"written by packtool {contents.state.command}, not by packtool {state.command}"
    remedy = f"give the same ones, or {anew} to start again"
    raise UsageError("resume-differs", what, remedy=remedy, where=str(place))


def _not_empty(place: Place, contents: Found) -> UsageError:
    if contents.whole:
        what, remedy = f"holds a finished {manifests.kind_at(place)} already", "give --overwrite to replace it"
    elif contents.unfinished is not None or any(name.startswith(f"{UNFINISHED}/") for name in contents.names):
        command = "command" if contents.unfinished is None else f"packtool {contents.unfinished.command}"
        what = f"holds the unfinished work of an interrupted {command}"
        remedy = "give --resume to go on, --overwrite to start again"
    else:
        what = f"holds {min(contents.names).partition('/')[0]} already"
        remedy = "choose another output, or move it away"
    return UsageError("output-not-empty", what, remedy=remedy, where=str(place))


@contextmanager
def _writable(output: Output) -> Iterator[None]:
    """Report a directory that can't be written to in one clear error.

    Raises:
        DataError: `output-not-writable`.
    """
    try:
        yield
    except OSError as error:
        what = f"can't be written ({error.strerror})"
        where = str(output.place)
        raise DataError("output-not-writable", what, remedy="choose another", where=where) from None
