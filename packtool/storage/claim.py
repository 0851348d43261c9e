"""Claim the place of an output: decide by what is there whether a run may write, and what it resumes.

Nothing may be there; a dataset, finished by the same command with the same key or by another; unfinished work of an
interrupted run; what packtool did not write. In a directory a lock keeps others out. An object store has none: who
begins first says so there, and whoever finds that another has begun since stops.
"""

from __future__ import annotations

import functools
import os
import re
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
from packtool.options.arguments import plain_arguments
from packtool.options.shared import Writing
from packtool.places.local import PARTIAL, LocalPlace, remove_tree
from packtool.places.place import Place
from packtool.places.store import StorePlace
from packtool.places.typed import Typed, cache_directory, place_of
from packtool.places.url import is_remote
from packtool.storage import lock
from packtool.storage import manifest as manifests
from packtool.storage.files import write_bytes
from packtool.storage.manifest import decode
from packtool.storage.names import UNFINISHED
from packtool.storage.output import Begun, Output, State
from packtool.storage.publish import (
    STAGED,
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
from packtool.storage.uploads import UploadedOutput, directory_for, tidy

_BEFORE_STATE = re.compile(rf"{UNFINISHED}/({lock.LOCK}|{STATE}(\.[0-9a-f]{{8}})?{re.escape(PARTIAL)})")
"""What a command may leave that was killed before it could write down its key."""


@dataclass(frozen=True)
class Found:
    """The contents at the place of an output.

    Attributes:
        names: of every file there, with its bytes; none where a command was killed before it wrote down its key.
        whole: there is a manifest.
        finished: who wrote the dataset there; None where there is none, or nobody knows.
        unfinished: who is writing one, or was.
    """

    names: dict[str, int]
    whole: bool
    finished: State | None
    unfinished: Begun | None

    @property
    def state(self) -> State | None:
        """The command that worked there last, as far as it is known."""
        return self.unfinished or self.finished


def look(place: Place) -> Found:
    """Look at the place of an output, without touching it."""
    names = place.names()
    if all(_BEFORE_STATE.fullmatch(name) for name in names):
        names = {}

    def read(name: str, kind: type[Any]) -> Any:
        try:
            return decode(place.read(name), kind)
        except (OSError, ValueError, PacktoolError):
            return None

    whole, begun = manifests.MANIFEST in names, f"{UNFINISHED}/{STATE}"
    finished = read(manifests.RUN, State) if whole else None
    return Found(names, whole, finished, read(begun, Begun) if begun in names else None)


def lies_at(place: Place, command: str, key: str) -> str:
    """Classify the contents of a place, without touching it.

    Returns:
        ``nothing``; ``finished`` or ``unfinished`` work of this command with this key; ``other``: anything else.
    """
    try:
        contents, state = look(place), State(command, key)
        if state.same(contents.finished):
            place.require(list(listed(manifests.read(place))))
            return "finished"
    except (OSError, PacktoolError):
        return "other"
    if state.same(contents.unfinished):
        return "unfinished"
    return "other" if contents.names else "nothing"


def key_of(*parts: Any) -> str:
    """Hash options and inputs, which msgspec can write as JSON, into the key for `claim`."""
    return xxhash.xxh3_128_hexdigest(msgspec.json.encode(parts, order="deterministic"))


def claim(
    place: Typed,
    command: str,
    options: Writing,
    *,
    key: str,
    inputs: Iterable[Path | str] = (),
) -> Output:
    """Make sure that `command` may write to a place, and nobody else does; create it.

    Args:
        place: of the output.
        command: name of the command.
        options: of the command. `overwrite` replaces the dataset that is there, once the new one is whole, and forgets
            what an unfinished run left; nothing else there is ever removed. `resume` goes on with what an earlier run
            with the same key left there; an empty output simply starts.
        key: `key_of` the options and inputs that the output depends on.
        inputs: files, directories and URLs that are read.

    Raises:
        UsageError: both `overwrite` and `resume`; output inside an input or the other way
            round; not empty; unfinished or finished with another key; other files than packtool's.
        DataError: not a directory, or it can't be created; another run writes there.
    """
    there = output_place(place, options, inputs)
    wanted = _Claim(there, State(command, key), options)
    if isinstance(there, LocalPlace):
        return wanted.in_directory(Output(there, there.path, wanted.state))
    assert isinstance(there, StorePlace)
    return wanted.in_store(there)


def output_place(typed: Typed, options: Writing, inputs: Iterable[Path | str]) -> Place:
    """Return the place of an output that is apart from its inputs, whatever lies there.

    Raises:
        UsageError: it is not; both `overwrite` and `resume`.
    """
    if not str(typed):
        raise UsageError("bad-option", "an empty name", remedy="give a directory", where="--output")
    if options.overwrite and options.resume:
        raise UsageError("overwrite-and-resume", "--overwrite and --resume exclude each other", remedy="give one")
    place = place_of(typed)
    _refuse_overlap(place, inputs)
    return place


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


@dataclass(frozen=True)
class _Claim:
    """What a run wants to write where, and how."""

    place: Place
    state: State
    options: Writing

    def begun(self, run: str = "") -> Begun:
        """Return what is written down once the output is claimed."""
        return Begun(self.state.command, self.state.key, plain_arguments(self.options), run)

    def decide(self, contents: Found) -> tuple[bool, bool]:
        """Return whether the run resumes an earlier one, and whether that had finished; refuse what it may not do."""
        if not contents.names:
            return False, False
        if self.options.resume:
            return True, self._had_finished(contents)
        if not self.options.overwrite:
            raise _not_empty(self.place, contents)
        if not isinstance(self.place, LocalPlace):
            for name in sorted(contents.names):
                if not is_ours(name):
                    raise other_files(name, self.place)
        elif not is_staged(self.place.path):
            require_removable(self.place.path)
        return False, False

    def _had_finished(self, contents: Found) -> bool:
        """Return whether earlier work with this state is finished; refuse all other work."""
        if self.state.same(contents.finished):
            try:
                self.place.require(list(listed(manifests.read(self.place))))
            except DataError as error:
                what = "named in the manifest, but not there as it was written"
                remedy = "copy it again, or give --overwrite to make all of it again"
                raise DataError("missing-shard", what, remedy=remedy, where=error.where) from None
            return True
        if self.state.same(contents.unfinished):
            return False
        if contents.state is None:
            what, remedy = (
                "not empty, and not the output of an interrupted run",
                "give --overwrite, or give another output",
            )
            raise UsageError("nothing-to-resume", what, remedy=remedy, where=str(self.place))
        what = "begun with other options or inputs"
        if contents.state.command != self.state.command:
            what = f"written by packtool {contents.state.command}, not by packtool {self.state.command}"
        remedy = "give the same ones, or give --overwrite to start again"
        raise UsageError("resume-differs", what, remedy=remedy, where=str(self.place))

    def in_store(self, place: StorePlace) -> Output:
        """Claim an output in an object store. A local directory holds files to upload, and scratch files."""
        options = self.options
        path = directory_for(str(place), cache_directory() if options.staging is None else Path(options.staging))
        contents = look(place)
        resumed, finished = self.decide(contents)
        if finished:
            tidy(place, manifests.read(place))
            remove_tree(path.parent)
            return Output(place, path, self.state, resumed=True, finished=True)
        work = [name for name in contents.names if name.startswith(f"{UNFINISHED}/")]
        replacing = contents.whole or (resumed and any(name.startswith(f"{UNFINISHED}/{STAGED}/") for name in work))
        there = contents.names if resumed else {}
        output = UploadedOutput(place, path, self.state, resumed, there=there, replacing=replacing, quiet=options.quiet)
        try:
            with _writable(output):
                output.lock = lock.take(output.work, self.state.command)
                if not resumed or not self.state.same(look(LocalPlace(path)).unfinished):
                    _empty(path)
                if not resumed:
                    place.remove(work)
                output.make()
                begun = manifests.encode(self.begun(run=uuid.uuid4().hex))
                output.take(begun, empty=not contents.names)
                write_bytes(output.work / STATE, begun)
            output.pull()
        except BaseException:
            output.release()
            raise
        return output

    def in_directory(self, output: Output) -> Output:
        """Claim an output directory."""
        self._look(output)  # before anything is written there
        if output.finished and not output.work.exists():
            return output  # nothing is left to do, and no lock is needed
        with _writable(output):
            output.lock = lock.take(output.work, self.state.command)
        try:
            self._go_on(output)
        except BaseException:
            output.release()
            raise
        return output

    def _look(self, output: Output) -> Found:
        """Look at the output; settle whether this run resumes it, and whether it had finished."""
        path = output.path
        if path.exists() and not path.is_dir():
            raise DataError("not-a-directory", "not a directory", remedy="choose another output", where=str(path))
        require_no_links(path)
        contents = look(self.place)
        output.resumed, output.finished = self.decide(contents)
        return contents

    def _go_on(self, output: Output) -> None:
        """Resume or start the output of a run that holds its lock alone."""
        path = output.path
        if is_staged(path) and (self.options.overwrite or self.options.resume):
            publish(path)  # an earlier run was killed between its last file and its manifest
            there = look(self.place)
            if there.finished is not None and there.finished.same(there.unfinished):
                remove_work(path)
        before = self._look(output).unfinished
        if output.finished:
            if before is None or self.state.same(before):
                remove_work(path)
            return
        if self.options.overwrite:
            remove_work(path)
        with _writable(output):
            output.make()
            write_bytes(output.work / STATE, manifests.encode(self.begun()))


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


def _empty(path: Path) -> None:
    """Remove the remains of an earlier run from a staging directory."""
    remove_work(path)
    for entry in path.iterdir():
        if entry.is_symlink() or not entry.is_dir():
            entry.unlink()
        elif entry.name != UNFINISHED:
            shutil.rmtree(entry)


@contextmanager
def _writable(output: Output) -> Iterator[None]:
    """Report a directory that can't be written to in one clear error, `output-not-writable`."""
    try:
        yield
    except OSError as error:
        what, where = f"can't be written ({error.strerror})", str(output.place)
        raise DataError("output-not-writable", what, remedy="choose another", where=where) from None
