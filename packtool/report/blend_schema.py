"""The types of the report of a blend: what a run takes of each source, before it takes any."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from packtool import __version__
from packtool.report.schema import FORMAT, SCHEMA_VERSION, DocumentsReport, MeasuredReport


class BlendedSource(msgspec.Struct, frozen=True, kw_only=True):
    """A source over the whole run.

    Attributes:
        name: of the source.
        epoch_rows: rows in its first epoch; 0 where it has no path.
        rows: that the run takes.
        tokens: in these rows, padding included.
        share: of the rows of the run.
        epochs: how often the run takes it: rows / epoch_rows; null where the source has no path.
        max_epochs: how often it may be taken; null for no limit.
        repeats_from: the row of the run that is the first of its second epoch; null where it does not repeat.
        stops_at: the row of the run from which on the others have its weight; null where it does not stop.
    """

    name: str
    epoch_rows: int
    rows: int
    tokens: int
    share: float
    epochs: float | None
    max_epochs: int | None
    repeats_from: int | None
    stops_at: int | None


class StageShare(msgspec.Struct, frozen=True, kw_only=True):
    """A source in one stage.

    Attributes:
        name: of the source.
        begin: its share of the rows where the stage begins.
        end: its share where the stage ends.
        rows: that the stage takes.
        tokens: in these rows, padding included.
        share: of the rows of the stage.
        epochs: how often the stage takes the source; null where it has no path.
    """

    name: str
    begin: float
    end: float
    rows: int
    tokens: int
    share: float
    epochs: float | None


class BlendStage(msgspec.Struct, frozen=True, kw_only=True):
    """A stretch of the run with weights of its own.

    Attributes:
        first_row: of the run.
        rows: in the stage.
        ramp: the weights are reached in a straight line.
        sources: what it takes of each.
    """

    first_row: int
    rows: int
    ramp: bool
    sources: list[StageShare]


class WeightPoint(msgspec.Struct, frozen=True, kw_only=True):
    """The shares at one row of the run; between two points they are straight lines.

    Attributes:
        row: of the run.
        shares: of each source, in the order of `sources`.
    """

    row: int
    shares: list[float]


class BlendReport(msgspec.Struct, frozen=True, kw_only=True):
    """What `stats` reports of a blend.

    Attributes:
        path: what was measured, as given.
        format: always the same.
        schema_version: as in every report.
        packtool_version: the version that wrote the report.
        kind: what was measured.
        sequence_length: tokens in a row.
        rows: in the run.
        tokens: in these rows, padding included.
        sources: over the whole run, by name.
        stages: in order.
        weights: where shares change, in order; two points at a row where they change at once.
    """

    path: str
    format: Literal["packtool report"] = FORMAT
    schema_version: Literal[1] = SCHEMA_VERSION
    packtool_version: str = __version__
    kind: Literal["blend"] = "blend"
    sequence_length: int
    rows: int
    tokens: int
    sources: list[BlendedSource]
    stages: list[BlendStage]
    weights: list[WeightPoint]

    def __repr__(self) -> str:
        return f"<BlendReport: {self.path}, {self.rows:,} rows of {', '.join(each.name for each in self.sources)}>"


Report: TypeAlias = MeasuredReport | DocumentsReport | BlendReport
"""Whatever `packtool.stats` reports."""
