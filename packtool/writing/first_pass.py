"""The first of two passes beyond memory: read units in stored order, and send every atom to its key's partition.

A partition holds the atoms whose keys have the same top bits, with their segments and tokens: small enough to be read
and sorted in memory by the second pass. Tasks share the work, as threads or on the workers of a cluster; each fills a
file of its own for every partition, so one that was interrupted begins anew.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import xxhash

from packtool.arrays import IN_MEMORY, Arrays
from packtool.engines import Worker
from packtool.plan import I64, Plan, offsets_of, ranges
from packtool.shuffling.atom import AtomShuffle, Keys
from packtool.storage.delivery import Delivery
from packtool.storage.names import SEGMENT
from packtool.storage.pieces import Pieces
from packtool.storage.schema import InputEntry
from packtool.storage.segment_table import to_table
from packtool.writing import scratch
from packtool.writing.input_check import InputCheck
from packtool.writing.memory import Budget
from packtool.writing.partitions import Outline, PartitionContents, Partitions, scratch_file
from packtool.writing.scratch import Atoms
from packtool.writing.sharing import sent
from packtool.writing.source import Source

_LAST = np.uint64(np.iinfo(np.uint64).max)
_MOST_TASKS, _TASK_BYTES = 16, 1 << 28
_BYTES_ON_CLUSTER = 1 << 26
_MOST_FILES = 1 << 18
"""What tasks leave for a cluster or in a store, all together; but there are as many as 64 of them."""


@dataclass(frozen=True)
class FirstPass:
    """A task of the first pass, in whatever process.

    Attributes:
        source: of the units.
        keys: of the movable atoms.
        directory: of the files; doing a task again gives the same ones.
        delivery: of them.
        ranges: first and last atom of each task.
        bits: of a key that name its partition.
        block_units: units to read at a time.
    """

    source: Source
    keys: Keys
    directory: Path
    delivery: Delivery
    ranges: list[tuple[int, int]]
    bits: int
    block_units: int

    def __call__(self, number: int, worker: Worker) -> PartitionContents:
        """Fill the files of one task; the bytes of tokens that it moves are reported."""
        with self.delivery.attempt(self.directory, f"task-{number:02d}.") as attempt:
            return self._fill(number, attempt, worker)

    def _fill(self, number: int, attempt: Path, worker: Worker) -> PartitionContents:
        counts = np.zeros((1 << self.bits, 3), np.int64)
        paths = [scratch_file(attempt, partition, number) for partition in range(len(counts))]
        hashes = [xxhash.xxh3_128() for _ in counts]
        for first, last in _blocks(self.source.plan, *self.ranges[number], self.block_units):
            for partition, atoms in _scatter(self.source, self.keys, first, last, self.bits):
                scratch.append(paths[partition], atoms, hashes[partition])
                counts[partition] += atoms.counts
            worker.advance(self.bytes(first, last))
            self.source.release()
        digests, by_kind = [each.hexdigest() for each in hashes], counts.T.tolist()
        filled = np.flatnonzero(counts[:, 0]).tolist()
        entries = [InputEntry(paths[each].name, paths[each].stat().st_size, digests[each]) for each in filled]
        self.delivery.deliver(attempt, entries, self.directory, durable=False)
        return PartitionContents(by_kind[0], by_kind[1], by_kind[2], digests)

    def bytes(self, first: int, last: int) -> int:
        """Count the bytes of the tokens of these atoms."""
        units = _first_unit(self.source.plan, last) - _first_unit(self.source.plan, first)
        return int(units) * self.source.unit_bytes


def partition(
    source: Source,
    shuffle: AtomShuffle,
    directory: Path,
    pieces: Callable[[str], Pieces[PartitionContents]],
    *,
    arrays: Arrays = IN_MEMORY,
    budget: Budget,
    progress: Callable[[int], object],
    input_check: InputCheck,
    delivery: Delivery,
) -> Partitions:
    """Do the first pass. Tasks that an interrupted run finished are not done again.

    Args:
        shuffle: whose keys name the partitions.
        directory: for scratch files; needs as much space as the tokens.
        pieces: those of a name, which tells how many partitions and tasks there are.
        arrays: makes those that are as long as the order.
        progress: told how many bytes of tokens were moved.
        input_check: whether the input is sound: until that is known, no task counts as finished.
        delivery: of the files.
    """
    plan, bits = source.plan, budget.partition_bits(source)
    if budget.engine.shares_memory and not delivery.sends:
        most, each = _MOST_TASKS, _TASK_BYTES
    else:
        most, each = max(64, _MOST_FILES >> bits), _BYTES_ON_CLUSTER
    tasks = _split(plan, max(1, min(most, plan.units * source.unit_bytes // each)))
    directory = (directory / f"partitions-{bits}-{len(tasks)}").absolute()
    kept = pieces(directory.name)
    if not delivery.sends and not directory.exists():  # removed, since its rows were written, but not recorded
        for number in kept.numbers():
            kept.forget(number)
    directory.mkdir(parents=True, exist_ok=True)
    for left in directory.glob("task-*.*/"):
        shutil.rmtree(left, ignore_errors=True)
    keys = shuffle.keys(arrays)
    first_pass = FirstPass(source, keys, directory, delivery, tasks, bits, budget.block_units(source))
    done = kept.recorded(range(len(tasks)))  # whether files changed since is found where they are read
    for number in done:
        progress(first_pass.bytes(*tasks[number]))
    with sent(first_pass, budget.engine, directory.parent) as (function, shared):
        done |= kept.run(
            function,
            {number: number for number in range(len(tasks))},
            budget.engine,
            done=done,
            keep=input_check.keep,
            on_advance=progress,
            shared=shared,
        )
    contents_of = [done[number] for number in range(len(tasks))]
    known = source.segments is not None
    return Partitions(directory, Outline(plan), source.dtype, source.pad_id, known, contents_of, delivery)


def _first_unit(plan: Plan, atom: int | I64) -> Any:
    """Return the first unit of an atom."""
    if plan.atom_offsets is not None:
        return plan.atom_offsets[atom]
    return np.minimum(np.multiply(atom, plan.atom_units), plan.units)


def _split(plan: Plan, count: int) -> list[tuple[int, int]]:
    """Split atoms into ranges of about the same number of units."""
    goals = plan.units * np.arange(1, count) // count
    cuts = goals // plan.atom_units if plan.atom_offsets is None else np.searchsorted(plan.atom_offsets, goals)
    return list(pairwise([0, *cuts.tolist(), plan.atoms]))


def _blocks(plan: Plan, first: int, last: int, units: int) -> Iterator[tuple[int, int]]:
    """Split atoms into ranges of at most this many units, or of one atom."""
    while first < last:
        if plan.atom_offsets is None:
            end = first + units // plan.atom_units
        else:
            end = int(np.searchsorted(plan.atom_offsets, plan.atom_offsets[first] + units, side="right")) - 1
        end = min(max(end, first + 1), last)
        yield first, end
        first = end


def _scatter(source: Source, keys: Keys, first: int, last: int, bits: int) -> Iterator[tuple[int, Atoms]]:
    """Divide atoms ``first:last`` among partitions; return the share of each."""
    plan = source.plan
    drawn = keys(first, min(last, plan.movable_atoms) - first)
    if last > plan.movable_atoms:
        drawn = np.append(drawn, _LAST)  # the last atom stays: ties go by index
    partition = (drawn >> np.uint64(64 - bits)).astype(np.uint32)
    order = np.argsort(partition, kind="stable")
    offsets = offsets_of(np.bincount(partition, minlength=1 << bits))

    bounds = np.asarray(_first_unit(plan, np.arange(first, last + 1)), np.int64)
    begin, atom_units = bounds[:-1][order] - bounds[0], np.diff(bounds)[order]
    unit_offsets = offsets_of(atom_units)
    unit = ranges(begin, atom_units, unit_offsets)
    segments, tokens = source.scan(int(bounds[0]), int(bounds[-1]))
    tokens = np.take(tokens, unit, axis=0)
    if segments is None:
        unit_segments, table = np.zeros(len(unit), np.int64), np.empty(0, SEGMENT)
    else:
        unit_segments = np.diff(segments.offsets)[unit]
        chosen = ranges(segments.offsets[unit], unit_segments, offsets_of(unit_segments))
        table = np.take(to_table(segments), chosen)
    segment_offsets = offsets_of(unit_segments)
    for number in np.flatnonzero(np.diff(offsets)).tolist():
        a, b = offsets[number : number + 2]
        u, v = unit_offsets[[a, b]]
        s, t = segment_offsets[[u, v]]
        yield (
            number,
            Atoms(
                keys=drawn[order[a:b]],
                units=atom_units[a:b].astype(np.uint32),
                unit_segments=unit_segments[u:v].astype(np.uint32),
                segments=table[s:t],
                tokens=tokens[u:v],
            ),
        )
