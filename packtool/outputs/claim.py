"""Open the output of a command: look at what lies there, decide what the run does there, and mark the place.

Four things may lie at a place: nothing, work that was begun, a finished output, or anything else. `look` tells which,
and `decide` has the table of what a command does there.

The lock, the marker and scratch files lie below `unfinished` in the place; for a store, the lock and scratch files of a
run lie in the staging directory of this machine. By its name a file may be *ours*, written by packtool; *work*, ours
and not a file of a dataset; or only a lock or a half-written marker, which shows no run that has *begun*.
"""

from __future__ import annotations

import functools
import os
import shutil
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path, PurePath, PurePosixPath
from typing import Any, Literal

import msgspec
import xxhash

from packtool.errors import DataError, PacktoolError, UsageError
from packtool.formats import manifest as manifests
from packtool.formats.names import LOCK, MARKER, SCRATCH, UNFINISHED, is_begun, is_ours
from packtool.formats.schema import FORMAT_VERSION, listed_files
from packtool.options.arguments import changed, plain_arguments
from packtool.options.shared import Writing
from packtool.outputs import lock
from packtool.outputs.delivery import taken
from packtool.outputs.output import Action, Made, Mark, Occupancy, Output, State, read_mark
from packtool.places.local import PARTIAL, LocalPlace, sync_directory
from packtool.places.place import Place
from packtool.places.typed import cache_directory
from packtool.places.url import is_remote
from packtool.support.decoding import from_json
from packtool.support.version import __version__
from packtool.warnings import warn


@dataclass(frozen=True)
class Found:
    """What lies at a place.

    Attributes:
        kind: *nothing*: no file, or only a lock and a marker that was written in part, whose run was killed before it
            had begun. *begun*: unfinished work with a marker, whose run is still working, or was killed. *finished*: a
            dataset or an export. *other*: files without a marker or a manifest, packtool's, from an unknown run, or
            another program's.
        names: the size of every file in bytes, by its name.
        marker: the contents of the marker; None if there is no marker, or it was removed after the files were listed.
            One may lie beside a finished dataset: of the run that made it, killed before it cleaned up; or of a run
            that was going to replace it, killed before it removed anything.
        digest: xxh3-128 of the manifest of a finished dataset; else "".
        by: the command that finished it, and its key; None if they are unknown.
    """

    kind: Literal["nothing", "begun", "finished", "other"]
    names: Mapping[str, int] = field(default_factory=dict)
    marker: bytes | None = None
    digest: str = ""
    by: Made | None = None

    @cached_property
    def mark(self) -> Mark | None:
        """What the marker says: who works here, or did. None if there is no marker, or a damaged one."""
        if self.marker is None:
            return None
        return read_mark(self.marker)

    @property
    def last(self) -> State | None:
        """The last command here and its key, as far as they are known: `packtool run` refuses another command's."""
        return self.mark or self.by


def look(place: Place) -> Found:
    """Look at a place, without touching it."""
    if isinstance(place, LocalPlace):
        foreign = _foreign(place.path)
        if foreign is not None:
            return Found("other", {foreign: 0})
    names = place.names()
    if not any(map(is_begun, names)):  # true of every file but a lock and a marker that was written in part
        return Found("nothing")
    marker = _marker(place, names)
    finished = _finished(place, names, marker)
    if finished is not None:
        return finished
    if MARKER in names:
        return Found("begun", names, marker)
    return Found("other", names)


def _foreign(path: Path) -> str | None:
    """Return a file that shows a directory to be neither a dataset nor unfinished work, without listing all of it."""
    if not path.is_dir() or (path / manifests.MANIFEST).exists() or (path / UNFINISHED).exists():
        return None
    for directory, folders, files in os.walk(path):
        folders.sort()
        for file in sorted(files):
            name = Path(directory, file).relative_to(path).as_posix()
            if not _is_work(name):
                return name
    return None


def _marker(place: Place, names: Mapping[str, int]) -> bytes | None:
    """Return the contents of the marker; None if there is no marker."""
    if MARKER not in names:
        return None
    try:
        return place.read(MARKER)
    except FileNotFoundError:  # its run has ended since the files were listed
        return None
    except OSError:  # listed, but unreadable: as a damaged marker, so the place does not pass for one without
        return b""


