"""`merge`: assemble one dataset from the work of several tasks. It repeats their call, and finds every piece done."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from packtool.commands.dataset_job import DatasetResult
from packtool.commands.materialize import materialize
from packtool.commands.pack import pack
from packtool.commands.shuffle import shuffle
from packtool.commands.tokenize import TokenizeResult, tokenize
from packtool.engines.engine import MERGE
from packtool.errors import DataError, UsageError
from packtool.options.run import MergeArguments
from packtool.options.signature import takes
from packtool.places.local import LocalPlace
from packtool.report.packed import read_report
from packtool.storage import lock
from packtool.storage import manifest as manifests
from packtool.storage.claim import look
from packtool.storage.names import UNFINISHED
from packtool.storage.schema import PackedManifest, StoreManifest

_COMMANDS: dict[str, Callable[..., TokenizeResult | DatasetResult]] = {
    "tokenize": tokenize,
    "pack": pack,
    "shuffle": shuffle,
    "materialize": materialize,
}


@takes(MergeArguments)
def merge(options: MergeArguments) -> TokenizeResult | DatasetResult:
    """Assemble the work that the tasks of a command did with `task`. Merging again does no harm.

    Raises:
        UsageError: nothing there was begun by tasks; options or inputs have changed since.
        DataError: pieces are missing; naming the tasks to be run again.
    """
    output = Path(options.output)
    begun = look(LocalPlace(output)).unfinished
    if begun is not None and begun.tasks and begun.command in _COMMANDS:
        more = {"task": MERGE, "workers": options.workers, "quiet": options.quiet}
        return _COMMANDS[begun.command](**begun.arguments, output=output, **more)
    if not output.exists():
        raise DataError("missing-input", "no such directory", remedy="check the path", where=str(output))
    if begun is None and (output / manifests.MANIFEST).exists() and (kept := _finished(output)) is not None:
        _tidy(output)
        return kept
    what = "not begun by tasks" if begun is None else f"begun by packtool {begun.command} without --task"
    remedy = "give it the output of tasks" if begun is None else "go on with --resume"
    raise UsageError("nothing-to-merge", what, remedy=remedy, where=str(output))


def _tidy(output: Path) -> None:
    """Remove the lock of a merge that was killed when all was done but that."""
    work = output / UNFINISHED
    if work.exists():
        lock.take(work, "merge").release()
        with suppress(OSError):
            work.rmdir()  # if there is nothing in it


def _finished(output: Path) -> TokenizeResult | DatasetResult | None:
    """Return the result of an earlier merge; None if something else is there."""
    manifest, run = manifests.read(output), manifests.read_run(output)
    if isinstance(manifest, StoreManifest):
        return TokenizeResult(path=output, counts=manifest.counts, run=run, kept=True)
    if isinstance(manifest, PackedManifest):
        return DatasetResult(path=output, report=read_report(output, manifest), run=run, kept=True)
    return None
