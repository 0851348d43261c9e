"""Claim the place of an output: mark it, then look again, and protect what another run has finished.

There may be nothing; a dataset, finished by the same command with the same key or by another; unfinished work; files
that packtool did not write. On a disk a lock keeps others out. In an object store the marker does: of several runs that
begin at the same time one creates it, and a late one finds the manifest of a faster one when it looks again.
"""

from __future__ import annotations

import functools
import os
import shutil
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePath, PurePosixPath
from typing import Any

import msgspec
import xxhash

from packtool.errors import DataError, PacktoolError, UsageError
from packtool.formats import manifest as manifests
from packtool.formats.names import LOCK, MARKER, SCRATCH, UNFINISHED, is_begun, is_ours
from packtool.formats.schema import InputEntry, listed
from packtool.options.arguments import plain_arguments
from packtool.options.shared import Writing
from packtool.outputs import lock
from packtool.outputs.delivery import taken
from packtool.outputs.output import Begun, Finished, Output, State, begun
from packtool.places.local import PARTIAL, LocalPlace
from packtool.places.place import Place
from packtool.places.typed import cache_directory
from packtool.places.url import is_remote


@dataclass(frozen=True)
class Found:
    """The contents at the place of an output.

    Attributes:
        names: every file there, with its bytes; empty where a run was killed before it had marked the place.
        manifest: the digest of the manifest there; "" where there is none.
        finished: who wrote the dataset there; None where there is none, or that is unknown.
        marker: its contents; None where there is none.
    """

    names: dict[str, int]
    manifest: str = ""
    finished: State | None = None
    marker: bytes | None = None

    @property
    def unfinished(self) -> Begun | None:
        """Who is writing a dataset there, or was; None where there is no marker, or it is damaged."""
        return None if self.marker is None else begun(self.marker)

    @property
    def state(self) -> State | None:
        """The command that worked there last, as far as it is known."""
        return self.unfinished or self.finished


def look(place: Place) -> Found:
    """Look at the place of an output, without touching it."""
    names = place.names()
    if not any(map(is_begun, names)):
        return Found({})

    marker: bytes | None = None
    if MARKER in names:
        try:
            marker = place.read(MARKER)
        except FileNotFoundError:  # removed in the meantime
            marker = None
        except OSError:
            marker = b""  # of no run
    if manifests.MANIFEST not in names:
        return _without_manifest(place, names, marker)
    try:
        raw = place.read(manifests.MANIFEST)
        if marker is not None:
            manifests.unsealed(raw)
    except (FileNotFoundError, ValueError):  # or changed on its way, from a run that was killed before it looked
        return Found(names, marker=marker)
    try:
        finished = manifests.decode(place.read(manifests.RUN), Finished)
    except (OSError, ValueError, PacktoolError):
        finished = None
    digest = xxhash.xxh3_128_hexdigest(raw)
    late = finished is not None and finished.manifest not in ("", digest)
    if marker is not None and (late or manifests.RUN not in names):
        return Found(names, marker=marker)  # it arrived late, from a run whose files were overwritten
    return Found(names, digest, None if late else finished, marker)


def _without_manifest(place: Place, names: dict[str, int], marker: bytes | None) -> Found:
    """Look at a place that is no dataset: a finished order, whose `run.json` stands for a manifest, or unfinished work.

    Beside a marker even the `run.json` of an order may be of the run before. So an order that was finished but for
    its marker is made again, which takes less time than telling the two apart.
    """
    if marker is not None or manifests.order_at(place) is None:
        return Found(names, marker=marker)
    raw = place.read(manifests.RUN)
    return Found(names, xxhash.xxh3_128_hexdigest(raw), manifests.decode(raw, Finished))


def _listed(place: Place) -> list[InputEntry]:
    """List the files of a finished output but the one that lists them: its manifest, or the `run.json` of an order."""
    order = manifests.order_at(place)
    return list(listed(manifests.read(place))) if order is None else order.files


def lies_at(place: Place, command: str, key: str) -> str:
    """Classify the contents of a place, without touching it.

    Returns:
        ``nothing``; ``finished`` or ``unfinished`` work of this command with this key; ``other``: anything else.
    """
    try:
        contents, state = look(place), State(command, key)
        if state.same(contents.finished):
            place.require(_listed(place))
            return "finished"
    except (OSError, PacktoolError):
        return "other"
    if state.same(contents.unfinished):
        return "unfinished"
    return "other" if contents.names else "nothing"