def _finished(place: Place, names: Mapping[str, int], marker: bytes | None) -> Found | None:
    """Return the finished output at a place; None if there is no manifest, or only a leftover of a killed run.

    Beside a marker a manifest is a leftover if it is damaged, if there is no `run.json`, or if `run.json` has another
    digest.
    """
    if manifests.MANIFEST not in names:
        return None
    try:
        raw = place.read(manifests.MANIFEST)
        if marker is not None:
            # A run checks that its manifest arrived as it was sent. If it is killed before that, its marker stays.
            # Without a marker a damaged manifest is a damaged dataset, which only its owner may remove.
            manifests.unsealed(raw)
    except (FileNotFoundError, ValueError):
        return None
    digest = xxhash.xxh3_128_hexdigest(raw)
    by = _made_by(place)
    # `run.json` is written before the manifest, and has its digest. A manifest with another digest arrived late, from a
    # run that has lost the place to another one. Beside the marker of that other run it is a leftover. Without a marker
    # it is a dataset, whose files may have been overwritten: `verify` tells.
    late = by is not None and by.manifest != digest
    if marker is not None and (late or manifests.RUN not in names):
        return None
    if late:
        by = None  # `run.json` is of another manifest, so it does not tell who made this dataset
    return Found("finished", names, marker, digest, by)


def _made_by(place: Place) -> Made | None:
    """Return the command and key of the run that finished, from `run.json`; None if it is missing or damaged."""
    try:
        return from_json(place.read(manifests.RUN), Made)
    except (OSError, ValueError, PacktoolError):
        return None


def key_of(*parts: Any) -> str:
    """Hash options and inputs, which msgspec can write as JSON, and the version of packtool into an output's key."""
    writer = (__version__, FORMAT_VERSION)
    try:
        raw = msgspec.json.encode((writer, parts), order="deterministic")
    except UnicodeEncodeError:  # a name in the input that is not UTF-8
        raw = manifests.encode((writer, parts))
    return xxhash.xxh3_128_hexdigest(raw)


def open_output(place: Place, command: str, options: Writing, *, key: str, inputs: Iterable[Path | str] = ()) -> Output:
    """Open the output of a command: make sure that it alone may write to a place, and create it.

    With `dry_run` look at what lies there, and create nothing: the output has a `preview` then.

    Args:
        place: of the output.
        command: name of the command.
        options: of the command. `overwrite` removes the dataset or the unfinished work that is there; nothing else
            there is ever removed. `resume` continues the work that an earlier run with the same key left there; an
            empty output simply starts.
        key: `key_of` the options and inputs that the output depends on.
        inputs: files, directories and URLs that are read.

    Raises:
        UsageError: both `overwrite` and `resume`; output inside an input or the other way round; not empty; unfinished
            or finished with another key; other files than packtool's. A dry run raises nothing.
        DataError: not a directory, or it can't be created; another run writes there.
    """
    output = _output(place, State(command, key), options)
    _require_apart(place, options, inputs)
    if options.dry_run:
        output.action, output.preview = Action.LOOK, preview(place, output.state)
        return output
    there = _decided(output, options)
    # An earlier run has finished: `Action.KEEP`. If its lock, marker and scratch files are gone, nothing is left to do.
    if output.finished and not any(name.startswith(f"{UNFINISHED}/") for name in there.names):
        return output
    try:
        with _writable(place):
            output.lock = lock.take(output.work, command, str(place))
            if not sync_directory(output.work):
                what = "this file system can't make the names of files durable"
                remedy = "nothing is lost but by a crash of the machine; after one, run packtool verify"
                warn("no-directory-sync", what, remedy=remedy, where=str(place))
            if isinstance(place, LocalPlace):
                # The decision above was made without the lock, and another run may have changed the place since. The
                # lock of a store keeps out the runs of this machine alone: there `_begin` looks again once the marker
                # is there.
                there = _decided(output, options)
            if not output.finished:
                _begin(output, options, there)
            elif isinstance(place, LocalPlace) or there.marker is None or output.state.same(there.mark):
                # A killed run had finished, but not removed its unfinished files and marker. In a directory a marker
                # of another run goes, too: this run holds the lock, so the other was killed. In a store the marker
                # goes only if it is of this very command and key, which has nothing left to do there.
                output.leave()
            else:
                output.release()  # the run of this marker may still work, on another machine
    except BaseException:
        output.release()
        raise
    return output


