"""An output that is being written, the same way in every place: a directory, or a prefix of an object store.

    unfinished/state.json     the marker: which command works here, and the key of its options and inputs
    tokens-00000.npy, …       files under their final names, each whole or not there
    unfinished/pieces/…       records of the pieces that are done (`pieces.py`)
    manifest.json             last, unless another is there: from now on this is a dataset
                              then `unfinished` goes, the marker last

A place with a manifest is a dataset; one with a marker is unfinished work, which a run with the same key continues.
`claim.py` decides who may write to a place, and what a run continues.
"""

from __future__ import annotations

import errno
import shutil
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np
import xxhash

from packtool.engines import Engine
from packtool.errors import DataError, PacktoolError, UsageError
from packtool.formats import manifest as manifests
from packtool.formats.files import write_array
from packtool.formats.names import LOCK, MARKER, SCRATCH, UNFINISHED, is_ours
from packtool.formats.schema import Manifest, OtherFile, listed_files
from packtool.outputs.delivery import Delivery, require_mark, taken
from packtool.outputs.lock import Lock
from packtool.places.local import PARTIAL, LocalPlace
from packtool.places.npy import FileEntry
from packtool.places.place import Place
from packtool.support.decoding import from_json
from packtool.support.temporary import own_directory


class State(msgspec.Struct, frozen=True):
    """Which command works at an output, or has finished there, and the key of its options and inputs.

    `Mark` is a state in a marker, of work that was begun; `Made` one in `run.json`, of a finished output.
    """

    command: str
    key: str

    def same(self, other: State | None) -> bool:
        """Return whether another has this command and key."""
        return other is not None and (self.command, self.key) == (other.command, other.key)


class Mark(State, frozen=True):
    """The contents of the marker."""

    arguments: dict[str, Any]  # the arguments of the command: `info` shows with them how to go on
    run: str  # identifies this run
    replaces: str  # the digest of the manifest that `--overwrite` lets it remove; "" for none


class Made(State, frozen=True):
    """The contents of `run.json` that tell who finished."""

    manifest: str  # xxh3-128 of the manifest
    arguments: dict[str, Any]  # the arguments of the command, as in the marker


def read_mark(marker: bytes) -> Mark | None:
    """Decode a marker; return None if it is damaged."""
    try:
        return from_json(manifests.unsealed(marker), Mark)
    except ValueError:
        return None


class Action(Enum):
    """What a run does at its output: see the table of `claim.decide`."""

    LOOK = "look at it, for a dry run"
    BEGIN = "begin in an empty place"
    GO_ON = "go on with what an earlier run with the same key left"
    REPLACE = "remove what is there, and begin"
    KEEP = "leave what an earlier run with the same key has finished"


Occupancy = Literal["nothing", "unfinished", "finished", "other"]
"""What lies at an output: nothing, unfinished or finished work with the same command and key, or anything else."""


