"""`stats` of a blend: what a run will take of each source, before its first batch."""

from __future__ import annotations

import math
from itertools import pairwise

from packtool.blending.blend import Blend
from packtool.blending.dealing import Dealing
from packtool.options.check import refuse
from packtool.options.declare import declared
from packtool.options.stats import StatsArguments
from packtool.places.typed import Typed
from packtool.reading.blend_sources import Sources
from packtool.report.blend_schema import BlendedSource, BlendReport, BlendStage, StageShare, WeightPoint

_TAKEN = ("path", "html", "quiet", "workers", "scheduler")


def blend_report(path: Typed, options: StatsArguments) -> BlendReport:
    """Report on a blend.

    Raises:
        UsageError: an option for other things; as of `packtool.open` for a blend.
        DataError: a source is missing, unfinished or damaged.
    """
    others = [name for name in declared(StatsArguments) if name not in _TAKEN]
    refuse(options, others, "a blend does not take this option", "give it for one of its sources")
    return report_of(Sources(Blend.read(str(path))), str(path))


def report_of(sources: Sources, path: str) -> BlendReport:
    """Report on the sources of a blend; counted from the samples as they will be dealt."""
    schedule, length = sources.schedule, sources.sequence_length
    dealing = Dealing(schedule)
    pieces, epochs, whole = schedule.pieces, sources.epoch_rows, dealing.before(schedule.samples).tolist()
    listed = []
    for number, (name, rows) in enumerate(zip(schedule.names, whole, strict=True)):
        stops = [piece for piece in pieces if not piece.begin[number] and not piece.end[number]]
        stopped = name in schedule.stops and rows == schedule.limits[name] and stops
        listed.append(
            BlendedSource(
                name=name,
                epoch_rows=epochs[name],
                rows=rows,
                tokens=rows * length,
                share=rows / schedule.samples,
                epochs=rows / epochs[name] if epochs[name] else None,
                max_epochs=sources.blend.sources[name].max_epochs,
                repeats_from=dealing.sample_of(number, epochs[name]) if epochs[name] else None,
                stops_at=math.ceil(stops[-1].first) if stopped else None,
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
                rows=rows,
                tokens=rows * length,
                share=rows / (last - stage.first),
                epochs=rows / epochs[name] if epochs[name] else None,
            )
            for number, (name, rows) in enumerate(zip(schedule.names, taken, strict=True))
        ]
        ramp = stage.reached is not None
        stages.append(BlendStage(first_row=stage.first, rows=last - stage.first, ramp=ramp, sources=shares))
    corners = [(piece.first, piece.begin, piece.last, piece.end) for piece in pieces]
    points = [point for first, begin, last, end in corners for point in ((first, begin), (last, end))]
    points = [points[0], *(two for one, two in pairwise(points) if one[0] != two[0] or (one[1] != two[1]).any())]
    return BlendReport(
        path=path,
        sequence_length=length,
        rows=schedule.samples,
        tokens=schedule.samples * length,
        sources=listed,
        stages=stages,
        weights=[WeightPoint(row=math.ceil(place), shares=shares.tolist()) for place, shares in points],
    )