def require_free(place: Place, command: str, inputs: Iterable[Path | str]) -> None:
    """Require that a command may write to a place, whatever its options are, before anything is done for it.

    Raises:
        UsageError: it overlaps an input; it holds what another command wrote, or files that are not packtool's.
        DataError: not a directory, or with links.
    """
    _refuse_overlap(place, inputs)
    _require_directory(place)
    there = look(place)
    if there.last is not None and there.last.command != command:
        what = f"written by packtool {there.last.command}, not by packtool {command}"
        raise UsageError("resume-differs", what, remedy="choose another output", where=str(place))
    if there.kind == "other" and not _leftovers(there):
        raise _not_empty(place, there)
    _require_no_links(place)


def preview(place: Place, state: State) -> Occupancy:
    """Tell what a run with this command and key would find at a place, without touching it."""
    try:
        there = look(place)
        if state.same(there.by):
            _require_whole(place)
            return "finished"
    except (OSError, PacktoolError):
        return "other"  # a dry run never fails because of its output: the run itself reports what is wrong there
    if there.kind == "nothing":
        return "nothing"
    return "unfinished" if state.same(there.mark) else "other"


def difference(place: Place, command: str, options: Writing) -> str:
    """Say which option of a command was another one when the command made what lies at a place; "" if that is unknown.

    It touches nothing, and raises nothing.
    """
    try:
        last = look(place).last
    except (OSError, PacktoolError):
        return ""
    if not isinstance(last, Mark | Made) or last.command != command:
        return ""
    return next(iter(changed(last.arguments, options)), "")


def _output(place: Place, state: State, options: Writing) -> Output:
    """Set up an output. If it lies in an object store, its lock and scratch files lie in the staging directory."""
    if isinstance(place, LocalPlace):
        return Output(place, place.path / UNFINISHED, place.path / SCRATCH, state)
    staging = cache_directory()
    if options.staging is not None:
        staging = Path(options.staging).absolute()
    # One directory for each URL, whatever the key: so runs of this machine that write to one place share a lock.
    work = staging / "outputs" / xxhash.xxh3_64_hexdigest(str(place).encode())
    return Output(place, work, work / state.key, state)


def _decided(output: Output, options: Writing) -> Found:
    """Look at an output, set its `action` to what the run does there, and return what lies there."""
    place = output.place
    _require_directory(place)
    there = look(place)
    output.action = decide(place, there, output.state, options)
    _require_no_links(place)
    return there


def _require_directory(place: Place) -> None:
    """Refuse a file as an output."""
    if isinstance(place, LocalPlace) and place.path.exists() and not place.path.is_dir():
        raise DataError("not-a-directory", "not a directory", remedy="choose another output", where=str(place))


def decide(place: Place, there: Found, state: State, options: Writing) -> Action:
    """Decide what a run does at a place, by what lies there.

    | there                                              | neither option | `resume` | `overwrite` |
    | -------------------------------------------------- | -------------- | -------- | ----------- |
    | nothing                                            | begin          | begin    | begin       |
    | begun by the same command with the same key        | refuse         | go on    | replace     |
    | begun, with nothing but a damaged marker           | refuse         | go on    | replace     |
    | begun by another                                   | refuse         | refuse   | replace     |
    | finished by the same                               | refuse         | keep     | replace     |
    | finished by another; beside it a marker of the     | refuse         | go on    | replace     |
    |   same, killed before it removed the old dataset   |                |          |             |
    | finished by another                                | refuse         | refuse   | replace     |
    | leftovers of unfinished work, without a marker     | refuse         | replace  | replace     |
    | other files                                        | refuse         | refuse   | refuse      |

    "The same" is the same command with the same key. `overwrite` is refused, too, where any file is not packtool's.
    Leftovers come from a run that gave up and cleared the place while a request of its was on its way to a store.

    Raises:
        UsageError: it is refused.
        DataError: a file of the finished output that would be kept is gone.
    """
    if there.kind == "nothing":
        return Action.BEGIN
    if options.resume:
        return _resumed(place, there, state, options)
    if not options.overwrite:
        raise _not_empty(place, there)
    _require_ours(place, there)
    return Action.REPLACE


