"""`stats` of a blend: what a run will take of each source, before its first batch."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise
from typing import Literal, cast

import numpy as np

from packtool.blending.blend import Blend
from packtool.blending.dealing import Dealing
from packtool.blending.schedule import Schedule
from packtool.options.check import refuse
from packtool.options.declare import declared
from packtool.options.stats import StatsArguments
from packtool.places.typed import Typed
from packtool.reading import BucketDataset
from packtool.reading import open as packtool_open
from packtool.reading.blend_schedule import lengths_schedule
from packtool.reading.blend_sources import Sources, several_lengths
from packtool.report.blend_schema import BlendedSource, BlendReport, BlendStage, StageShare, WeightPoint

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
    if several_lengths(blend, {}) is not None:
        return _of_lengths(cast("BucketDataset", packtool_open(blend)), blend, str(path))
    sources = Sources(blend)
    most = {name: source.max_epochs for name, source in blend.sources.items()}
    rows = {name: extent.rows for name, extent in sources.extents.items()}
    return _report(str(path), sources.schedule, rows, most, sources.sequence_length, "rows")


def _of_lengths(dataset: BucketDataset, blend: Blend, path: str) -> BlendReport:
    """Report on the row lengths of one dataset, in batches."""
    epoch, table = dataset.recipe.epoch, dataset.batches
    assert epoch is not None and epoch.batch_tokens is not None and table is not None  # noqa: PT018
    counts = {length: int(np.count_nonzero(table["bucket"] == length)) for length in dataset.buckets}
    schedule = lengths_schedule(blend, counts, epoch.batch_tokens)
    batches = {str(length): count for length, count in counts.items()}
    return _report(path, schedule, batches, dict.fromkeys(batches), epoch.batch_tokens, "batches")


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
    pieces, whole = schedule.pieces, dealing.before(schedule.samples).tolist()
    listed = []
    for number, (name, rows) in enumerate(zip(schedule.names, whole, strict=True)):
        end = max((piece.last for piece in pieces if piece.begin[number] or piece.end[number]), default=0)
        stopped = name in schedule.stops and rows == schedule.limits[name] and end < schedule.samples
        listed.append(
            BlendedSource(
                name=name,
                epoch_samples=epochs[name],
                samples=rows,
                tokens=rows * length,
                share=rows / schedule.samples,
                epochs=rows / epochs[name] if epochs[name] else None,
                max_epochs=most[name],
                repeats_from=dealing.sample_of(number, epochs[name]) if epochs[name] else None,
                stops_at=math.ceil(end) if stopped else None,
            )
        )
    begins = [stage for stage in schedule.stages if stage.first < schedule.samples]
    stages = []
    for stage, last in zip(begins, [*(stage.first for stage in begins[1:]), schedule.samples], strict=True):
        inside = [piece for piece in pieces if stage.first <= piece.first < last]
        taken = (dealing.before(last) - dealing.before(stage.first)).tolist()
        shares = [
            StageShare(
                name=name,
                begin=float(inside[0].begin[number]),
                end=float(inside[-1].end[number]),
                samples=rows,
                tokens=rows * length,
                share=rows / (last - stage.first),
                epochs=rows / epochs[name] if epochs[name] else None,
            )
            for number, (name, rows) in enumerate(zip(schedule.names, taken, strict=True))
        ]
        ramp = stage.reached is not None
        stages.append(BlendStage(first_sample=stage.first, samples=last - stage.first, ramp=ramp, sources=shares))
    corners = [(piece.first, piece.begin, piece.last, piece.end) for piece in pieces]
    points = [point for first, begin, last, end in corners for point in ((first, begin), (last, end))]
    points = [points[0], *(two for one, two in pairwise(points) if one[0] != two[0] or (one[1] != two[1]).any())]
    return BlendReport(
        path=path,
        unit=unit,
        sample_tokens=length,
        samples=schedule.samples,
        tokens=schedule.samples * length,
        sources=listed,
        stages=stages,
        weights=[WeightPoint(sample=math.ceil(place), shares=shares.tolist()) for place, shares in points],
    )