def key_of(*parts: Any) -> str:
    """Hash options and inputs, which msgspec can write as JSON, into the key for `claim`."""
    return xxhash.xxh3_128_hexdigest(msgspec.json.encode(parts, order="deterministic"))


def claim(place: Place, command: str, options: Writing, *, key: str, inputs: Iterable[Path | str] = ()) -> Output:
    """Make sure that `command` alone may write to a place, and create it.

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
            or finished with another key; other files than packtool's.
        DataError: not a directory, or it can't be created; another run writes there.
    """
    require_apart(place, options, inputs)
    output = _output(place, State(command, key), options)
    contents = _settled(output, options)
    if output.finished and not any(name.startswith(f"{UNFINISHED}/") for name in contents.names):
        return output  # nothing is left to do, and no lock is needed
    try:
        with _writable(place):
            output.lock = lock.take(output.work, command, str(place))
            if isinstance(place, LocalPlace):
                contents = _settled(output, options)  # now that no other run changes it
            if not output.finished:
                _begin(output, options, contents)
            elif isinstance(place, LocalPlace) or contents.marker is None or output.state.same(contents.unfinished):
                output.leave()  # what a killed run had left to remove
            else:
                output.release()  # there is no lock, and the marker is another run's
    except BaseException:
        output.release()
        raise
    return output


def _output(place: Place, state: State, options: Writing) -> Output:
    """Set up an output; one in a store has its lock and scratch files in the staging directory."""
    if isinstance(place, LocalPlace):
        return Output(place, place.path / UNFINISHED, place.path / SCRATCH, state)
    staging = cache_directory() if options.staging is None else Path(options.staging).absolute()
    work = staging / "outputs" / xxhash.xxh3_64_hexdigest(f"{place} ".encode())
    return Output(place, work, work / state.key, state)


def _settled(output: Output, options: Writing) -> Found:
    """Look at an output; settle whether this run resumes an earlier one, and whether that had finished.

    Raises:
        UsageError: it may not write there.
        DataError: it can't; a file of the finished dataset is gone.
    """
    place = output.place
    if isinstance(place, LocalPlace):
        if place.path.exists() and not place.path.is_dir():
            raise DataError("not-a-directory", "not a directory", remedy="choose another output", where=str(place))
        _require_no_links(place.path)
    contents = look(place)
    output.resumed = bool(contents.names) and options.resume
    output.finished = output.resumed and _had_finished(place, contents, output.state)
    if contents.names and not options.resume:
        if not options.overwrite:
            raise _not_empty(place, contents)
        _require_ours(place, contents)
    return contents


def _begin(output: Output, options: Writing, contents: Found) -> None:
    """Mark the output, then look again; remove what is to be replaced, the manifest first."""
    place, state = output.place, output.state
    replaces = contents.manifest if options.overwrite else ""
    if output.resumed and contents.unfinished is not None:
        replaces = contents.unfinished.replaces
    arguments = plain_arguments(options)
    output.mark = manifests.sealed(Begun(state.command, state.key, arguments, uuid.uuid4().hex, replaces))
    if not place.create(MARKER, output.mark, replaces=contents.marker):
        raise taken(place)
    now = look(place)
    if output.resumed and state.same(now.finished):  # the manifest of the killed run was still on its way
        output.finished = True
        output.leave()
        return
    if now.manifest not in ("", replaces):
        place.remove([MARKER])
        raise taken(place)
    if now.manifest:
        place.remove([manifests.MANIFEST])
    if not output.resumed or now.manifest:
        place.remove(name for name in now.names if is_ours(name) and name not in (MARKER, f"{UNFINISHED}/{LOCK}"))
    if not output.resumed:
        shutil.rmtree(output.scratch, ignore_errors=True)
    output.scratch.mkdir(parents=True, exist_ok=True)
    for left in output.scratch.glob("*.*/"):
        shutil.rmtree(left)  # attempts of a run that was killed
    for left in [] if isinstance(place, LocalPlace) else output.work.glob("*/"):
        if left != output.scratch:
            shutil.rmtree(left)  # scratch files of work with other options


def require_apart(place: Place, options: Writing, inputs: Iterable[Path | str]) -> None:
    """Require that an output lies apart from its inputs, whatever is there.

    Raises:
        UsageError: it does not; both `overwrite` and `resume`.
    """
    if options.overwrite and options.resume:
        raise UsageError("overwrite-and-resume", "--overwrite and --resume exclude each other", remedy="give one")
    _refuse_overlap(place, inputs)