def _resumed(place: Place, there: Found, state: State, options: Writing) -> Action:
    """Decide for a run that resumes: the column `resume` of `decide`."""
    if there.kind == "finished":
        if state.same(there.by):
            _require_whole(place)
            return Action.KEEP
        # Only the dataset that the killed run was to replace may go: one that was finished since has another digest.
        if there.mark is not None and state.same(there.mark) and there.digest == there.mark.replaces:
            return Action.GO_ON
        raise _not_resumed(place, there, state, there.by, options)
    if state.same(there.mark):
        return Action.GO_ON
    if there.mark is None and set(there.names) <= {MARKER, f"{UNFINISHED}/{LOCK}"}:
        return Action.GO_ON  # no file of a dataset is there yet, so nothing can be mixed up
    if _leftovers(there):
        return Action.REPLACE
    raise _not_resumed(place, there, state, there.mark, options)


def _begin(output: Output, options: Writing, there: Found) -> None:
    """Mark the place for this run, then look again; remove what is to be replaced.

    In a directory a lock keeps other runs out, and the marker only tells what was begun. An object store has no lock
    that other machines see, and a request may be on its way for long. There the marker decides, and three rules keep
    what others have finished:

    1. A marker is created only if there is none, or exchanged for the very one that was seen. So of two runs that begin
       at the same time, or take the same work over, one goes on, and the other stops with an error.
    2. A run looks again once its marker is there. If it saw an empty place and was slow to mark it, a faster run may
       have finished since: then it removes its own marker and stops.
       A manifest that a killed run had sent may arrive late. If it arrives before the second look, the dataset is
       whole: a run that resumes the same work keeps it. If it arrives after, in a place that this run has begun anew,
       `run.json` is missing or has another digest, by which `_finished` knows the manifest for a leftover, and
       `Output.finish` removes it before it writes its own.
    3. The manifest of a dataset that is replaced is removed first. Without a manifest the place holds unfinished work;
       with one it holds a dataset. So files of the old dataset are never taken for files of the new one.
       --overwrite removes only the manifest that was seen before the marker was made. The marker has the digest of
       that manifest, so that a run which resumes knows it, too.

    Whoever lost the place notices before it delivers a file, and when it ends (`delivery.require_mark`).
    """
    place = output.place
    old_digest = ""  # of the manifest that this run replaces
    if output.action is Action.REPLACE:
        old_digest = there.digest
    elif output.action is Action.GO_ON and there.mark is not None:
        old_digest = there.mark.replaces
    output.mark = _mark(output.state, options, old_digest)
    # Rule 1: it writes only if the marker is still the one that was seen; None means that there was none.
    if not place.create(MARKER, output.mark, replaces=there.marker):
        raise taken(place)
    now = look(place)  # rule 2
    finished = now.kind == "finished"
    if output.action is Action.GO_ON and output.state.same(now.by):
        output.action = Action.KEEP  # the manifest of the killed run was still on its way
        output.leave()
        return
    if finished and now.digest != old_digest:
        # A faster run finished here in the meantime: its dataset stays, and must not look like unfinished work. (If a
        # third run has exchanged this marker for its own by now, that one is removed: that run notices in
        # `delivery.require_mark`, and marks the place again.)
        place.remove([MARKER])
        raise taken(place)
    # Unfinished work stays only if this run goes on with it; files of a dataset that is replaced never stay.
    if finished or output.action is not Action.GO_ON:
        replaced, work = [], []
        for name in filter(is_ours, now.names):
            if name in (MARKER, f"{UNFINISHED}/{LOCK}"):
                continue
            if finished and not name.startswith(f"{UNFINISHED}/"):
                replaced.append(name)
            else:
                work.append(name)
        output.replaced = replaced
        if not isinstance(place, LocalPlace):  # in a directory the lock keeps others out until a file is written
            output.remove_replaced()  # rule 3
        place.remove(work)
    _clear_scratch(output)


