"""The tables of the report of a blend, as plain data."""

from __future__ import annotations

import math

from packtool.report.blend_schema import BlendedSource, BlendReport, StageShare
from packtool.report.charts import Series
from packtool.report.figures import count, number, percent
from packtool.report.tables import Column, Table, table_of

_BARS = " ▁▂▃▄▅▆▇█"
_COLUMNS = 40
"""Of a picture of weights in a terminal."""
_NOTHING = 1e-9
"""A share that is a rounding error."""


def sources_table(report: BlendReport) -> Table[BlendedSource]:
    """Tabulate what the run takes of each source."""
    columns: list[Column[BlendedSource]] = [
        Column("source", lambda source: source.name, words=True),
        Column("rows", lambda source: source.rows, count, "rows that the run takes"),
        Column("share", lambda source: source.share, percent, "of all rows of the run"),
        Column("epochs", lambda source: source.epochs, number, "how often the run takes the source"),
        Column("an epoch", lambda source: source.epoch_rows, count, "rows in an epoch of the source"),
        Column("repeats from", lambda source: source.repeats_from, count, "first row of its second epoch"),
    ]
    if any(source.stops_at is not None for source in report.sources):
        columns.append(
            Column("stops at", lambda source: source.stops_at, count, "the others have its weight from here")
        )
    columns.append(Column("tokens", lambda source: source.tokens, count, "in these rows, padding included"))
    return table_of("Sources", columns, report.sources)


def stages_table(report: BlendReport) -> Table[StageShare]:
    """Tabulate what each stage takes of each source."""
    columns: list[Column[StageShare]] = [
        Column("source", lambda share: share.name, words=True),
        Column("begin", lambda share: share.begin, percent, "share where the stage begins"),
        Column("end", lambda share: share.end, percent, "share where it ends"),
        Column("rows", lambda share: share.rows, count, "rows that the stage takes"),
        Column("share", lambda share: share.share, percent, "of the rows of the stage"),
        Column("epochs", lambda share: share.epochs, number, "how often the stage takes the source"),
        Column("tokens", lambda share: share.tokens, count, "in these rows, padding included"),
    ]
    groups = []
    for number_, stage in enumerate(report.stages, 1):
        part = f"{100 * stage.first_row / report.rows:.4g}%"
        ramp = ", a ramp" if stage.ramp else ""
        groups.append((f"Stage {number_}, from row {count(stage.first_row)} ({part}){ramp}", stage.sources))
    return Table("Shares", columns, groups)


def weight_lines(report: BlendReport) -> list[Series]:
    """Return the shares of each source over the run, as lines to draw: tokens, and the share there."""
    return [
        Series(
            source.name,
            number_,
            [(point.row * report.sequence_length, point.shares[number_]) for point in report.weights],
        )
        for number_, source in enumerate(report.sources)
    ]


def weight_bars(report: BlendReport) -> list[tuple[str, str]]:
    """Draw the shares of each source over the run with characters: name, and a column for each part of the run.

    Zero is a blank, and anything above it shows.
    """
    points = report.weights
    places = [(column + 0.5) / _COLUMNS * report.rows for column in range(_COLUMNS)]
    drawn = []
    for number_, source in enumerate(report.sources):
        shares = []
        for place in places:
            after = next(i for i in range(1, len(points)) if points[i].row >= place)
            one, other = points[after - 1], points[after]
            way = (place - one.row) / (other.row - one.row)
            shares.append(one.shares[number_] + way * (other.shares[number_] - one.shares[number_]))
        drawn.append((source.name, "".join(_BARS[math.ceil(share * (len(_BARS) - 1) - _NOTHING)] for share in shares)))
    return drawn