def _refuse_overlap(place: Place, inputs: Iterable[Path | str]) -> None:
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
        if local:  # most inputs are plain files of few directories, which are resolved once
            whole = Path(name).is_symlink() or tail in ("", ".", "..")
            source = Path(name).resolve() if whole else Path(folder(head), tail)
        if target == source or source in target.parents:
            what = "the output is the input" if target == source else f"the output lies inside the input {each}"
        elif target in source.parents:
            what = f"the input {each} lies inside the output"
        else:
            continue
        raise UsageError("output-overlaps-input", what, remedy="choose an output elsewhere", where=str(place))


def _had_finished(place: Place, contents: Found, state: State) -> bool:
    """Return whether earlier work with this state is finished; refuse all other work."""
    if state.same(contents.finished):
        try:
            place.require(_listed(place))
        except DataError as error:
            what = "listed, but not there as it was written"
            remedy = "copy it again, or give --overwrite to make all of it again"
            raise DataError("missing-shard", what, remedy=remedy, where=error.where) from None
        return True
    work = contents.unfinished
    if work is not None and state.same(work) and contents.manifest in ("", work.replaces):
        return False
    found: State | None = contents.finished if contents.manifest else work
    if found is None:
        if set(contents.names) == {MARKER}:
            return False  # the marker is damaged, but nothing was made yet
        what = "not empty, and not the output of an interrupted run"
        if MARKER in contents.names:
            what = "holds unfinished work whose marker is damaged"
        remedy = "give --overwrite, or give another output"
        raise UsageError("nothing-to-resume", what, remedy=remedy, where=str(place))
    what = "begun with other options or inputs"
    if found.command != state.command:
        what = f"written by packtool {found.command}, not by packtool {state.command}"
    remedy = "give the same ones, or give --overwrite to start again"
    raise UsageError("resume-differs", what, remedy=remedy, where=str(place))


def _not_empty(place: Place, contents: Found) -> UsageError:
    if contents.manifest:
        what, remedy = f"holds a finished {manifests.kind_at(place)} already", "give --overwrite to replace it"
    elif MARKER in contents.names:
        command = "command" if contents.unfinished is None else f"packtool {contents.unfinished.command}"
        what = f"holds the unfinished work of an interrupted {command}"
        remedy = "give --resume to go on, --overwrite to start again"
    else:
        what = f"holds {min(contents.names).partition('/')[0]} already"
        remedy = "choose another output, or move it away"
    return UsageError("output-not-empty", what, remedy=remedy, where=str(place))


def _require_ours(place: Place, contents: Found) -> None:
    """Refuse to remove anything but one readable dataset, and what packtool made of an unfinished one.

    Raises:
        UsageError: naming a file that packtool did not write, as far as that can be told.
    """
    ours = is_ours if MARKER in contents.names else _is_work
    if contents.manifest:
        try:
            known = {each.name for each in _listed(place)} | {manifests.RUN, manifests.MANIFEST}
        except PacktoolError as error:
            what = f"holds a manifest that does not tell which files are packtool's: {error.what}"
            remedy = "remove the directory yourself, or choose another output"
            raise UsageError("output-has-other-files", what, remedy=remedy, where=str(place)) from None

        def ours(name: str) -> bool:
            return name in known or _is_work(name)

    for name in sorted(contents.names):
        if not ours(name):
            what, remedy = f"holds {name}, which packtool did not write", "move it away, or choose another output"
            raise UsageError("output-has-other-files", what, remedy=remedy, where=str(place))


def _is_work(name: str) -> bool:
    return (name.startswith(f"{UNFINISHED}/") or name.endswith(PARTIAL)) and is_ours(name)


def _require_no_links(path: Path) -> None:
    """Refuse an output with links to directories or in `unfinished`, which packtool never makes: it would write through
    them."""
    for directory, folders, files in os.walk(path):
        for name in (*folders, *files):
            file = Path(directory, name)
            relative = file.relative_to(path).as_posix()
            if file.is_symlink() and (relative.startswith(UNFINISHED) or file.is_dir()):
                what = f"holds the symbolic link {relative}, which packtool did not make"
                raise DataError("link-in-output", what, remedy="remove it, or choose another output", where=str(path))


@contextmanager
def _writable(place: Place) -> Iterator[None]:
    """Report a directory that can't be written to in one clear error, `output-not-writable`."""
    try:
        yield
    except OSError as error:
        what = f"can't be written ({error.strerror})"
        raise DataError("output-not-writable", what, remedy="choose another", where=str(place)) from None
