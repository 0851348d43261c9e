"""Rows in a new order where the tokens exceed memory: two sequential passes, and the same bytes as in memory.

First pass: units are read in stored order, and every atom goes to the part that the top bits of its key name, with its
key and its pieces. Second pass: part after part is read and its atoms are sorted by key; their units, joined, are the
rows. Ties are settled by index, because a part holds its atoms in stored order.

    stored units ─partition─▶ parts on disk ─PartedLayout─▶ rows and their segments
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import xxhash

from packtool.errors import UsageError
from packtool.plan import I64, Plan, Segments, offsets_of, ranges
from packtool.shuffling.atom import Keys
from packtool.shuffling.permutation import order_by
from packtool.sizes import show_bytes
from packtool.storage.files import write_bytes
from packtool.storage.packed import SEGMENT, from_table, to_table
from packtool.writing import parts
from packtool.writing.layout import Layout, join
from packtool.writing.parts import Chunk
from packtool.writing.sources import Source

_LAST = np.uint64(np.iinfo(np.uint64).max)
_MOST_TASKS = 16
_TASK_BYTES = 1 << 28
_BLOCK_BYTES = 1 << 24
_MOST_BITS = 14
_UNIT_BYTES = 256  # of working memory for each unit, beside its tokens


@dataclass(frozen=True)
class Budget:
    """Memory for tokens, in bytes, for all workers (threads) together."""

    memory: int
    workers: int

    def holds(self, source: Source) -> bool:
        """Whether all of it fits."""
        return source.bytes <= self.memory

    def bits(self, source: Source) -> int:
        """Top bits of a key that name its part: as many as make a part and its sorting fit, for every worker.

        Raises:
            UsageError: that would be more parts than a file system takes gladly.
        """
        wanted = 4 * self.workers * source.bytes
        if wanted // self.memory >> _MOST_BITS:
            raise UsageError(
                "memory-too-small",
                f"{show_bytes(self.memory)} for {self.workers} workers are too small a share of what is to be shuffled",
                remedy=f"give at least {show_bytes((wanted >> _MOST_BITS) + 1)}, or fewer --workers",
                where="--memory",
            )
        return max(1, (wanted // self.memory).bit_length())

    def block_units(self, source: Source) -> int:
        """Units that a worker reads at a time in the first pass."""
        block = min(_BLOCK_BYTES, self.memory // (16 * self.workers))
        return max(1, block // (source.unit_bytes + _UNIT_BYTES))


class Contents(msgspec.Struct, frozen=True):
    """What a task of the first pass put into each part: atoms, units and pieces, and the xxh3-128 of the file.

    The files are not flushed to the disk, since most of them are read and gone before the system would do so: their
    hashes tell whether they are still what was written when a run is resumed.
    """

    atoms: list[int]
    units: list[int]
    pieces: list[int]
    xxh3_128: list[str]


def partition(
    source: Source, keys: Keys, scratch: Path, *, budget: Budget, progress: Callable[[int], object]
) -> PartedLayout:
    """The first pass. Tasks that an interrupted run finished are not done again.

    Args:
        keys: of the movable atoms.
        scratch: directory for the parts; needs as much space as the tokens.
        progress: told how many bytes of tokens were moved.
    """
    plan, bits = source.plan, budget.bits(source)
    directory = scratch / f"parts-{bits}"
    directory.mkdir(parents=True, exist_ok=True)
    tasks = _split(plan, max(1, min(_MOST_TASKS, plan.units * source.unit_bytes // _TASK_BYTES)))

    def run(number: int) -> Contents:
        first, last = tasks[number]
        note = directory / f"task-{number:02d}.json"
        if note.exists():
            progress(int(_unit(plan, last) - _unit(plan, first)) * source.unit_bytes)
            return msgspec.json.decode(note.read_bytes(), type=Contents)
        for left in directory.glob(f"*-{number:02d}.part"):
            left.unlink()
        counts = np.zeros((1 << bits, 3), np.int64)
        hashes = [xxhash.xxh3_128() for _ in counts]
        for a, b in _blocks(plan, first, last, budget.block_units(source)):
            for part, chunk in _scatter(source, keys, a, b, bits):
                parts.append(directory / f"{part:05d}-{number:02d}.part", chunk, hashes[part])
                counts[part] += chunk.counts
            progress(int(_unit(plan, b) - _unit(plan, a)) * source.unit_bytes)
            source.release()
        atoms, units, pieces = counts.T.tolist()
        contents = Contents(atoms, units, pieces, [each.hexdigest() for each in hashes])
        write_bytes(note, msgspec.json.encode(contents))
        return contents

    with ThreadPoolExecutor(budget.workers, thread_name_prefix="packtool") as pool:
        futures = [pool.submit(run, number) for number in range(len(tasks))]
        try:
            contents = [future.result() for future in futures]
        except BaseException:
            pool.shutdown(wait=True, cancel_futures=True)
            raise
    # Where atoms differ, the plan lists them all in memory; so may the order.
    order = None if plan.atom_offsets is None else order_by(keys(0, plan.movable_atoms))
    return PartedLayout(source, directory, contents, order)


def _unit(plan: Plan, atom: int | I64) -> Any:
    """The first unit of an atom."""
    if plan.atom_offsets is not None:
        return plan.atom_offsets[atom]
    return np.minimum(np.multiply(atom, plan.atom_units), plan.units)


def _split(plan: Plan, count: int) -> list[tuple[int, int]]:
    """Ranges of atoms of about the same number of units."""
    goals = plan.units * np.arange(1, count) // count
    cuts = goals // plan.atom_units if plan.atom_offsets is None else np.searchsorted(plan.atom_offsets, goals)
    return list(pairwise([0, *cuts.tolist(), plan.atoms]))


def _blocks(plan: Plan, first: int, last: int, units: int) -> Iterator[tuple[int, int]]:
    """Ranges of atoms of at most so many units, or of one atom."""
    while first < last:
        if plan.atom_offsets is None:
            end = first + units // plan.atom_units
        else:
            end = int(np.searchsorted(plan.atom_offsets, plan.atom_offsets[first] + units, side="right")) - 1
        end = min(max(end, first + 1), last)
        yield first, end
        first = end


def _scatter(source: Source, keys: Keys, first: int, last: int, bits: int) -> Iterator[tuple[int, Chunk]]:
    """The share of each part in atoms ``first:last``."""
    plan = source.plan
    drawn = keys(first, min(last, plan.movable_atoms) - first)
    if last > plan.movable_atoms:
        drawn = np.append(drawn, _LAST)  # the last atom stays: ties go by index
    part = (drawn >> np.uint64(64 - bits)).astype(np.uint32)
    order = np.argsort(part, kind="stable")
    offsets = offsets_of(np.bincount(part, minlength=1 << bits))

    bounds = np.asarray(_unit(plan, np.arange(first, last + 1)), np.int64)
    begin, atom_units = bounds[:-1][order] - bounds[0], np.diff(bounds)[order]
    unit_offsets = offsets_of(atom_units)
    unit = ranges(begin, atom_units, unit_offsets)
    pieces, tokens = source.stretch(int(bounds[0]), int(bounds[-1]))
    tokens = np.take(tokens, unit, axis=0)
    if pieces is None:
        unit_pieces, table = np.zeros(len(unit), np.int64), np.empty(0, SEGMENT)
    else:
        unit_pieces = np.diff(pieces.offsets)[unit]
        table = np.take(to_table(pieces), ranges(pieces.offsets[unit], unit_pieces, offsets_of(unit_pieces)))
    piece_offsets = offsets_of(unit_pieces)
    for number in np.flatnonzero(np.diff(offsets)).tolist():
        a, b = offsets[number : number + 2]
        u, v = unit_offsets[[a, b]]
        p, q = piece_offsets[[u, v]]
        yield (
            number,
            Chunk(
                drawn[order[a:b]],
                atom_units[a:b].astype(np.uint32),
                unit_pieces[u:v].astype(np.uint32),
                table[p:q],
                tokens[u:v],
            ),
        )


class PartedLayout(Layout):
    """The second pass: rows from parts on disk. Each thread holds one part at a time, and reads parts in order."""

    def __init__(self, source: Source, directory: Path, contents: list[Contents], order: I64 | None) -> None:
        super().__init__(source.plan, order)
        self._source = source
        self._directory = directory
        self._contents = contents
        self._counts = np.array([[each.atoms, each.units, each.pieces] for each in contents], np.int64).sum(0).T
        self._firsts = offsets_of(self._counts[:, 1])
        self._left = self._counts[:, 1].copy()
        self._lock = threading.Lock()
        self._mine = _Mine()

    def segments(self, first_row: int, last_row: int) -> Segments:
        pieces, _ = self._batch(first_row, last_row)
        return join(pieces, self.plan.unit, self.plan.sequence_length)

    def fetch(self, first_row: int, last_row: int, _: object = None) -> npt.NDArray[Any]:
        """The tokens of rows ``first_row:last_row``, padding included."""
        _, tokens = self._batch(first_row, last_row)
        lacking = (last_row - first_row) * (self.plan.sequence_length // self.plan.unit) - len(tokens)
        return np.pad(tokens, ((0, lacking), (0, 0)), constant_values=self._source.pad_id) if lacking else tokens

    def consume(self, first_row: int, last_row: int) -> None:
        """Rows ``first_row:last_row`` are safe elsewhere: parts that no other row needs are removed."""
        per_row = self.plan.sequence_length // self.plan.unit
        first, last = first_row * per_row, min(last_row * per_row, self.plan.units)
        touched = np.minimum(self._firsts[1:], last) - np.maximum(self._firsts[:-1], first)
        with self._lock:
            self._left -= np.maximum(touched, 0)
            used_up = np.flatnonzero((touched > 0) & (self._left == 0))
        for number in used_up.tolist():
            for path in self._directory.glob(f"{number:05d}-*.part"):
                path.unlink(missing_ok=True)

    def _batch(self, first_row: int, last_row: int) -> tuple[Segments, npt.NDArray[Any]]:
        if self._mine.rows != (first_row, last_row):
            per_row = self.plan.sequence_length // self.plan.unit
            self._mine.batch = self._units(first_row * per_row, min(last_row * per_row, self.plan.units))
            self._mine.rows = first_row, last_row
        return self._mine.batch

    def _units(self, first: int, last: int) -> tuple[Segments, npt.NDArray[Any]]:
        """The units at places ``first:last`` of the new order: their pieces and their tokens."""
        counts, tables, tokens = [np.empty(0, np.int64)], [np.empty(0, SEGMENT)], []
        number = int(np.searchsorted(self._firsts, first, side="right")) - 1
        while first < last:
            begin, end = int(self._firsts[number]), int(self._firsts[number + 1])
            stop = min(last, end)
            if first < stop:
                part = self._part(number)
                unit = part.units[first - begin : stop - begin]
                held = part.chunk.unit_pieces[unit].astype(np.int64)
                counts.append(held)
                piece = ranges(part.piece_offsets[unit], held, offsets_of(held))
                tables.append(np.take(part.chunk.pieces, piece))
                tokens.append(np.take(part.chunk.tokens, unit, axis=0))
            first, number = stop, number + 1
        pieces = from_table(np.concatenate(tables), offsets_of(np.concatenate(counts)))
        return pieces, tokens[0] if len(tokens) == 1 else np.concatenate(tokens)

    def _part(self, number: int) -> _Part:
        if self._mine.part is None or self._mine.number != number:
            self._mine.part = None  # let go of it before the next one comes
            files = [
                (self._directory / f"{number:05d}-{task:02d}.part", each.xxh3_128[number])
                for task, each in enumerate(self._contents)
                if each.atoms[number]
            ]
            if self._mine.space is None:
                most = self._counts.max(0).tolist()
                self._mine.space = parts.empty_chunk(*most, unit=self.plan.unit, dtype=self._source.dtype)
            chunk = self._mine.space.head(*self._counts[number].tolist())
            parts.read(files, chunk)
            self._mine.part, self._mine.number = _Part(chunk), number
        return self._mine.part


class _Part:
    """A part in memory: `units` are its units in their new order, `piece_offsets` where each unit's pieces begin."""

    def __init__(self, chunk: Chunk) -> None:
        self.chunk = chunk
        order = order_by(chunk.keys)
        counts = chunk.atom_units.astype(np.int64)
        self.units = ranges(offsets_of(counts)[order], counts[order], offsets_of(counts[order]))
        self.piece_offsets = offsets_of(chunk.unit_pieces)


class _Mine(threading.local):
    """What a thread holds: one part, and the batch that was read last (first its segments are asked for, then its
    tokens)."""

    space: Chunk | None = None
    """As large as the largest part: new memory costs more than reading does."""
    part: _Part | None = None
    number: int = -1
    rows: tuple[int, int] = (-1, -1)
    batch: tuple[Segments, npt.NDArray[Any]]
