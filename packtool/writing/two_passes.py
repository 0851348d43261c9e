"""Shuffle what exceeds memory, in two passes over the disk.

The first pass reads units in stored order and sends every atom, with its segments and tokens, to the partition of its
key: a partition holds the atoms whose keys have the same top bits, so it is small enough to be sorted in memory. Tasks
share the work, as threads or on the workers of a cluster; each fills a file of its own for every partition, so one that
was interrupted begins again. The second pass reads and sorts one partition after the other and joins its units to rows.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import xxhash

from packtool.engines import RunOptions, Worker
from packtool.formats.names import SEGMENT
from packtool.formats.schema import InputEntry
from packtool.formats.segment_table import from_table, to_table
from packtool.outputs.delivery import Delivery
from packtool.outputs.pieces import Pieces
from packtool.places.local import LocalPlace
from packtool.places.place import Place
from packtool.planning.arrays import IN_MEMORY, Arrays
from packtool.planning.plan import I64, Ints, Plan, Segments, offsets_of, ranges
from packtool.planning.shuffling.atom import AtomKeys, AtomShuffle
from packtool.planning.shuffling.permutation import order_by
from packtool.rows.layout import unit_range
from packtool.rows.unit_source import Units, UnitSource
from packtool.writing import scratch
from packtool.writing.input_check import InputCheck
from packtool.writing.memory import Budget
from packtool.writing.planned_rows import PlannedRows, RowBatch, rows_of
from packtool.writing.scratch import Atoms, ScratchFile, empty_atoms

_LAST = np.uint64(np.iinfo(np.uint64).max)
_MOST_TASKS, _TASK_BYTES = 16, 1 << 28
_BYTES_ON_CLUSTER = 1 << 26
_MOST_FILES = 1 << 18
"""Files that tasks leave for a cluster or in a store, all together; but 64 tasks are always allowed."""


class PartitionContents(msgspec.Struct, frozen=True):
    """The atoms, units and segments that a task added to each partition, and the xxh3-128 of each file.

    The files are not flushed to the disk, since most of them are read and gone before the system would do so: their
    hashes tell whether they are still what was written when a run is resumed.
    """

    atoms: list[int]
    units: list[int]
    segments: list[int]
    xxh3_128: list[str]


class Outline(Plan):
    """The sizes of a plan whose segments lie with its atoms."""

    def __init__(self, plan: Plan) -> None:
        super().__init__(
            sequence_length=plan.sequence_length,
            unit=plan.unit,
            units=plan.units,
            atom_units=plan.atom_units,
            atom_offsets=plan.atom_offsets,
            last_atom_stays=plan.last_atom_stays,
        )

    def segments(self, units: Any) -> Any:
        raise NotImplementedError("the segments lie with the atoms")


@dataclass(frozen=True)
class Partitions:
    """All atoms of a plan on disk."""

    place: Place  # place of the files
    plan: Outline
    dtype: np.dtype[Any]  # type of the tokens
    pad_id: int  # id that fills the last row
    with_segments: bool  # segments are known
    tasks: list[PartitionContents]  # what each task put there

    def files(self, number: int) -> list[ScratchFile]:
        """List the files of a partition in stored order."""
        files = []
        for task, contents in enumerate(self.tasks):
            if contents.atoms[number]:
                files.append(ScratchFile(self.place, _file(number, task), contents.xxh3_128[number]))
        return files

    def remove(self, number: int) -> None:
        """Remove the files of a partition, which no row needs any more, from a disk; a store keeps them to the end."""
        if isinstance(self.place, LocalPlace):
            for task in range(len(self.tasks)):
                (self.place.path / _file(number, task)).unlink(missing_ok=True)


def _file(partition: int, task: int) -> str:
    """Name the file with the atoms of one partition that one task wrote."""
    return f"{partition:05d}-{task:02d}.atoms"


def partition(
    source: UnitSource,
    shuffle: AtomShuffle,
    directory: str,
    work: Path,
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
        shuffle: its keys name the partitions.
        directory: for scratch files, below where `delivery` puts them; needs as much space as the tokens.
        work: a directory that all workers see.
        pieces: function from a kind of pieces to `Pieces`; the kind has the number of partitions and tasks in it, so
            that pieces of another division are not taken for these.
        arrays: allocates the arrays that are as long as the order.
        progress: called with the bytes of tokens that were moved.
        input_check: until it has found the input sound, no task counts as finished.
    """
    plan, bits = source.plan, budget.partition_bits(source)
    if budget.engine.shares_memory and not delivery.sends:
        most, task_bytes = _MOST_TASKS, _TASK_BYTES
    else:
        most, task_bytes = max(64, _MOST_FILES >> bits), _BYTES_ON_CLUSTER
    tasks = _split(plan, max(1, min(most, plan.units * source.unit_bytes // task_bytes)))
    name = f"partitions-{bits}-{len(tasks)}"
    kept, delivery = pieces(name), delivery.below(f"{directory}/{name}")
    if isinstance(delivery.place, LocalPlace):
        if not delivery.place.path.exists():  # removed, since its rows were written, but not recorded
            for number in kept.numbers():
                kept.forget(number)
        delivery.place.path.mkdir(parents=True, exist_ok=True)
    first_pass = FirstPass(source, shuffle.keys(arrays), delivery, tasks, bits, budget.block_units(source))
    done = kept.recorded(range(len(tasks)))  # whether files changed since is found where they are read
    for number in done:
        progress(first_pass.bytes(*tasks[number]))
    done |= kept.run(
        first_pass,
        {number: number for number in range(len(tasks))},
        budget.engine,
        done=done,
        keep=input_check.keep,
        options=RunOptions(on_advance=progress, work=work),
    )
    contents = [done[number] for number in range(len(tasks))]
    return Partitions(delivery.place, Outline(plan), source.dtype, source.pad_id, source.segments is not None, contents)


@dataclass(frozen=True)
class FirstPass:
    """Does a task of the first pass, in any process; doing it again gives the same files."""

    source: UnitSource
    keys: AtomKeys  # keys of the movable atoms
    delivery: Delivery
    ranges: list[tuple[int, int]]  # first and last atom of each task
    bits: int  # how many bits of a key name its partition
    block_units: int  # units to read at a time

    def __call__(self, number: int, worker: Worker) -> PartitionContents:
        with self.delivery.attempt(f"task-{number:02d}.") as attempt:
            counts = np.zeros((1 << self.bits, 3), np.int64)
            paths = [attempt / _file(partition, number) for partition in range(len(counts))]
            hashes = [xxhash.xxh3_128() for _ in counts]
            for first, last in _blocks(self.source.plan, *self.ranges[number], self.block_units):
                for partition, atoms in self._scatter(first, last):
                    scratch.append(paths[partition], atoms, hashes[partition])
                    counts[partition] += atoms.counts
                worker.advance(self.bytes(first, last))
                self.source.release()
            digests, by_kind = [hashed.hexdigest() for hashed in hashes], counts.T.tolist()
            filled = np.flatnonzero(counts[:, 0]).tolist()
            entries = [InputEntry(paths[n].name, paths[n].stat().st_size, digests[n]) for n in filled]
            self.delivery.deliver(attempt, entries)
        return PartitionContents(by_kind[0], by_kind[1], by_kind[2], digests)

    def bytes(self, first: int, last: int) -> int:
        """Count the bytes of the tokens of these atoms."""
        units = _first_unit(self.source.plan, last) - _first_unit(self.source.plan, first)
        return int(units) * self.source.unit_bytes

    def _scatter(self, first: int, last: int) -> Iterator[tuple[int, Atoms]]:
        """Divide atoms ``first:last`` among partitions; yield (number of a partition, its atoms in stored order)."""
        plan = self.source.plan
        drawn = self.keys(first, min(last, plan.movable_atoms) - first)
        if last > plan.movable_atoms:
            # The last atom stays at the end. Another atom may have drawn the same key, but ties go by index.
            drawn = np.append(drawn, _LAST)
        order, atom_offsets = _by_partition(drawn, self.bits)

        bounds = np.asarray(_first_unit(plan, np.arange(first, last + 1)), np.int64)
        segments, tokens = self.source.scan(int(bounds[0]), int(bounds[-1]))
        # Everything below is partition by partition: atoms, their units, and the segments of these.
        atom_units = np.diff(bounds)[order]
        unit_offsets = offsets_of(atom_units)
        first_units = bounds[:-1][order] - bounds[0]
        units = ranges(first_units, atom_units, unit_offsets)
        tokens = np.take(tokens, units, axis=0)
        unit_segments, table = _table_of(segments, units)
        segment_offsets = offsets_of(unit_segments)
        for number in np.flatnonzero(np.diff(atom_offsets)).tolist():
            atom, end_atom = atom_offsets[number : number + 2]
            unit, end_unit = unit_offsets[[atom, end_atom]]
            segment, end_segment = segment_offsets[[unit, end_unit]]
            atoms = Atoms(
                keys=drawn[order[atom:end_atom]],
                units=atom_units[atom:end_atom].astype(np.uint32),
                unit_segments=unit_segments[unit:end_unit].astype(np.uint32),
                segments=table[segment:end_segment],
                tokens=tokens[unit:end_unit],
            )
            yield number, atoms


def _table_of(segments: Segments | None, units: I64) -> tuple[I64, npt.NDArray[Any]]:
    """Return how many segments each of some units has, and the segment table of these units; no segments for None.

    Args:
        segments: of many units.
        units: (units) their places among those.
    """
    if segments is None:
        return np.zeros(len(units), np.int64), np.empty(0, SEGMENT)
    counts = np.diff(segments.offsets)[units]
    chosen = ranges(segments.offsets[units], counts, offsets_of(counts))
    return counts, np.take(to_table(segments), chosen)


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


def _by_partition(keys: Any, bits: int) -> tuple[I64, I64]:
    """Sort keys by their top bits alone, stably; return their order, and the offsets of each partition in it."""
    partition = (keys >> np.uint64(64 - bits)).astype(np.uint32)
    return np.argsort(partition, kind="stable"), offsets_of(np.bincount(partition, minlength=1 << bits))


class PartitionedRows(PlannedRows):
    """The second pass: rows read from partitions on disk. A range of rows holds one partition at a time.

    Args:
        partitions: from the first pass.
        order: of the atoms, where they differ in size; else None.
    """

    def __init__(self, partitions: Partitions, order: Ints | None) -> None:
        super().__init__(partitions.plan, order)
        self._partitions = partitions
        tasks = [[contents.atoms, contents.units, contents.segments] for contents in partitions.tasks]
        self._counts = np.array(tasks, np.int64).sum(0).T
        """Atoms, units and segments of each partition, of all tasks together: (partitions, 3)."""
        units = self._counts[:, 1]
        self._first_units = offsets_of(units)
        self._units_left = units.copy()
        """Units of each partition that are in no written row yet: (partitions)."""
        self._lock = threading.Lock()
        self._rooms: list[Atoms] = []
        """Memory for a partition that no range of rows is using, each piece large enough for any of them. It is used
        again, since new memory costs more than reading does."""

    def __reduce__(self) -> tuple[Any, ...]:
        return PartitionedRows, (self._partitions, self.order)

    def batches(self, first: int, last: int) -> Iterator[RowBatch]:
        reader = _Reader(self._partitions, self._counts, self._take_room())
        try:
            for a, b in self.steps(first, last):
                yield rows_of(self.plan, self._read(reader, *unit_range(self.plan, a, b)), self._partitions.pad_id)
        finally:
            self._rooms.append(reader.room)

    def written(self, first: int, last: int) -> None:
        """Remove the partitions that no other row needs."""
        begin, end = unit_range(self.plan, first, last)
        touched = np.minimum(self._first_units[1:], end) - np.maximum(self._first_units[:-1], begin)
        with self._lock:
            self._units_left -= np.maximum(touched, 0)
            used_up = np.flatnonzero((touched > 0) & (self._units_left == 0))
        for number in used_up.tolist():
            self._partitions.remove(number)

    def _take_room(self) -> Atoms:
        """Return memory that is large enough for any partition; `batches` puts it back among the rooms."""
        try:  # rather than look first: another thread may take the last room in between
            return self._rooms.pop()
        except IndexError:
            largest = self._counts.max(0).tolist()
            return empty_atoms(*largest, unit=self.plan.unit, dtype=self._partitions.dtype)

    def _read(self, reader: _Reader, first: int, last: int) -> Units:
        """Read the units at places ``first:last`` of the new order."""
        counts, tables, tokens = [np.empty(0, np.int64)], [np.empty(0, SEGMENT)], []
        number = int(np.searchsorted(self._first_units, first, side="right")) - 1
        while first < last:
            begin, end = int(self._first_units[number]), int(self._first_units[number + 1])
            stop = min(last, end)
            if first < stop:
                loaded = reader.partition(number)
                units = loaded.units[first - begin : stop - begin]
                in_units = loaded.atoms.unit_segments[units].astype(np.int64)
                segment_numbers = ranges(loaded.segment_offsets[units], in_units, offsets_of(in_units))
                counts.append(in_units)
                tables.append(np.take(loaded.atoms.segments, segment_numbers))
                tokens.append(np.take(loaded.atoms.tokens, units, axis=0))
            first, number = stop, number + 1
        segments = None
        if self._partitions.with_segments:
            segments = from_table(np.concatenate(tables), offsets_of(np.concatenate(counts)))
        return segments, tokens[0] if len(tokens) == 1 else np.concatenate(tokens)


class _Reader:
    """Reads partitions one after the other, all into the same room."""

    def __init__(self, partitions: Partitions, counts: I64, room: Atoms) -> None:
        self.room = room
        self._partitions = partitions
        self._counts = counts
        self._number = -1
        self._held: _Sorted

    def partition(self, number: int) -> _Sorted:
        if number != self._number:
            atoms = self.room.head(*self._counts[number].tolist())
            scratch.read(self._partitions.files(number), atoms)
            self._held, self._number = _Sorted(atoms), number
        return self._held


class _Sorted:
    """A partition in memory. Ties of keys go by index, since it holds its atoms in stored order.

    Attributes:
        atoms: as they are stored.
        units: their units in the new order.
        segment_offsets: where each stored unit's segments begin.
    """

    def __init__(self, atoms: Atoms) -> None:
        self.atoms = atoms
        order = order_by(atoms.keys)
        counts = atoms.units.astype(np.int64)
        self.units = ranges(offsets_of(counts)[order], counts[order], offsets_of(counts[order]))
        self.segment_offsets = offsets_of(atoms.unit_segments)
