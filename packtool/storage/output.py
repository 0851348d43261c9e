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
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from packtool.engines import Share
from packtool.errors import UsageError
from packtool.places.mirror import fetch_all
from packtool.places.staging import upload_of
from packtool.storage import manifest as manifests
from packtool.storage import remote
from packtool.storage.claim import claimed, uploaded
from packtool.storage.delivery import Delivery, Entry
from packtool.storage.files import write_bytes
from packtool.storage.lock import Lock
from packtool.storage.pieces import Done, Pieces, nothing
from packtool.storage.publish import SCRATCH, STAGED, UNFINISHED, remove_work
from packtool.storage.state import State, state_of

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
    if share is not None and overwrite:
        what = "can't be combined with --task, since every task would remove what the others did"
        raise UsageError("bad-option", what, remedy="remove the output first", where="--overwrite")
    _refuse_overlap(path, inputs)
    output = Output(path, path / UNFINISHED, path / UNFINISHED / STAGED, state, resumed=False, finished=False)
    if (upload := upload_of(path)) is not None:
        output = uploaded(output, upload, overwrite=overwrite, resume=resume)
    else:
        output = claimed(output, overwrite=overwrite, resume=resume, share=share, arguments=arguments or {})
    if output.lock is None:
        return output
    if (stack := _held.get()) is not None:
        stack.callback(output.release)
    try:
        if not output.finished:
            fetch_all(inputs)
    except BaseException:
        output.release()
        raise
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
