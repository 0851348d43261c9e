"""Rows of the partial shuffle under other rotations of their lanes, derived from the rows of one epoch."""

from __future__ import annotations

import numpy as np

from packtool.errors import DataError
from packtool.plan import I64, Ints, Plan, Segments, between, offsets_of
from packtool.shuffling.partial import PartialPlan, rotations
from packtool.storage.schema import PackedManifest, Shuffle
from packtool.writing.stored_plan import cut


class RotatedPlan(Plan):
    """Another epoch of stored rows.

    Args:
        stored: the rows that the partial shuffle wrote; each is a unit.
        manifest: of their dataset.
        rotation: for each lane, as that epoch would rotate the stream.
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
        """Return which part of which stored row (`document`) each row is made of."""
        segments = self._parts.segments(units)
        lane, step = np.divmod(segments.document, self._steps)
        return Segments(step * self._lanes + lane, segments.start, segments.length, segments.repeated, segments.offsets)

    def segments(self, units: Ints) -> Segments:
        parts = self.parts(units)
        rows = self._stored.segments(parts.document)
        begin = np.arange(len(parts)) * self.sequence_length + parts.start
        at, skipped, kept, offsets = between(offsets_of(rows.length), begin, begin + parts.length)
        return cut(rows.at(at, offsets[parts.offsets]), skipped, kept)


def lane_of(manifest: PackedManifest) -> int:
    """Count the tokens in a lane of a dataset that the partial shuffle wrote."""
    assert manifest.shuffle is not None
    assert manifest.shuffle.batch_size is not None
    return (manifest.ledger.output - manifest.ledger.padding) // manifest.shuffle.batch_size


def require_rotation(rotation: I64, order: Shuffle, manifest: PackedManifest, where: str) -> None:
    """Make sure that an order rotates the lanes of a dataset.

    Raises:
        DataError: it has other lanes, or turns one by more tokens than it has.
    """
    stored = manifest.shuffle
    alike = stored is not None and stored.method == "partial" and stored.batch_size == order.batch_size
    if not alike or len(rotation) != order.batch_size or ((rotation < 0) | (rotation >= lane_of(manifest))).any():
        raise DataError("bad-order", "it does not rotate the lanes of its base", remedy="make it again", where=where)
