"""The tables of the report of a blend, as plain data."""

from __future__ import annotations

import math
from collections.abc import Sequence
from operator import attrgetter, itemgetter
from typing import TypeVar

import msgspec

from packtool.report.blend_types import BlendedSource, BlendReport, StageShare, WeightPoint
from packtool.report.charts import Series, abridged
from packtool.report.figures import count, number, percent
from packtool.report.tables import Table, TableColumn, table_of
from packtool.support.sizes import plural

_BARS = " ▁▂▃▄▅▆▇█"
_COLUMNS = 40  # columns in a picture of weights in a terminal
_NOTHING = 1e-9  # a share that is a rounding error
_LISTED = 20  # sources that a terminal lists, the largest
_Part = TypeVar("_Part", BlendedSource, StageShare)


def sources_table(report: BlendReport) -> Table[BlendedSource]:
    """Tabulate the rows that the run takes of each source."""
    columns: list[TableColumn[BlendedSource]] = [
        TableColumn(_noun(report), lambda source: source.name, words=True),
        TableColumn(report.unit, lambda source: source.samples, count, "that the run takes"),
        TableColumn("share", lambda source: source.share, percent, f"of all {report.unit} of the run"),
        TableColumn("epochs", lambda source: source.epochs, number, "how often the run takes the source"),
        TableColumn("an epoch", lambda source: source.epoch_samples, count, f"{report.unit} in an epoch of the source"),
        TableColumn("repeats from", lambda source: source.repeats_from, count, "where its second epoch begins"),
    ]
    if any(source.stops_at is not None for source in report.sources):
        columns.append(
            TableColumn("stops at", lambda source: source.stops_at, count, "the others have its weight from here")
        )
    columns.append(
        TableColumn("tokens", lambda source: source.tokens, count, f"in these {report.unit}, padding included")
    )
    return table_of("Sources" if report.unit == "rows" else "Row lengths", columns, report.sources)


def stages_table(report: BlendReport) -> Table[StageShare]:
    """Tabulate the rows that each stage takes of each source."""
    columns: list[TableColumn[StageShare]] = [
        TableColumn(_noun(report), lambda share: share.name, words=True),
        TableColumn("begin", lambda share: share.begin, percent, "share where the stage begins"),
        TableColumn("end", lambda share: share.end, percent, "share where it ends"),
        TableColumn(report.unit, lambda share: share.samples, count, "that the stage takes"),
        TableColumn("share", lambda share: share.share, percent, f"of the {report.unit} of the stage"),
        TableColumn("epochs", lambda share: share.epochs, number, "how often the stage takes the source"),
        TableColumn("tokens", lambda share: share.tokens, count, f"in these {report.unit}, padding included"),
    ]
    groups, one = [], report.unit.removesuffix("es").removesuffix("s")
    for number_, stage in enumerate(report.stages, 1):
        part = f"{100 * stage.first_sample / report.samples:.4g}%"
        heading = f"Stage {number_}, from {one} {count(stage.first_sample)} ({part})"
        if stage.ramp:
            heading += ", a ramp"
        groups.append((heading, stage.sources))
    return Table("Shares", columns, groups)


def largest(report: BlendReport) -> BlendReport:
    """Return the report of the sources of which the run takes most, and of all others as one, if there are many."""
    if len(report.sources) <= _LISTED + 1:
        return report
    by_size = sorted(range(len(report.sources)), key=lambda number: -report.sources[number].samples)
    listed, others = itemgetter(*sorted(by_size[:_LISTED])), itemgetter(*by_size[_LISTED:])
    name = f"{len(by_size) - _LISTED:,} others"
    rest = msgspec.structs.replace(
        _summed(others(report.sources), name), max_epochs=None, repeats_from=None, fifth_from=None, stops_at=None
    )
    stages = []
    for stage in report.stages:
        shares = [*listed(stage.sources), _summed(others(stage.sources), name)]
        stages.append(msgspec.structs.replace(stage, sources=shares))
    weights = []
    for point in report.weights:
        shown = [*listed(point.shares), sum(others(point.shares))]
        weights.append(msgspec.structs.replace(point, shares=shown))
    return msgspec.structs.replace(report, sources=[*listed(report.sources), rest], stages=stages, weights=weights)


def _summed(parts: Sequence[_Part], name: str) -> _Part:
    """Add up what a run or a stage takes of several sources; how often it takes them has no sum."""
    totals = {}
    for figure in ("epoch_samples", "samples", "tokens", "share", "begin", "end"):
        if hasattr(parts[0], figure):
            totals[figure] = sum(map(attrgetter(figure), parts))
    return msgspec.structs.replace(parts[0], name=name, epochs=None, **totals)


def left_out(report: BlendReport) -> str:
    """Say how many rows fill no batch; nothing where every row is in one."""
    if not report.left_out:
        return ""
    rows = plural(report.left_out, "row")
    return f"{rows} fill no batch, and are left out: Loader(drop_last=False) makes smaller batches of them."


def weight_lines(report: BlendReport) -> list[Series]:
    """Return the shares of each source over the run, as lines to draw: tokens, and the share there."""
    lines = []
    for number_, source in enumerate(report.sources):
        points = [(point.sample * report.sample_tokens, point.shares[number_]) for point in report.weights]
        lines.append(Series(source.name, number_, points))
    return lines


def often_repeated(report: BlendReport) -> list[tuple[float, str]]:
    """Return the places, in tokens of the run, where sources begin their fifth epoch, in order, and their names."""
    found = []
    for source in report.sources:
        if source.fifth_from is not None:
            found.append((float(source.fifth_from * report.sample_tokens), f"{abridged(source.name)}: 5th pass"))
    return sorted(found)


def weight_bars(report: BlendReport) -> list[tuple[str, str]]:
    """Draw the shares of each source over the run with characters: name, and a column for each part of the run.

    Zero is a blank, and anything above it shows.
    """
    drawn = []
    for number_, source in enumerate(report.sources):
        columns = ""
        for column in range(_COLUMNS):
            share = _share_at((column + 0.5) / _COLUMNS * report.samples, number_, report.weights)
            columns += _BARS[math.ceil(share * (len(_BARS) - 1) - _NOTHING)]
        drawn.append((source.name, columns))
    return drawn


def _share_at(sample: float, source: int, points: Sequence[WeightPoint]) -> float:
    """Return the share of a source at a sample, on the line between the points before and after it."""
    after = next(i for i in range(1, len(points)) if points[i].sample >= sample)
    one, other = points[after - 1], points[after]
    way = (sample - one.sample) / (other.sample - one.sample)
    return one.shares[source] + way * (other.shares[source] - one.shares[source])


def _noun(report: BlendReport) -> str:
    return "source" if report.unit == "rows" else "row length"
