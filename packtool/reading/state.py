"""The state of a loader: the place of a run, as one JSON text, all of which is checked before anything moves.

It is one text because PyTorch's distributed checkpoints fill only the keys that a new loader's state has: a state of
several keys would be filled in part. Its last field is a checksum, so that a damaged or edited state is refused.

    {"version": 2, "samples": 2400, "rows": {"code": 964, "web": 1436}, "sources": {…}, "past": […], …}

The past of a blend is saved as stretches of samples with the shares of the sources. The blend that goes on must have
the same past; its future may differ.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import zip_longest
from typing import Any, TypeAlias

import msgspec
import xxhash

from packtool.blending.schedule import Stage
from packtool.errors import DataError
from packtool.reading.epochs import BY_WEIGHTS
from packtool.reading.order import Base, BlendOrder
from packtool.reading.stream import Stream
from packtool.support.decoding import from_json

KEY = "packtool"
"""The only key of a state."""
_VERSION = 2
_LARGEST = 1 << 53  # above it JSON's numbers are no longer exact everywhere
_WEIGHT = re.compile(r"[0-9]{1,18}(/0*[1-9][0-9]{0,17})?")  # a huge exponent would take hours to read as a fraction
_EPOCHS = 1 << 32  # `Stream` joins source and epoch in one number, with 32 bits for the epoch
_REPACKED = 1 << 14  # most epochs that are packed anew: to find a sample, every epoch before it is planned

Stretch: TypeAlias = tuple[str, str, dict[str, tuple[str, str]]]
"""First and last place of a stretch, and the shares of the sources at both, as decimals that `Schedule.past` writes. A
place may lie between two samples, where a source stops."""


class SavedBase(msgspec.Struct, forbid_unknown_fields=True):
    """A `Base`, as it is saved."""

    sample: int
    rows: dict[str, int]


class SavedStage(msgspec.Struct, forbid_unknown_fields=True):
    """A `Stage` that was added while training, as it is saved."""

    first: int
    weights: dict[str, str]
    reached: int | None


class LoaderState(msgspec.Struct, forbid_unknown_fields=True):
    """The place of a run."""

    version: int  # version of the format of the state
    samples: int  # samples consumed
    rows: dict[str, int]  # items that each source has given, by name
    sources: dict[str, dict[str, int | str | bool | None]]  # `Source.identity` of the sources that have given items
    past: list[Stretch]  # shares of the sources of a blend up to this place
    base: SavedBase | None  # where dealing began anew; None if it began with the run
    added: list[SavedStage]  # stages that were added while training
    sum: str = ""  # xxh3-64 of this JSON with an empty sum


class _Versioned(msgspec.Struct):
    """What a state of any version says of itself."""

    version: int


def written(stream: Stream, samples: int) -> dict[str, str]:
    """Return the state of a stream after some samples."""
    rows = dict(zip(stream.sources, stream.order.before(samples).tolist(), strict=True))
    state = LoaderState(_VERSION, samples, rows, {}, [], None, [])
    for name, source in stream.sources.items():
        if rows[name]:
            state.sources[name] = stream.past_identities[name] if source is None else source.identity
    order = stream.order
    if isinstance(order, BlendOrder):
        state.past = _stretches(order, order.added, samples)
        for stage in order.added:
            weights = {name: str(weight) for name, weight in stage.weights.items()}
            state.added.append(SavedStage(stage.first, weights, stage.reached))
        if order.base is not None:
            state.base = SavedBase(order.base.sample, dict(order.base.rows))
    state.sum = _sum_of(state)
    return {KEY: msgspec.json.encode(state).decode()}


def restore(stream: Stream, state: object) -> int:
    """Move a stream to a saved state, after checking all of it, and return the number of samples before its place.

    Args:
        state: as `written` returned it.

    Raises:
        DataError: not a state, a damaged state, or a state of another dataset, order, seed or past. Nothing has moved.
        UsageError: the sources of the blend have too few rows for the rest of the run. Nothing has moved.
    """
    where = stream.name
    saved = _read(state, where)
    _require_sound(saved, where)
    _require_names(stream, saved, where)
    order = stream.order
    if isinstance(order, BlendOrder):
        added = [_stage_of(stage, stream.sources, where) for stage in saved.added]
        _require_past(order, added, saved, where)
        base = None if saved.base is None else Base(saved.base.sample, saved.base.rows)
        order.resume(added, base, Base(saved.samples, {name: saved.rows.get(name, 0) for name in stream.sources}))
        stream.past_identities = {name: saved.sources[name] for name in order.gone if name in saved.sources}
    elif saved.past or saved.base or saved.added or len(saved.rows) > 1:
        raise _bad("the state of one dataset with the past of a blend", where)
    return saved.samples


def _sum_of(state: LoaderState) -> str:
    """Return the checksum of a state."""
    return xxhash.xxh3_64_hexdigest(msgspec.json.encode(msgspec.structs.replace(state, sum="")))


def _early(where: str) -> DataError:
    """Return the error for a state of before the first release, which did not say the same place in the same way."""
    what = "the state was made before the first release"
    return DataError("bad-state", what, remedy="begin the run again, or skip the samples that it had", where=where)


def _bad(what: str, where: str) -> DataError:
    """Return the error for an invalid state."""
    return DataError("bad-state", what, remedy="give what the loader's state_dict returned", where=where)


def _read(state: object, where: str) -> LoaderState:
    """Decode a state, and check its types, checksum and version."""
    if isinstance(state, Mapping) and KEY not in state and "samples" in state:
        raise _early(where)
    if not isinstance(state, Mapping) or KEY not in state:
        raise _bad(f"{state!r:.100} is not the state of a loader", where)
    text = state[KEY]
    if not isinstance(text, str):
        raise _bad(f"{text!r:.100} is not the text of a state", where)
    try:
        # The version first: only of this one is it known which fields there are.
        version = from_json(text, _Versioned).version
        if version < _VERSION:
            raise _early(where)
        if version > _VERSION:
            what = f"version {version} of a state, which a later packtool wrote"
            raise DataError("bad-state", what, remedy="resume with that packtool, or a later one", where=where)
        saved = from_json(text, LoaderState)
    except ValueError as error:
        raise _bad(f"not the state of a loader ({error})", where) from None
    if _sum_of(saved) != saved.sum:
        raise _bad("damaged or edited: its checksum differs", where)
    return saved


def _require_sound(saved: LoaderState, where: str) -> None:
    """Refuse numbers that are out of range, or that contradict each other."""
    counts = [saved.samples, *saved.rows.values()]
    counts += [stage.first for stage in saved.added]
    counts += [stage.reached for stage in saved.added if stage.reached is not None]
    if saved.base is not None:
        counts += [saved.base.sample, *saved.base.rows.values()]
    if min(counts) < 0 or max(counts) >= _LARGEST:
        raise _bad("a number is out of range", where)
    if sum(saved.rows.values()) != saved.samples:
        what = f"its sources gave {sum(saved.rows.values()):,} samples, but {saved.samples:,} are consumed"
        raise _bad(what, where)
    if saved.base is not None:
        base = saved.base
        exceeds = any(rows > saved.rows.get(name, 0) for name, rows in base.rows.items())
        if sum(base.rows.values()) != base.sample or base.sample > saved.samples or exceeds:
            raise _bad("the rows from which its blend was changed are not among those that were consumed", where)


def _require_names(stream: Stream, saved: LoaderState, where: str) -> None:
    """Refuse a state of other sources, or of sources that have the same names but other items."""
    if saved.sources.keys() != {name for name, rows in saved.rows.items() if rows}:
        raise _bad("it does not say of each source that gave rows which dataset it was", where)
    of_blend, is_blend = "" not in saved.rows, isinstance(stream.order, BlendOrder)
    if of_blend != is_blend:
        what, remedy = "the state of one dataset, but this is a blend", "resume with the dataset"
        if of_blend:
            what, remedy = "the state of a blend, but this is one dataset", "resume with the blend"
        raise DataError("state-differs", what, remedy=remedy, where=where)
    for name, identity in saved.sources.items():
        if name not in stream.sources:
            what = f"the state has {saved.rows[name]:,} rows of {name}, which the blend no longer names"
            raise DataError("state-differs", what, remedy="name it; without a path, if its rows are gone", where=where)
        source = stream.sources[name]
        if source is None:  # without a path: its rows lie in the past, and nothing is left to compare
            continue
        _require_same(name, identity, source.identity, where)
        most = _REPACKED if source.identity["order"] == "repacked" else _EPOCHS
        if saved.rows[name] // max(source.items, 1) >= most:  # a dataset may be empty
            raise _bad(f"{saved.rows[name]:,} rows are more than {most:,} epochs", where)


def _require_same(name: str, saved: Mapping[str, object], mine: Mapping[str, object], where: str) -> None:
    """Refuse a source whose identity differs from the saved one in any part."""
    for key in mine:
        if key not in saved:
            raise _bad(f"it has no {key}", where)
    for key in saved:
        if key not in mine:
            raise _bad(f"it has {key}, which this loader has not", where)
    for key in mine:
        # Types, too: to Python 1 equals True, and a damaged state may have either.
        if saved[key] != mine[key] or type(saved[key]) is not type(mine[key]):
            raise _differs(key, name, saved[key], mine[key], where)


def _differs(key: str, name: str, saved: object, mine: object, where: str) -> DataError:
    """Return the error for a state that differs from this loader in one part of an identity."""
    if key == "order" and all(BY_WEIGHTS in str(order) for order in (saved, mine)):
        what = "the state is from a run with other weights of row lengths, which place every batch of an epoch"
        return DataError("state-differs", what, remedy="resume with the weights that it began with", where=where)
    what = f"{key} of {name}" if name else key
    what = f"{what}: {saved} in the state, {mine} in this loader"
    remedy = "resume with the dataset, order and seed that the run began with"
    return DataError("state-differs", what, remedy=remedy, where=where)


def _stage_of(saved: SavedStage, names: Mapping[str, Any], where: str) -> Stage:
    """Return a saved stage that was added while training; refuse bad weights, and weights of unknown sources."""
    if not all(map(_WEIGHT.fullmatch, saved.weights.values())):
        raise _bad("a stage that was added while training has weights that are no fractions", where)
    weights = {name: Fraction(weight) for name, weight in saved.weights.items()}
    if not any(weights.values()):
        raise _bad("a stage that was added while training has no weights", where)
    if saved.reached is not None and saved.reached <= saved.first:
        raise _bad("a stage that was added while training has a ramp that ends before it begins", where)
    for name in weights:
        if name not in names:
            what, remedy = f"weights of {name} were set while training, which the blend no longer names", "name it"
            raise DataError("state-differs", what, remedy=remedy, where=where)
    return Stage(saved.first, weights, saved.reached)


def _require_past(order: BlendOrder, added: Sequence[Stage], saved: LoaderState, where: str) -> None:
    """Refuse a blend whose schedule differs from the saved one before the saved place."""
    schedule = order.scheduled(added)
    if saved.samples > schedule.samples:
        what = f"{saved.samples:,} samples are consumed, but the run has {schedule.samples:,}"
        raise DataError("state-differs", what, remedy="make it longer in the blend", where=where)
    for then, now in zip_longest(saved.past, _stretches(order, added, saved.samples)):
        if then == now:
            continue
        what = f"the checkpoint trained {_words(then)}; now it is {_words(now)}"
        remedy = "write this stage in rows, as it was, and change what comes after"
        # None: the state has stretches beyond its place. Not an integer: a source may stop between two samples.
        place = schedule.samples if now is None else float(now[0])
        raise DataError("state-differs", what, remedy=remedy, where=order.stage_at(place))


def _stretches(order: BlendOrder, added: Sequence[Stage], samples: int) -> list[Stretch]:
    """Return the past of a schedule up to a sample."""
    past = order.scheduled(added).past(samples)
    stretches: list[Stretch] = []
    for first, last, shares in past:
        stretches.append((first, last, {name: (start, end) for name, (start, end) in sorted(shares.items())}))
    return stretches


def _words(stretch: Stretch | None) -> str:
    """Describe a stretch of samples with its shares.

    >>> _words(("0", "1800", {"code": ("0.4", "0.4"), "web": ("0.6", "0.5")}))
    'samples 0 to 1800 with code 0.4, web 0.6 to 0.5'
    """
    if stretch is None:
        return "nothing more"
    first, last, shares = stretch
    parts = []
    for name, (start, end) in shares.items():
        if start == end:
            parts.append(f"{name} {start}")
        else:
            parts.append(f"{name} {start} to {end}")
    return f"samples {first} to {last} with {', '.join(parts)}"