def _mark(state: State, options: Writing, old_digest: str) -> bytes:
    """Return the marker of a run. Its random part tells runs with the same options apart."""
    return manifests.sealed(Mark(state.command, state.key, plain_arguments(options), uuid.uuid4().hex, old_digest))


def _clear_scratch(output: Output) -> None:
    """Make the scratch directory, and remove files in it that this run can't use."""
    if output.action is not Action.GO_ON:
        shutil.rmtree(output.scratch, ignore_errors=True)
    output.scratch.mkdir(parents=True, exist_ok=True)
    # A directory with a dot in its name is one try at a task. This run holds the lock: the runs of these were killed.
    for attempt in output.scratch.glob("*.*/"):
        shutil.rmtree(attempt)
    if isinstance(output.place, LocalPlace):
        return
    for scratch in output.work.glob("*/"):
        if scratch != output.scratch:
            shutil.rmtree(scratch)  # of a run with another key, whose work is not in the store any more


def _require_apart(place: Place, options: Writing, inputs: Iterable[Path | str]) -> None:
    """Refuse `overwrite` together with `resume`, and an output that overlaps an input, whatever lies at the output."""
    if options.overwrite and options.resume:
        raise UsageError("overwrite-and-resume", "--overwrite and --resume exclude each other", remedy="give one")
    _refuse_overlap(place, inputs)


def _refuse_overlap(place: Place, inputs: Iterable[Path | str]) -> None:
    """Refuse an output that is an input, lies inside an input, or contains one. A URL never overlaps a local path."""
    local = isinstance(place, LocalPlace)
    target: PurePath = PurePosixPath(str(place))  # it makes s3:/a of s3://a, and of the inputs below alike
    if isinstance(place, LocalPlace):
        target = place.path.resolve()
    resolved = functools.cache(os.path.realpath)
    for each in inputs:
        if is_remote(str(each)) == local:  # one is a URL, the other is not
            continue
        name = os.fspath(each)
        head, tail = os.path.split(name)
        source: PurePath = PurePosixPath(name)
        # Most inputs are plain files of few directories. So a directory is resolved once, and a whole path only if its
        # last part is a link, or no name.
        if local and (Path(name).is_symlink() or tail in ("", ".", "..")):
            source = Path(name).resolve()
        elif local:
            source = Path(resolved(head), tail)
        if target == source:
            what = "the output is the input"
        elif source in target.parents:
            what = f"the output lies inside the input {each}"
        elif target in source.parents:
            what = f"the input {each} lies inside the output"
        else:
            continue
        raise UsageError("output-overlaps-input", what, remedy="choose an output elsewhere", where=str(place))


def _require_whole(place: Place) -> None:
    """Require all files of a finished output to be there with the sizes that they were written with."""
    files = list(listed_files(manifests.read(place)))
    try:
        place.require(files)
    except DataError as error:
        what = "listed, but not there as it was written"
        remedy = "copy it again, or give --overwrite=True to make all of it again"
        raise DataError("missing-shard", what, remedy=remedy, where=error.where) from None


def _not_resumed(place: Place, there: Found, state: State, by: Mark | Made | None, options: Writing) -> UsageError:
    """Return the error for work that a run can neither continue nor keep.

    Args:
        by: the command that made it, its key and arguments; None if they are unknown.
        options: of this run.
    """
    if by is None:
        what = "not empty, and not the output of an interrupted run"
        remedy = "give --overwrite=True, or give another output"
        if there.kind == "begun":
            what = "holds unfinished work whose marker is damaged"
        elif there.kind == "other":  # --overwrite would not remove it
            remedy = "choose another output, or move it away"
        return UsageError("nothing-to-resume", what, remedy=remedy, where=str(place))
    differ = changed(by.arguments, options)
    if by.command != state.command:
        what = f"written by packtool {by.command}, not by packtool {state.command}"
    elif not by.arguments:
        what = "begun with other options or inputs"
    elif differ:
        what = f"begun with other options: {', '.join(differ)}"
    else:
        what = "begun with these options, but a file that it reads has changed since, or packtool's version"
    remedy = "give the same ones, or give --overwrite=True to start again"
    return UsageError("resume-differs", what, remedy=remedy, where=str(place))


