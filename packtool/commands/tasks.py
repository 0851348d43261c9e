"""Share a command's work among tasks: the engine of each, and what is missing when a merge finds it undone."""

from __future__ import annotations

from collections.abc import Sequence

from packtool.engines import Engine, engine_for
from packtool.engines.engine import MERGE, parse_share, tasks_of
from packtool.errors import DataError, UsageError
from packtool.options.shared import MovingRows
from packtool.options.tokenize import TokenizeArguments
from packtool.sizes import plural
from packtool.temporary import discard_runs


def engine_of(options: TokenizeArguments | MovingRows, command: str) -> Engine:
    """Return the engine that does a command's work, or the share of it that `--task` names.

    Raises:
        UsageError: the share makes no sense, or does not fit the other options; Dask is not installed.
    """
    share = None if options.task is None else parse_share(options.task)
    if share is not None and options.scheduler is not None:
        remedy = "give one of them: a scheduler shares the work out by itself"
        raise UsageError("bad-option", "can't be combined with --scheduler", remedy=remedy, where="--task")
    if share is not None and getattr(options, "order_only", False):
        remedy = "leave it out: an order is written by one process"
        raise UsageError("bad-option", "has no effect on --order-only", remedy=remedy, where="--task")
    return engine_for(options.scheduler, options.workers, command, share, at_end=discard_runs)


def require_all(where: str, missing: Sequence[int], pieces: int, tasks: int) -> None:
    """Refuse to merge while some pieces are missing, or not as they were written.

    Args:
        where: the output.
        missing: the numbers of these pieces, of `pieces` in all, which `tasks` share.

    Raises:
        DataError: naming the tasks that have to be run again.
    """
    if not missing:
        return
    again = tasks_of(missing, tasks)
    shown = ", ".join(f"{number}/{tasks}" for number in again[:8]) + f" and {len(again) - 8} more" * (len(again) > 8)
    what = f"{len(missing):,} of {plural(pieces, 'piece')} are missing or not as they were written"
    remedy = f"run {'task' if len(again) == 1 else 'tasks'} {shown} again (--array={_ranges(again)}), then {MERGE}"
    raise DataError("task-missing", what, remedy=remedy, where=where)


def _ranges(numbers: Sequence[int]) -> str:
    """Write ascending numbers as Slurm takes them.

    >>> _ranges([1, 2, 3, 7, 9, 10])
    '1-3,7,9-10'
    """
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)
