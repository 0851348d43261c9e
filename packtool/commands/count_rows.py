"""Rows of a packed dataset, counted step by step, each step a task."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from packtool.commands.source_mix import rows_at_once
from packtool.engines import Engine, Worker
from packtool.metrics import Mixing, RowsMix, Tally, TallyCounts
from packtool.plan import Segments
from packtool.storage.packed import PackedBucket
from packtool.temporary import temporary_directory
from packtool.writing.function_files import save
from packtool.writing.layout import Layout

STEPS = 16
"""That a task counts."""


def count_rows(
    source: PackedBucket | Layout,
    tally: Tally,
    mixing: Mixing,
    advance: Callable[[int], object] = lambda rows: None,
    engine: Engine | None = None,
) -> None:
    """Add all rows to a tally and to how well they are mixed; both are new.

    Args:
        advance: told how many rows were counted.
        engine: counts; where it shares memory, this thread does.
    """
    step = rows_at_once(mixing.batch_size, tally.sequence_length)
    if engine is None or engine.shares_memory:
        for rows in _steps(source, 0, source.rows, step):
            tally.add(rows)
            mixing.add(rows)
            advance(rows.groups)
        return
    tasks = [_Rows(first, min(first + STEPS * step, source.rows)) for first in range(0, source.rows, STEPS * step)]
    with temporary_directory() as folder:
        task = save(_Count(source, tally, mixing, step), folder)
        found = dict(engine.run(task, tasks, shared=task.file, on_advance=advance))
    for number in range(len(tasks)):  # in order: sums of shares depend on it
        counts, parts = found.pop(number)
        tally += Tally.of(counts, tally.lengths, tally.sequence_length)
        for part in parts:
            mixing.include(part)


class _Rows(NamedTuple):
    """Rows ``first:last``."""

    first: int
    last: int


@dataclass(frozen=True)
class _Count:
    """Counts rows in whatever process; tally and mixing are empty ones."""

    source: PackedBucket | Layout
    tally: Tally
    mixing: Mixing
    step: int

    def __call__(self, rows: _Rows, worker: Worker) -> tuple[TallyCounts, list[RowsMix]]:
        tally, parts, first = Tally(self.tally.lengths, self.tally.sequence_length), [], rows.first
        for segments in _steps(self.source, rows.first, rows.last, self.step):
            tally.add(segments)
            parts.append(self.mixing.measure(segments, first))
            first += segments.groups
            worker.advance(segments.groups)
        return tally.counts(), parts


def _steps(source: PackedBucket | Layout, first: int, last: int, step: int) -> Iterator[Segments]:
    for begin in range(first, last, step):
        yield source.segments(begin, min(begin + step, last))
