"""`stats` of a blend: what a run will take of each source, before its first batch."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Literal, cast

import msgspec
import numpy as np

from packtool.blending.blend import Blend
from packtool.blending.dealing import Dealing
from packtool.blending.schedule import Schedule
from packtool.options.check import refuse
from packtool.options.declare import declared
from packtool.options.stats import StatsArguments
from packtool.places.typed import Typed
from packtool.reading.batches import GlobalBatches
from packtool.reading.blend_schedule import lengths_schedule
from packtool.reading.dataset import BucketDataset
from packtool.reading.order import BlendOrder
from packtool.reading.stream import Stream
from packtool.report.blend_types import BlendedSource, BlendReport, BlendStage, StageShare, WeightPoint

_TAKEN = ("path", "html", "quiet", "workers", "scheduler")


def blend_report(path: Typed, options: StatsArguments) -> BlendReport:
    """Report on a blend.

    Raises:
        UsageError: an option for other things; as in `packtool.open` for a blend.
        DataError: a source is missing, unfinished or damaged.
    """
    others = [name for name in declared(StatsArguments) if name not in _TAKEN]
    refuse(options, others, "a blend does not take this option", "give it for one of its sources")
    blend = Blend.read(str(path))
    stream = Stream(blend, drop_rest=True)  # as the loader reads it, unless it is told otherwise
    if not isinstance(stream.order, BlendOrder):
        return _of_lengths(stream, blend, str(path))
    most = {name: source.max_epochs for name, source in blend.sources.items()}
    rows = dict.fromkeys(stream.sources, 0)
    for name, opened in stream.sources.items():
        if opened is not None:
            rows[name] = opened.items
    length = stream.source(0).lengths[0]
    return _report(str(path), stream.order.schedule, rows, most, length, "rows")


def _of_lengths(stream: Stream, blend: Blend, path: str) -> BlendReport:
    """Report on the row lengths of one dataset, in batches."""
    GlobalBatches(stream)  # refuses a blend that makes no batch
    dataset = cast("BucketDataset", stream.source(0).epoch(0))
    epoch, table = dataset.recipe.epoch, dataset.batches
    assert epoch is not None
    assert table is not None
    tokens = epoch.options.batch_tokens
    assert tokens is not None
    counts = {length: int(np.count_nonzero(table["bucket"] == length)) for length in dataset.buckets}
    schedule = lengths_schedule(blend, counts, tokens)
    batches = {str(length): count for length, count in counts.items()}
    report = _report(path, schedule, batches, dict.fromkeys(batches), tokens, "batches")
    return msgspec.structs.replace(report, left_out=stream.left_out(0))


def _report(
    path: str,
    schedule: Schedule,
    epochs: Mapping[str, int],
    most: Mapping[str, int | None],
    length: int,
    unit: Literal["rows", "batches"],
) -> BlendReport:
    """Report on a schedule, counted from the samples as they will be dealt.

    Args:
        epochs: samples in an epoch of each source.
        most: epochs that a source may be taken.
        length: tokens in a sample.
        unit: samples are rows, or batches.
    """
    dealing = Dealing(schedule)
    whole = dealing.before(schedule.samples).tolist()
    sources = []
    for number, (name, taken) in enumerate(zip(schedule.names, whole, strict=True)):
        repeats_from = fifth_from = None
        if epochs[name]:
            repeats_from = dealing.sample_of(number, epochs[name])
            fifth_from = dealing.sample_of(number, 4 * epochs[name])
        source = BlendedSource(
            name=name,
            epoch_samples=epochs[name],
            samples=taken,
            tokens=taken * length,
            share=taken / schedule.samples,
            epochs=_epochs(taken, epochs[name]),
            max_epochs=most[name],
            repeats_from=repeats_from,
            fifth_from=fifth_from,
            stops_at=_stops_at(schedule, number, taken),
        )
        sources.append(source)
    return BlendReport(
        path=path,
        unit=unit,
        sample_tokens=length,
        samples=schedule.samples,
        tokens=schedule.samples * length,
        sources=sources,
        stages=list(_stages(schedule, dealing, epochs, length)),
        weights=_corners(schedule),
    )


def _epochs(taken: int, epoch: int) -> float | None:
    """Return how often a source is taken; None for a source without samples."""
    if not epoch:
        return None
    return taken / epoch


def _stops_at(schedule: Schedule, number: int, taken: int) -> int | None:
    """Return the sample from which the other sources have the weight of this one; None if it does not stop."""
    name = schedule.names[number]
    if name not in schedule.stops or taken != schedule.limits[name]:
        return None
    end = max((piece.last for piece in schedule.pieces if piece.start[number] or piece.end[number]), default=0)
    if end >= schedule.samples:
        return None
    return math.ceil(end)


def _stages(schedule: Schedule, dealing: Dealing, epochs: Mapping[str, int], length: int) -> Iterator[BlendStage]:
    """Yield the rows that each stage takes of each source; a stage that begins after the run's end takes none."""
    begun = [stage for stage in schedule.stages if stage.first < schedule.samples]
    ends = [*(stage.first for stage in begun[1:]), schedule.samples]
    for stage, last in zip(begun, ends, strict=True):
        inside = [piece for piece in schedule.pieces if stage.first <= piece.first < last]
        taken = (dealing.before(last) - dealing.before(stage.first)).tolist()
        shares = []
        for number, name in enumerate(schedule.names):
            share = StageShare(
                name=name,
                begin=float(inside[0].start[number]),
                end=float(inside[-1].end[number]),
                samples=taken[number],
                tokens=taken[number] * length,
                share=taken[number] / (last - stage.first),
                epochs=_epochs(taken[number], epochs[name]),
            )
            shares.append(share)
        ramp = stage.reached is not None
        yield BlendStage(first_sample=stage.first, samples=last - stage.first, ramp=ramp, sources=shares)


def _corners(schedule: Schedule) -> list[WeightPoint]:
    """List where shares change: of pieces that join without a change, the place where they meet is left out."""
    points: list[WeightPoint] = []
    before = None
    for piece in schedule.pieces:
        for place, shares in ((piece.first, piece.start), (piece.last, piece.end)):
            if before is None or before[0] != place or (before[1] != shares).any():
                points.append(WeightPoint(sample=math.ceil(place), shares=shares.tolist()))
            before = place, shares
    return points
