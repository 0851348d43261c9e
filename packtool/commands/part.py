"""One of several tasks that share a command's work: its share, and what it did."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from packtool.engines import Engine, Share, engine_for
from packtool.engines.engine import MERGE, parse_share, tasks_of
from packtool.errors import DataError, UsageError
from packtool.options.shared import MovingRows
from packtool.options.shuffle import ShuffleArguments
from packtool.options.tokenize import TokenizeArguments
from packtool.sizes import plural
from packtool.temporary import discard_runs


@dataclass(frozen=True)
class Part:
    """The work that one task did.

    Attributes:
        task: which it is, such as ``3/8``.
        pieces: blocks or shards that are its share, all of them done.
        of: how many there are in all.
    """

    task: str
    pieces: int
    of: int

    def __str__(self) -> str:
        return f"task {self.task}, {self.pieces:,} of {plural(self.of, 'piece')}"


def engine_of(options: TokenizeArguments | MovingRows, command: str) -> Engine:
    """Return the engine that does a command's work, or the share of it that `--task` names.

    Raises:
        UsageError: the share makes no sense; Dask is not installed.
    """
    share = _share_of(options)
    return engine_for(options.scheduler, options.workers, command, share, at_end=discard_runs)


def _share_of(options: TokenizeArguments | MovingRows) -> Share | None:
    """Return the share that `--task` names; None for all of the work.

    Raises:
        UsageError: it is not one, or it does not fit the other options.
    """
    if options.task is None:
        return None
    share = parse_share(options.task)
    if options.scheduler is not None:
        remedy = "give one of them: a scheduler shares the work out by itself"
        raise UsageError("bad-option", "can't be combined with --scheduler", remedy=remedy, where="--task")
    if isinstance(options, ShuffleArguments) and options.order_only:
        remedy = "leave it out: an order is written by one process"
        raise UsageError("bad-option", "has no effect on --order-only", remedy=remedy, where="--task")
    return share


def require_all(where: str, missing: Sequence[int], pieces: int, tasks: int) -> None:
    """Refuse to merge while pieces are missing.

    Args:
        where: the output, as users call it.
        missing: numbers of the pieces that are not there as they were written.
        pieces: how many there are in all.
        tasks: how many share them.

    Raises:
        DataError: naming the tasks that have to be run again.
    """
    if not missing:
        return
    again = tasks_of(missing, tasks)
    named = [f"{number}/{tasks}" for number in again]
    shown = ", ".join(named[:8]) + f" and {len(named) - 8} more" * (len(named) > 8)
    what = f"{len(missing):,} of {plural(pieces, 'piece')} are missing or not as they were written"
    remedy = f"run {'task' if len(named) == 1 else 'tasks'} {shown} again (--array={ranges(again)}), then {MERGE}"
    raise DataError("task-missing", what, remedy=remedy, where=where)


def ranges(numbers: Sequence[int]) -> str:
    """Write ascending numbers as Slurm takes them.

    >>> ranges([1, 2, 3, 7, 9, 10])
    '1-3,7,9-10'
    """
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)
