"""Compute the schedule of a blend in samples, from the blend as it was written and the sizes of its sources."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from packtool.blending.blend import Blend, Sizes
from packtool.blending.dealing import Dealing
from packtool.blending.schedule import Exhausted, Schedule, Stage
from packtool.errors import UsageError
from packtool.options.check import suggest


@dataclass(frozen=True)
class Extent:
    """The size of a source."""

    rows: int  # number of rows in the first epoch
    limit: int | None = None  # number of rows that a run may take from the source; None for no limit


def schedule_of(blend: Blend, extents: Mapping[str, Extent], tokens: int) -> Schedule:
    """Return the schedule of a blend of sources.

    Args:
        extents: the sizes of the sources, by name.
        tokens: in a row.

    Raises:
        UsageError: a weight for an unknown name, or a source without a weight; weights, but no length of the run; a
            run that takes a source more often than it may.
    """
    names = tuple(sorted(extents))
    check_names(blend, names, "source")
    if blend.length is not None:
        samples = blend.samples(blend.length, Sizes(tokens, 0))
    elif not blend.stages:
        samples = sum(extent.rows for extent in extents.values())
    else:
        what, remedy = "weights, but not how long the run is", 'give tokens = "40B", or rows, or steps'
        raise UsageError("missing-option", what, remedy=remedy, where=blend.name)
    if not samples:
        what, remedy = "the run has not a single row", f"give at least {tokens:,} tokens"
        raise UsageError("bad-option", what, remedy=remedy, where=blend.length.where if blend.length else blend.name)
    by_size = Stage(0, {name: Fraction(extent.rows) for name, extent in extents.items()})
    stages = tuple(blend.resolved(Sizes(tokens, samples))) or (by_size,)
    limits = {name: extent.limit for name, extent in extents.items() if extent.limit is not None}
    stops = frozenset(name for name in names if blend.sources[name].stop)
    schedule = Schedule(names, samples, stages, limits, stops)
    check_limits(blend, schedule, extents)
    return schedule


def lengths_schedule(blend: Blend, batches: Mapping[int, int], tokens: int) -> Schedule:
    """Return the schedule of the row lengths of one dataset, whose batches all come once.

    When the batches of a length are used up, the other lengths share its weight. When all lengths with a weight are
    used up, the others share by the batches that they have left.

    Args:
        batches: number of batches of each row length.
        tokens: in a batch.

    Raises:
        UsageError: a weight for an unknown length, or a length without a weight; a length of the run, or options of the
            source, which an epoch of one dataset does not have.
    """
    names, samples = tuple(map(str, sorted(batches))), sum(batches.values())
    source = next(iter(blend.sources.values()))
    where = None
    if source.max_epochs is not None or source.stop or not source.shuffle:
        where = source.where
    if blend.length is not None:
        where = blend.length.where
    if where is not None:
        what = "where weights are of row lengths, every row comes once an epoch, and the epochs are the trainer's"
        remedy = "leave out the length of the run, max-epochs, stop and shuffle"
        raise UsageError("option-not-taken", what, remedy=remedy, where=where)
    check_names(blend, names, "row length")
    limits = {str(length): count for length, count in batches.items()}
    by_size = Stage(0, {name: Fraction(count) for name, count in limits.items()})
    stages = tuple(blend.resolved(Sizes(tokens, samples, batches=True))) or (by_size,)
    return Schedule(names, samples, stages, limits, frozenset(names), use_all=True)


def lengths_in_turn(table: npt.NDArray[Any], lengths: Sequence[int], blend: Blend, tokens: int) -> npt.NDArray[Any]:
    """Order the batches of an epoch by weights of their row lengths; batches of one length stay in their order.

    Args:
        table: the batches: array of `packtool.planning.plan.BATCH`.
        lengths: the row lengths of the dataset.
        tokens: in a batch.

    Raises:
        UsageError: as in `lengths_schedule`.
    """
    places = [np.flatnonzero(table["bucket"] == length) for length in sorted(lengths)]
    counts = {length: len(place) for length, place in zip(sorted(lengths), places, strict=True)}
    source, row = Dealing(lengths_schedule(blend, counts, tokens)).locate(np.arange(len(table)))
    order = np.empty(len(table), np.int64)
    for number, place in enumerate(places):
        order[source == number] = place[row[source == number]]
    return table[order]


def check_names(blend: Blend, names: Sequence[str], what: str) -> None:
    """Refuse weights for unknown names, and names without a weight in any stage.

    Args:
        what: the kind of thing that the names are of, such as "source", for messages.
    """
    for stage in blend.stages:
        for name in stage.weights:
            if name not in names:
                remedy = suggest(name, names)
                raise UsageError("unknown-key", f"there is no {what} {name!r}", remedy=remedy, where=stage.places[name])
    for name in names:
        if blend.stages and not any(name in stage.weights for stage in blend.stages):
            raise UsageError(
                "missing-option",
                f"{what} {name} has a weight in no stage",
                remedy="give it one, which may be 0, or take it out",
                where=blend.sources[name].where if name in blend.sources else blend.name,
            )


def require_rows(
    weights: Mapping[str, Fraction], extents: Mapping[str, Extent], gone: frozenset[str], places: Mapping[str, str]
) -> None:
    """Refuse a weight for a source that has no rows to give.

    Args:
        gone: sources without a path, whose rows and weights all lie in the past of a run that is resumed.
        places: where the weights are written, by name, for messages.
    """
    for name, weight in weights.items():
        if weight and name in extents and name not in gone and not extents[name].rows:
            what, remedy = f"{name} has a weight, but no rows", "give it the weight 0, or take it out of the blend"
            raise UsageError("source-empty", what, remedy=remedy, where=places[name])


def check_limits(blend: Blend, schedule: Schedule, extents: Mapping[str, Extent]) -> None:
    """Refuse a run that takes a source more often than it may.

    Raises:
        UsageError: with the rows that the run would take, and the rows that it may take.
    """
    try:
        taken = dict(zip(schedule.names, schedule.rows(schedule.samples).tolist(), strict=True))
    except Exhausted as error:
        have = ", ".join(f"{name} {extent.limit or extent.rows:,}" for name, extent in sorted(extents.items()))
        raise UsageError(
            "source-exhausted",
            f"at row {error.sample:,} of {schedule.samples:,} all sources with a weight have stopped (rows: {have})",
            remedy="shorten the run, raise max-epochs, or leave stop out for one of them",
            where=blend.length.where if blend.length else blend.name,
        ) from None
    for name, limit in schedule.limits.items():
        if round(taken[name]) > limit and name not in schedule.stops:
            rows, most = extents[name].rows, blend.sources[name].max_epochs or 1
            raise UsageError(
                "source-exhausted",
                f"the run takes {round(taken[name]):,} rows of {name}, {taken[name] / rows:.2f} epochs of {rows:,}, "
                f"where max-epochs = {most} allows {limit:,}",
                remedy="lower its weights, shorten the run, raise max-epochs, or set stop, so that the others have its "
                "weight from there on",
                where=blend.sources[name].where,
            )