def _not_empty(place: Place, there: Found) -> UsageError:
    """Return the error for a place that is not empty, given neither --resume nor --overwrite."""
    if there.kind == "finished":
        what, remedy = f"holds a finished {manifests.kind_at(place)} already", "give --overwrite=True to replace it"
    elif there.kind == "begun":
        command = "command" if there.mark is None else f"packtool {there.mark.command}"
        what = f"holds the unfinished work of an interrupted {command}"
        remedy = "give --resume=True to go on, --overwrite=True to start again"
    elif _leftovers(there):
        what = "holds leftovers of unfinished work"
        remedy = "give --resume=True or --overwrite=True: both remove them, and begin"
    else:
        what = f"holds {min(there.names).partition('/')[0]} already"
        remedy = "choose another output, or move it away"
    return UsageError("output-not-empty", what, remedy=remedy, where=str(place))


def _leftovers(there: Found) -> bool:
    """Return whether nothing but leftovers of unfinished work lies at a place."""
    return there.kind == "other" and all(map(_is_work, there.names))


def _require_ours(place: Place, there: Found) -> None:
    """Refuse to remove anything but the files of a readable dataset, or of unfinished work of packtool."""
    known: set[str] = set()
    if there.kind == "finished":
        known = _listed_names(place)
    for name in sorted(there.names):
        ours = name in known or _is_work(name)
        if there.kind == "begun":  # nothing lists its files yet, so their names alone must tell
            ours = is_ours(name)
        if not ours:
            what, remedy = f"holds {name}, which packtool did not write", "move it away, or choose another output"
            raise UsageError("output-has-other-files", what, remedy=remedy, where=str(place))


def _listed_names(place: Place) -> set[str]:
    """Return the names of all files of a finished output."""
    try:
        return {entry.name for entry in listed_files(manifests.read(place))} | {manifests.RUN, manifests.MANIFEST}
    except PacktoolError as error:
        what = f"holds a manifest that does not tell which files are packtool's: {error.what}"
        remedy = "remove the directory yourself, or choose another output"
        raise UsageError("output-has-other-files", what, remedy=remedy, where=str(place)) from None


def _is_work(name: str) -> bool:
    """Return whether a file is a leftover of unfinished work, by its name: a scratch file, or one written in part."""
    return (name.startswith(f"{UNFINISHED}/") or name.endswith(PARTIAL)) and is_ours(name)


def _require_no_links(place: Place) -> None:
    """Refuse an output with symbolic links to directories, or with any link at all as or in `unfinished`.

    packtool makes no links, and would write or remove files through them, outside of the output. Elsewhere a link to a
    file does no harm: the link is replaced or removed, and the file that it leads to stays.
    """
    if not isinstance(place, LocalPlace):
        return
    path = place.path
    for directory, folders, files in os.walk(path):
        for name in (*folders, *files):
            file = Path(directory, name)
            relative = file.relative_to(path)
            if file.is_symlink() and (relative.parts[0] == UNFINISHED or file.is_dir()):
                what = f"holds the symbolic link {relative}, which packtool did not make"
                raise DataError("link-in-output", what, remedy="remove it, or choose another output", where=str(path))


@contextmanager
def _writable(place: Place) -> Iterator[None]:
    """Report a directory that can't be written to in one clear error, `output-not-writable`."""
    try:
        yield
    except OSError as error:
        what = f"can't be written ({error.strerror})"
        if isinstance(place, LocalPlace):
            for path in (place.path, *place.path.parents):
                if path.is_symlink() and not path.exists():
                    what = f"can't be written: {path} is a link to {path.readlink()}, which is not there"
        raise DataError("output-not-writable", what, remedy="choose another", where=str(place)) from None
