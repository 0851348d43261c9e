"""The rows of a packed dataset as plans, ready for another order.

There are three kinds of rows: stored rows, cut to the units of their atoms; rows of another epoch of the partial
shuffle, made by rotating the stored rows; and rows that `pack` would write for another epoch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from packtool.errors import UsageError
from packtool.formats.names import SEGMENT
from packtool.formats.packed import PackedBucket, PackedDataset
from packtool.formats.schema import PackedManifest, Shuffle
from packtool.formats.segment_table import from_table
from packtool.options.declare import names_recorded
from packtool.options.names import FIRST
from packtool.options.plans import PackOptions
from packtool.planning import packing
from packtool.planning.arrays import IN_MEMORY, Arrays
from packtool.planning.packing.plans import RenumberedPlan
from packtool.planning.plan import I64, Ints, Plan, Segments, between, index_type, offsets_of, ranges
from packtool.planning.selecting.mixture import passes_of
from packtool.planning.shuffling.atom import AtomShuffle, atom_shuffles
from packtool.planning.shuffling.partial import PartialPlan, rotations
from packtool.planning.shuffling.permutation import document_order


class StoredPlan(Plan):
    """The units of one bucket, in stored order.

    Args:
        bucket: what holds the rows.
        atom_size: other atoms than the stored ones, for a stream in corpus order; None for the stored ones.
        tokens: of that stream before padding; only used with `atom_size`.
        whole: read the whole segment table with the first segments, to write every row; else only the rows in question,
            as training does.
    """

    def __init__(
        self, bucket: PackedBucket, atom_size: int | None = None, tokens: int = 0, *, whole: bool = True
    ) -> None:
        entry, length = bucket.shards.entry, bucket.sequence_length
        if atom_size is None:
            super().__init__(
                sequence_length=length,
                unit=entry.unit,
                units=entry.units,
                atom_units=entry.atom_units or 1,
                atom_offsets=bucket.shards.atom_offsets(),
                last_atom_stays=entry.last_atom_stays,
            )
        else:
            unit = min(atom_size, length)
            super().__init__(
                sequence_length=length,
                unit=unit,
                units=-(-tokens // unit),
                atom_units=atom_size // unit,
                last_atom_stays=tokens % atom_size > 0,
            )
        self.bucket = bucket
        self._whole = whole
        self._given = atom_size, tokens
        self._arrays = IN_MEMORY

    def __reduce__(self) -> tuple[Any, ...]:
        return StoredPlan, (self.bucket, *self._given), {"_whole": self._whole}

    def prepare(self, arrays: Arrays) -> None:
        """Read what `segments` needs into these arrays."""
        self._arrays = arrays
        self.segments(np.empty(0, np.int64))

    @cached_property
    def _table(self) -> npt.NDArray[Any]:
        table, at = self._arrays.empty(sum(len(part) for part, _ in self.bucket.segments.tables()), SEGMENT), 0
        for part, _ in self.bucket.segments.checked_tables():
            table[at : at + len(part)] = part
            at += len(part)
        return table

    @cached_property
    def _row_offsets(self) -> I64:
        parts = [np.zeros(1, np.int64), *(offsets[1:] for _, offsets in self.bucket.segments.tables())]
        before = offsets_of(np.array([len(table) for table, _ in self.bucket.segments.tables()], np.int64))
        return self._arrays.concatenated(parts, np.int64, [0, *before[:-1].tolist()])

    @cached_property
    def _begins(self) -> I64:
        """Where each segment begins, in tokens from the first row's first; then where the last one ends."""
        return self._arrays.offsets(self._table["length"])

    @cached_property
    def _firsts(self) -> Ints:
        """The segment that each unit begins in; then the number of segments."""
        return self._arrays.filled(
            self.units + 1,
            index_type(len(self._begins)),
            lambda a, b: np.searchsorted(self._begins, np.arange(a, b) * self.unit, side="right") - 1,
        )

    def segments(self, units: Ints) -> Segments:
        units = np.asarray(units, np.int64)
        if not self._whole:
            row, part = np.divmod(units, self.sequence_length // self.unit)
            return self._units_of(self.bucket.segments.take(row), np.arange(len(row)), part)
        if self.unit == self.sequence_length:
            first = self._row_offsets[units]
            counts = self._row_offsets[units + 1] - first
            offsets = offsets_of(counts)
            return from_table(np.take(self._table, ranges(first, counts, offsets)), offsets)
        begin = units * self.unit
        first, last = self._firsts[units].astype(np.int64), self._firsts[units + 1].astype(np.int64)
        # The segment in which the next unit begins is in this unit, too, if it begins before that.
        counts = last - first + (self._begins[last] < begin + self.unit)
        offsets = offsets_of(counts)
        index = ranges(first, counts, offsets)
        segments = from_table(np.take(self._table, index), offsets)
        # Where the unit begins in each segment: negative for a segment that begins inside the unit.
        inside = np.repeat(begin, counts) - self._begins[index]
        skipped = np.maximum(inside, 0)
        ends = np.minimum(inside + self.unit, segments.length)
        return _cut(segments, skipped, ends - skipped)

    def scan(self, first: int, last: int) -> Segments:
        """Read the segments of units ``first:last`` from their part of the table alone."""
        per_row = self.sequence_length // self.unit
        row = first // per_row
        rows = self.bucket.segments.between(row, -(-last // per_row))
        inside, part = np.divmod(np.arange(first, last) - row * per_row, per_row)
        return self._units_of(rows, inside, part)

    def _units_of(self, rows: Segments, row: I64, part: I64) -> Segments:
        """Return the segments of parts of rows; a part is a unit."""
        if self.unit == self.sequence_length:
            return rows
        begin = row * self.sequence_length + part * self.unit
        at, skipped, kept, offsets = between(offsets_of(rows.length), begin, begin + self.unit)
        return _cut(rows.at(at, offsets), skipped, kept)


def _cut(segments: Segments, skipped: I64, length: I64) -> Segments:
    """Cut segments: leave out their first `skipped` tokens, and all tokens after the next `length`."""
    return Segments(
        segments.document,
        segments.start + np.where(segments.document >= 0, skipped, 0),
        length,
        np.clip(segments.repeated - skipped, 0, length),
        segments.offsets,
    )


def stored_plans(dataset: PackedDataset, atom_size: int | None = None, *, whole: bool = True) -> list[StoredPlan]:
    """Return the plan of each bucket.

    Args:
        atom_size: other atoms than the stored ones. The caller has made sure that the dataset is one stream in corpus
            order.
        whole: as in `StoredPlan`.
    """
    if atom_size is None or atom_size == stored_atom_size(dataset):
        return [StoredPlan(bucket, whole=whole) for bucket in dataset.buckets]
    ledger = dataset.manifest.ledger
    tokens = ledger.output - ledger.padding + (ledger.rounding or 0)  # padding between documents is in the stream
    return [StoredPlan(bucket, atom_size, tokens, whole=whole) for bucket in dataset.buckets]


def stored_atom_size(dataset: PackedDataset) -> int | None:
    """Return the tokens in an atom, at most; None if atoms are rows of several lengths."""
    if len(dataset.buckets) > 1 or dataset.manifest.buckets[0].directory:
        return None
    atom_size: int = dataset.manifest.options.get("atom_size", dataset.buckets[0].sequence_length)
    return atom_size


def stored_shuffles(plans: Sequence[Plan], stored: Shuffle | None, *, seed: int, epoch: int) -> list[AtomShuffle]:
    """Set up the shuffle of each bucket, from the order that it is stored in to that of a seed and epoch."""
    wanted = atom_shuffles(plans, seed=seed, epoch=epoch)
    if stored is None:
        return wanted
    before = atom_shuffles(plans, seed=stored.seed, epoch=stored.epoch)
    return [replace(new, stored=old) for new, old in zip(wanted, before, strict=True)]


class RotatedPlan(Plan):
    """Another epoch of the partial shuffle, made of the rows of the stored one.

    Args:
        stored: the rows that the partial shuffle wrote; a row is a unit.
        manifest: of their dataset.
        rotation: the rotations of the lanes in the other epoch.
    """

    def __init__(self, stored: Plan, manifest: PackedManifest, rotation: I64) -> None:
        length, lanes = stored.sequence_length, len(rotation)
        super().__init__(sequence_length=length, unit=length, units=stored.units)
        self._stored = stored
        self._steps = stored.units // lanes
        self._lanes = lanes
        lane = lane_of(manifest)
        assert manifest.shuffle is not None
        before = rotations(lanes, lane, seed=manifest.shuffle.seed, epoch=manifest.shuffle.epoch)
        # Stored rows, lane after lane, are a stream like any other, and rows are its documents.
        tokens = np.full((lanes, self._steps), length)
        tokens[:, -1] = lane - (self._steps - 1) * length
        self._parts = PartialPlan(length, offsets_of(tokens.ravel()), (rotation - before) % lane, lane)

    def parts(self, units: Ints) -> Segments:
        """Return the parts of stored rows (as `document`) that rows are made of."""
        segments = self._parts.segments(units)
        lane, step = np.divmod(segments.document, self._steps)
        return Segments(step * self._lanes + lane, segments.start, segments.length, segments.repeated, segments.offsets)

    def segments(self, units: Ints) -> Segments:
        parts = self.parts(units)
        rows = self._stored.segments(parts.document)
        begin = np.arange(len(parts)) * self.sequence_length + parts.start
        at, skipped, kept, offsets = between(offsets_of(rows.length), begin, begin + parts.length)
        return _cut(rows.at(at, offsets[parts.offsets]), skipped, kept)


def lane_of(manifest: PackedManifest) -> int:
    """Count the tokens in a lane of a dataset that the partial shuffle wrote."""
    assert manifest.shuffle is not None
    assert manifest.shuffle.batch_size is not None
    return (manifest.ledger.output - manifest.ledger.padding) // manifest.shuffle.batch_size


def repacked_plans(dataset: PackedDataset, *, seed: int, epoch: int) -> list[Plan]:
    """Plan a dataset as ``packtool pack --epoch`` does, in memory: one plan for each row length.

    Args:
        seed, epoch: of the order of documents; epoch 0 is corpus order.

    Raises:
        UsageError: `pack` did not write its rows, or in an order by fields, which the stores have; or the lengths of
            its documents are not known.
    """
    documents, planned = _planned_in_epoch(dataset, seed, epoch)
    return [RenumberedPlan(plan, documents) for plan in packing.plan_corpus(**planned)]


def repacked_sizes(dataset: PackedDataset, *, seed: int, epoch: int) -> list[tuple[int, int]]:
    """Return (row length, number of rows) of each plan that `repacked_plans` returns, in less time."""
    _, planned = _planned_in_epoch(dataset, seed, epoch)
    rows = packing.row_counts(**planned)
    return list(zip([bucket.sequence_length for bucket in dataset.buckets], rows, strict=True))


def _planned_in_epoch(dataset: PackedDataset, seed: int, epoch: int) -> tuple[Ints, dict[str, Any]]:
    """Return the numbers of the documents in the order of an epoch, and the arguments of `packing.plan_corpus`."""
    manifest, lengths = dataset.manifest, dataset.lengths()
    if manifest.shuffle is not None and manifest.shuffle.method == "partial":
        what = "made by the partial shuffle, which packs every epoch by itself"
        raise UsageError("partial-shuffled", what, remedy="leave repack out", where=str(dataset.place))
    if "order_by" in manifest.options:
        what = f"its documents are in the order of {', '.join(manifest.options['order_by'])}, which only pack computes"
        raise UsageError("ordered-documents", what, remedy="leave repack out", where=str(dataset.place))
    strategy, options = packing.strategy(manifest.strategy), _options(manifest, seed)
    chosen = dataset.chosen()
    order: Ints = np.arange(len(lengths))
    ends: list[int] = []
    if chosen is not None and (epoch or strategy.windowed):
        order, ends = passes_of(chosen)
    if epoch:
        order = document_order(order, seed=seed, epoch=epoch, ends=ends)
    loss = dataset.document_loss
    if loss is not None:
        loss = replace(loss, numbers=order)
    most = None
    if manifest.options.get("too_long") == FIRST:
        most = options.longest_row
    planned = {"strategy": strategy, "lengths": np.asarray(lengths)[order], "options": options}
    return order, {**planned, "ends": ends, "loss": loss, "most": most}


def _options(manifest: PackedManifest, seed: int) -> PackOptions:
    """Read the options of the strategy as the manifest has them."""
    recorded = manifest.options
    names = names_recorded(PackOptions, manifest.strategy)
    options: dict[str, Any] = {name: recorded[name] for name in names if name in recorded}
    for name in ("padding_threshold", "max_repetition"):
        if name in options:
            options[name] = Fraction(options[name])
    if "mix_rows" in names:
        options["mix_rows"] = recorded.get("mix_rows", False)  # rows that are not mixed are not mentioned
    return PackOptions(**{**options, "seed": seed})
