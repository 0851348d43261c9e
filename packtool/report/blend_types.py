"""The types of the report of a blend: what a run takes of each source, before it takes any."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from packtool.report.types import FORMAT, SCHEMA_VERSION, MeasuredReport, StoreReport, WithPage
from packtool.support.version import __version__


class BlendedSource(msgspec.Struct, frozen=True, kw_only=True):
    """A source, or a row length, over the whole run.

    Attributes:
        name: of the source.
        epoch_samples: samples in its first epoch; 0 where it has no path.
        samples: that the run takes.
        tokens: in these samples, padding included.
        share: of the samples of the run.
        epochs: how often the run takes it: samples / epoch_samples; null where the source has no path.
        max_epochs: how often it may be taken; null for no limit.
        repeats_from: the sample of the run that is the first of its second epoch; null where it does not repeat.
        fifth_from: the sample of the run that is the first of its fifth epoch; null where it does not come to that.
        stops_at: the sample of the run from which on the others have its weight; null where it does not stop.
    """

    name: str
    epoch_samples: int
    samples: int
    tokens: int
    share: float
    epochs: float | None
    max_epochs: int | None
    repeats_from: int | None
    fifth_from: int | None
    stops_at: int | None


class StageShare(msgspec.Struct, frozen=True, kw_only=True):
    """A source in one stage.

    Attributes:
        name: of the source.
        begin: its share where the stage begins.
        end: its share where the stage ends.
        samples: that the stage takes.
        tokens: in these samples, padding included.
        share: of the samples of the stage.
        epochs: how often the stage takes the source; null where it has no path.
    """

    name: str
    begin: float
    end: float
    samples: int
    tokens: int
    share: float
    epochs: float | None


class BlendStage(msgspec.Struct, frozen=True, kw_only=True):
    """A stretch of the run with weights of its own.

    Attributes:
        first_sample: of the run.
        samples: in the stage.
        ramp: the weights are reached in a straight line.
        sources: what it takes of each.
    """

    first_sample: int
    samples: int
    ramp: bool
    sources: list[StageShare]


class WeightPoint(msgspec.Struct, frozen=True, kw_only=True):
    """The shares at one sample of the run; between two points they are straight lines.

    Attributes:
        sample: of the run.
        shares: of each source, in the order of `sources`.
    """

    sample: int
    shares: list[float]


class BlendReport(msgspec.Struct, WithPage, frozen=True, kw_only=True):
    """The report of `stats` on a blend.

    Attributes:
        path: what was measured, as given.
        format: always the same.
        schema_version: as in every report.
        packtool_version: the version that wrote the report.
        kind: what was measured.
        unit: what samples are: rows; or batches, where row lengths have weights.
        sample_tokens: tokens in a sample; the last batch of a row length may have fewer, and counts as a whole one.
        samples: in the run.
        tokens: in these samples, padding included.
        left_out: rows of an epoch that fill no batch, if there are several row lengths. `Loader` leaves them out
            unless it is told otherwise.
        sources: over the whole run, by name.
        stages: in order.
        weights: where shares change, in order; two points at a sample where they change at once.
    """

    path: str
    format: Literal["packtool report"] = FORMAT
    schema_version: Literal[2] = SCHEMA_VERSION
    packtool_version: str = __version__
    kind: Literal["blend"] = "blend"
    unit: Literal["rows", "batches"]
    sample_tokens: int
    samples: int
    tokens: int
    left_out: int = 0
    sources: list[BlendedSource]
    stages: list[BlendStage]
    weights: list[WeightPoint]

    def __repr__(self) -> str:
        names = ", ".join(source.name for source in self.sources)
        return f"<BlendReport: {self.path}, {self.samples:,} {self.unit} of {names}>"


Report: TypeAlias = MeasuredReport | StoreReport | BlendReport
"""Any report of `packtool.stats`."""