@dataclass
class Output:
    """An output that no other run writes to, until the end of its block."""

    place: Place  # where the dataset will lie, and where its unfinished files lie
    work: Path  # directory of this machine for the lock and scratch files: `unfinished` in a local place
    scratch: Path  # directory in `work` for files that are not finished
    state: State  # command and key of this run
    action: Action = Action.BEGIN  # what this run does here
    mark: bytes = b""  # the contents of the marker of this run
    lock: Lock | None = None  # held while this run works; None if there is nothing to do
    preview: Occupancy | None = None  # what a dry run finds here; None for a real run
    replaced: Sequence[str] = ()  # files of the dataset that was here; they go before the first file is written
    begun: bool = False  # whether a file was written, or was about to be

    @property
    def finished(self) -> bool:
        """Whether an earlier run with the same key finished here, so that nothing is left to do."""
        return self.action is Action.KEEP

    def remove_replaced(self) -> None:
        """Remove the dataset that this run replaces, its manifest first. Removing what is not there is no error."""
        if self.replaced:
            self.place.remove([manifests.MANIFEST])
            self.place.remove(self.replaced)
            self.replaced = ()

    def _begin(self) -> None:
        """Make room for the first file. Until then an error leaves what was there."""
        self.remove_replaced()
        self.begun = True

    def delivery(self, engine: Engine) -> Delivery:
        """Return how the workers of an engine deliver the files of the dataset, whose first is about to be written."""
        self._begin()
        if isinstance(self.place, LocalPlace):  # its lock keeps others out, so no marker is compared
            return Delivery(self.place, self.scratch.absolute(), self.place)
        if engine.shares_directories:
            return Delivery(self.place, self.scratch.absolute(), self.place, self.mark)
        return Delivery(self.place, None, self.place, self.mark)

    def passing(self, engine: Engine, *, far: bool) -> Delivery:
        """Return how the workers of an engine deliver files that other tasks read before the output is finished.

        Args:
            far: put the files in the object store of the output, if it lies in one, rather than on a disk of this
                machine.
        """
        delivery = self.delivery(engine)
        if delivery.sends and (far or not engine.shares_directories):
            return delivery.below(SCRATCH)
        return Delivery(LocalPlace(self.scratch), self.scratch.absolute(), self.place, durable=False)

    def array(self, name: str, array: np.ndarray[Any, Any]) -> FileEntry:
        """Write an array of the dataset, and return its entry for the manifest."""
        with own_directory(self.scratch, "file.") as attempt:
            entry = write_array(attempt / name, array)
            self.put(name, attempt / name, entry.xxh3_128)
        return entry

    def file(self, name: str, data: bytes) -> OtherFile:
        """Write a small file of the dataset, and return its entry for the manifest."""
        self._begin()
        self.place.write(name, data)
        return OtherFile(name, len(data), xxhash.xxh3_128_hexdigest(data))

    def put(self, name: str, file: Path, xxh3_128: str) -> None:
        """Move a finished file into the dataset."""
        self._begin()
        self.place.put(name, file, xxh3_128)

    def finish(self, manifest: Manifest, run: Mapping[str, Any] | None = None) -> None:
        """Turn the files that are there into a dataset.

        Args:
            manifest: is written last, unless a manifest is there already.
            run: facts that may differ between equal runs (timings, machine, workers), for `run.json`.

        Raises:
            DataError: a file is missing, or another run has taken the output over.
        """
        self._begin()
        # `run.json` comes first, with the digest of the manifest: whoever finds another manifest then knows that it
        # arrived late, from a run that had lost the place.
        digest = xxhash.xxh3_128_hexdigest(manifests.sealed(manifest))
        mark = read_mark(self.mark)
        made = Made(self.state.command, self.state.key, digest, {} if mark is None else mark.arguments)
        self.place.write(manifests.RUN, manifests.encode({**msgspec.structs.asdict(made), **(run or {})}))
        self._keep(manifest)
        if not manifests.write(self.place, manifest):  # another run has finished here since: its dataset stays
            raise taken(self.place)
        self.leave()

    def _keep(self, manifest: Manifest) -> None:
        """Require the files of a manifest, and the output to be still this run's; remove all but these files."""
        files = {each.name: each.bytes for each in listed_files(manifest)}
        there = self.place.names()
        for name, size in files.items():
            found = there.get(name)
            if found != size:
                what = f"has {found} bytes, not {size} as it was written"
                if found is None:
                    what = "is not there any more"
                remedy = "run the command again with --resume=True"
                raise DataError("missing-shard", what, remedy=remedy, where=self.place.where(name))
        require_mark(self.place, self.mark)
        # Leftovers of attempts that were given up go. So does a manifest that is here already: its run lost the place
        # to this one while it sent the manifest, and will notice when it looks for its marker afterwards.
        self._remove(there, keep={*files, manifests.RUN})

    def discard(self) -> None:
        """Remove everything: a resumed run could not use any of it."""
        require_mark(self.place, self.mark)
        self._remove(self.place.names())
        self.leave()

    def _remove(self, names: Mapping[str, int], keep: Collection[str] = ()) -> None:
        """Remove files of datasets, except `keep`. Files of unfinished work stay until `leave`."""
        gone = []
        for name in names:
            if name not in keep and is_ours(name) and not name.startswith(f"{UNFINISHED}/"):
                gone.append(name)
        self.place.remove(gone)

    def leave(self) -> None:
        """Remove the files of unfinished work, the marker last, and unlock the output.

        Raises:
            DataError: another run has taken the output over, so that the manifest is not to be relied on.
        """
        left = [name for name in self.place.names() if name.startswith(f"{UNFINISHED}/") or name.endswith(PARTIAL)]
        last = (MARKER, f"{UNFINISHED}/{LOCK}")  # the lock is removed as it is released
        self.place.remove(name for name in left if is_ours(name) and name not in last)
        shutil.rmtree(self.scratch, ignore_errors=True)
        # As long as there is a marker, a run that is killed here leaves work that --resume ends. By now the marker may
        # be another run's, which would lose the place if it were removed.
        if MARKER in left:
            require_mark(self.place, self.mark)
            self.place.remove([MARKER])
        self.release()

    def release(self) -> None:
        """Unlock the output for others. Releasing again does nothing."""
        if self.lock is None:
            return
        self.lock.release()
        self.lock = None
        directories = [self.scratch, self.work, self.work.parent]
        if not isinstance(self.place, LocalPlace):
            directories.append(self.work.parent.parent)
        for directory in directories:
            with suppress(OSError):
                directory.rmdir()  # which fails, as it should, if anything is left in it

    def __enter__(self) -> Output:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        """Unlock the output for others, however the block ends.

        After an error before the first file was written the place is as it was. What was begun for options that can't
        be obeyed goes: no run with others could go on with it.

        Raises:
            DataError: the disk is full: the system's error names neither the output nor a remedy. Or the object store
                failed: uploaded files stay, so its remedy becomes to run again with --resume=True.
        """
        unreachable = isinstance(error, DataError) and error.code in ("store-unreachable", "store-denied")
        if self.lock is not None and not unreachable:
            resumed = self.action is Action.GO_ON and not self.replaced
            if isinstance(error, PacktoolError) and not self.begun and not resumed:
                self.leave()
            elif isinstance(error, UsageError) and self.action is not Action.GO_ON:
                self.discard()
        self.release()
        if isinstance(error, DataError) and unreachable:
            again = ", then run the command again"
            remedy = f"{error.remedy.removesuffix(again)}{again} with --resume=True"
            raise DataError(error.code, error.what, remedy=remedy, where=error.where) from None
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            what = "disk quota exceeded"
            if error.errno == errno.ENOSPC:
                what = "no space left on the device"
            remedy = "free some space, then run the command again with --resume=True: what is finished is kept"
            raise DataError("disk-full", what, remedy=remedy, where=str(self.place)) from None
