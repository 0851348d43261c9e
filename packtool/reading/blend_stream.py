"""A blend as one stream of samples, so that one number names a sample, its source and its row.

The schedule says what is dealt; what was dealt is in the state. A run that goes on may have another future: the rows
that each source has given so far are counted in the state, and dealing begins there anew where the schedule, changed,
would have given others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple, cast

import msgspec
import numpy as np
import xxhash

from packtool.blending.blend import Blend, names_blend, weights_of
from packtool.blending.dealing import Dealing
from packtool.blending.schedule import Exhausted, Schedule, Stage
from packtool.errors import DataError, UsageError
from packtool.options.check import suggest
from packtool.planning.plan import I64, by_value
from packtool.reading.batch import Batch, check_options, make_batch
from packtool.reading.blend_schedule import check_limits
from packtool.reading.blend_sources import Sources, several_lengths
from packtool.reading.raw_batch import RawBatch
from packtool.reading.recipe import CACHE_BYTES, SHARDS
from packtool.reading.stream import Key, Stream, rows_ahead, rows_in, state_differs

_OF_DATASETS = {"epochs": 1, "shuffle": True, "seed": None, "repack": False, "stores": ()}
"""Options of `Stream` that are not for blends, with what stands for their absence."""


class Begin(NamedTuple):
    """Where dealing began, other than with the run.

    Attributes:
        sample: the first that is dealt.
        rows: of each source before it.
    """

    sample: int
    rows: dict[str, int]


class BlendStream:
    """The samples of a blend, from the first to the last: one pass, without epochs of its own.

    It pickles with what it was opened with; a worker process opens its sources when it is first asked for a sample.

    Args:
        blend: as it was written.
        batch_tokens: tokens in a batch, by default a row.
        cache, cache_bytes, fetch: as in `packtool.open`.
        fields: of a batch, `source` among them; by default those that its datasets have, and `source` but with
            ``same`` labels.
        options: of `packtool.reading.make_batch`.

    Attributes:
        names: of the sources, by their numbers.
        items: samples of the run.
        batch_rows: rows that make `batch_tokens`.
        rows_ahead: as of `Stream`.
    """

    bucketed = False
    epochs = 1

    def __init__(
        self,
        blend: Blend,
        *,
        fields: Sequence[str] | None = None,
        batch_tokens: int | None = None,
        cache: Any = None,
        cache_bytes: str | int = CACHE_BYTES,
        fetch: str = SHARDS,
        **options: Any,
    ) -> None:
        check_options(options, BlendStream, make_batch)
        self.sources = Sources(blend, cache=cache, cache_bytes=cache_bytes, fetch=fetch)
        self.names = self.sources.names
        if fields is None and options.get("labels") == "same":
            # The losses of Transformers' models have a parameter of that name: model(**batch) would fail on it.
            fields = [name for name in self.sources.fields if name != "source"]
        self.options = {"fields": self.sources.fields if fields is None else tuple(fields), **options}
        self.batch_rows = rows_in(batch_tokens, self.sources.sequence_length)
        self.rows_ahead = rows_ahead(self.sources.sequence_length, len(self.sources.streams), near=self.near)
        self._added: tuple[Stage, ...] = ()
        self._begin: Begin | None = None
        self._dealing: Dealing | None = None
        self.batch([])  # options that make no sense are found here, not in a worker
        for stream in self.sources.streams.values():
            stream.epoch(0).require(self.options)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_dealing": None}

    def __len__(self) -> int:
        return self.items

    def __repr__(self) -> str:
        what = f"{self.items} rows of {self.sources.sequence_length} tokens, of {', '.join(self.names)}"
        return f"<packtool blend: {what}, {self.sources.blend.name}>"

    @property
    def items(self) -> int:
        return self.sources.schedule.samples

    @property
    def near(self) -> bool:
        """Whether all sources lie in directories of this machine."""
        return all(stream.near for stream in self.sources.streams.values())

    def begin_of(self, number: int) -> int:
        """Return the first sample of a pass, of which there is one.

        Raises:
            UsageError: there is no such pass.
        """
        if number > 1:
            what, remedy = f"the run ends with its {self.items:,} rows", "make it longer in the blend"
            raise UsageError("run-ended", what, remedy=remedy, where=self.sources.blend.name)
        return number * self.items

    def epoch_of(self, sample: int) -> tuple[int, int]:
        """Return the pass of a sample, and which of its samples it is."""
        return 0, sample

    def rows_of(self, sample: int) -> int:
        """Count the rows in a sample."""
        return 1

    full_rows_of = rows_of

    def located(self, samples: Sequence[Key]) -> I64:
        """Return the source and the row of some samples, as `batch` takes them, too: (samples, 2).

        Done where samples are chosen, so that what a worker was sent stays what it is when the schedule changes.
        """
        if not len(samples):
            return np.empty((0, 2), np.int64)
        numbers = np.asarray(samples, np.int64)
        if self._begin is not None and numbers.min() < self._begin.sample:
            what = f"sample {numbers.min():,} lies before {self._begin.sample:,}, from where the blend was changed"
            remedy = "begin anew with another loader"
            raise UsageError("run-changed", what, remedy=remedy, where=self.sources.blend.name)
        return np.stack(self._dealt().locate(numbers), axis=1)

    def next_block(self, sample: int) -> int:
        """Return the sample from which others come if weights are changed when this one is the next."""
        return self._dealt().next_block(sample)

    def pairs(self, batches: Sequence[Sequence[Key]]) -> I64:
        """Return what each row of some batches of samples that follow each other costs, as in `Stream.pairs`."""
        first, last = batches[0][0], batches[-1][-1]
        assert isinstance(first, int)
        assert isinstance(last, int)
        source, row = self._dealt().locate(np.arange(first, last + 1))
        costs = np.empty(len(source), np.int64)
        for number, places in by_value(source):  # rows of a source follow each other
            rows = range(int(row[places[0]]), int(row[places[-1]]) + 1)
            costs[places] = self.sources.stream(number).pairs([rows])
        return costs

    def read(self, keys: Sequence[Key] | I64) -> RawBatch:
        """Read what a batch of some samples is made of, by their numbers or `located`."""
        located = keys if isinstance(keys, np.ndarray) and keys.ndim == 2 else self.located(cast("Sequence[Key]", keys))
        source, row = located.T
        return self.sources.read(source, row, self.options)

    def batch(self, keys: Sequence[Key] | I64) -> Batch:
        """Build a training batch of some samples, by their numbers or `located`."""
        return self.read(keys).batch(**self.options)

    def state(self, samples: int) -> dict[str, Any]:
        """Return the state after some samples: what the run was so far, and the rows of each source.

        Returns:
            samples: as given.
            past: the digest of the schedule up to there.
            sources: of each that gave rows its identity, as in `Stream`, and `rows`.
            begin: where dealing began, if the schedule was changed; else None.
            stages: that were added while training.
        """
        rows = self._rows_before(samples)
        return {
            "samples": samples,
            "past": _digest(self.schedule, samples),
            "sources": {name: {"rows": count, **self._identity(name)} for name, count in rows.items() if count},
            "begin": None if self._begin is None else self._begin._asdict(),
            "stages": [_written(stage) for stage in self._added],
        }

    def restore(self, state: Mapping[str, Any]) -> int:
        """Go on from a state; the schedule may differ from there on.

        Returns:
            The samples before.

        Raises:
            DataError: not a state of a blend; or one with another past.
            UsageError: the sources that the blend has now do not last.
        """
        where = self.sources.blend.name
        try:
            saved = msgspec.convert(dict(state), _State)
        except (msgspec.ValidationError, TypeError):
            what = "not the state of a blend, which has samples, past, sources, begin and stages"
            raise DataError("bad-state", what, remedy="give what its state_dict returned", where=where) from None
        rows = dict.fromkeys(self.names, 0)
        for name, source in saved.sources.items():
            if name not in rows:
                what = f"the state has {source['rows']:,} rows of {name}, which the blend no longer names"
                remedy = "name it; without a path, if its rows are gone"
                raise DataError("state-differs", what, remedy=remedy, where=where)
            rows[name] = source["rows"]
            for key, value in self._identity(name).items():
                if source.get(key) != value:
                    raise state_differs(f"{key} of {name}", source.get(key), value, where)
        added = tuple(stage.read() for stage in saved.stages)
        schedule = _with(self.sources.schedule, added)
        if saved.samples > schedule.samples or _digest(schedule, saved.samples) != saved.past:
            what = f"the blend is another one before sample {saved.samples:,}, up to which the state goes"
            remedy = "restore its stages and limits up to there, and change what comes after"
            raise DataError("state-differs", what, remedy=remedy, where=where)
        check_limits(self.sources.blend, schedule, self.sources.extents)
        begin = None if saved.begin is None else Begin(saved.begin.sample, saved.begin.rows)
        self._added = added
        self._begin, self._dealing = self._continued(schedule, begin, Begin(saved.samples, rows))
        return saved.samples

    def add_stage(self, weights: Mapping[str, float], after: int, ramp_rows: int = 0) -> int:
        """Give sources other weights from the next block on, until the next stage of the blend begins.

        Args:
            weights: of sources.
            after: samples that were dealt already.
            ramp_rows: in which the weights are reached in a straight line; 0 for at once.

        Returns:
            The sample from which on they hold.

        Raises:
            UsageError: weights of no source, or of none that has rows; nothing is left of the run; more rows are needed
                than there are.
        """
        blend = self.sources.blend
        first = self.next_block(after)
        if first >= self.items:
            what, remedy = "the run ends before the next block", "make it longer in the blend"
            raise UsageError("run-ended", what, remedy=remedy, where=blend.name)
        for name in weights:
            if name not in self.names:
                what, remedy = f"there is no source {name!r}", suggest(name, self.names)
                raise UsageError("unknown-key", what, remedy=remedy, where="weights")
        stage = Stage(first, weights_of(weights), first + ramp_rows if ramp_rows else None)
        added = (*self._added, stage)
        schedule = _with(self.sources.schedule, added)
        check_limits(blend, schedule, self.sources.extents)
        self._dealing = Dealing(schedule, self._begin, self.sources.gone)
        self._added = added
        return first

    @property
    def schedule(self) -> Schedule:
        """The schedule, with the stages that were added."""
        return _with(self.sources.schedule, self._added)

    def _dealt(self) -> Dealing:
        if self._dealing is None:
            if self._begin is None:
                self.sources.require_paths()
            self._dealing = Dealing(self.schedule, self._begin, self.sources.gone)
        return self._dealing

    def _continued(self, schedule: Schedule, begin: Begin | None, now: Begin) -> tuple[Begin | None, Dealing]:
        """Return where dealing began, and the dealing: as before if that gave the same rows, else from now on."""
        gone = self.sources.gone
        try:
            if begin is not None or not gone:
                dealing = Dealing(schedule, begin, gone)
                if dealing.before(now.sample).tolist() == list(now.rows.values()):
                    return begin, dealing
            return now, Dealing(schedule, now, gone)
        except Exhausted as error:
            what = f"at row {error.sample:,} of {schedule.samples:,} no source has rows left"
            remedy = "shorten the run, or raise max-epochs"
            raise UsageError("source-exhausted", what, remedy=remedy, where=self.sources.blend.name) from None

    def _rows_before(self, samples: int) -> dict[str, int]:
        if samples == 0:
            return dict.fromkeys(self.names, 0)
        return dict(zip(self.names, self._dealt().before(samples).tolist(), strict=True))

    def _identity(self, name: str) -> dict[str, Any]:
        stream = self.sources.streams.get(name)
        return {} if stream is None else stream.identity


class _SavedStage(msgspec.Struct):
    first: int
    weights: dict[str, str]
    reached: int | None

    def read(self) -> Stage:
        return Stage(self.first, {name: Fraction(text) for name, text in self.weights.items()}, self.reached)


class _SavedBegin(msgspec.Struct):
    sample: int
    rows: dict[str, int]


class _State(msgspec.Struct):
    samples: int
    past: str
    sources: dict[str, dict[str, Any]]
    begin: _SavedBegin | None
    stages: list[_SavedStage]


def _written(stage: Stage) -> dict[str, Any]:
    weights = {name: str(weight) for name, weight in stage.weights.items()}
    return {"first": stage.first, "weights": weights, "reached": stage.reached}


def _with(schedule: Schedule, added: Sequence[Stage]) -> Schedule:
    for stage in added:
        schedule = schedule.also(stage)
    return schedule


def _digest(schedule: Schedule, sample: int) -> str:
    return xxhash.xxh3_128_hexdigest(msgspec.json.encode(schedule.past(sample)))


def open_stream(source: str | Path | Blend, **options: Any) -> Stream | BlendStream:
    """Open the stream of a dataset, or of a blend, which says itself what else would be said of a dataset.

    Args:
        options: as in `Stream`.

    Raises:
        UsageError: options that a blend does not take; as in `Stream`.
    """
    if not isinstance(source, Blend) and not names_blend(source):
        return Stream(source, **options)
    blend = source if isinstance(source, Blend) else Blend.read(source)
    one = several_lengths(blend, options)
    if one is None:
        for name, default in _OF_DATASETS.items():
            if options.pop(name, default) != default:
                what, remedy = "a blend says this itself, of each source", "write it in the blend, or leave it out"
                raise UsageError("option-not-taken", what, remedy=remedy, where=name)
        options.pop("drop_rest", None)  # what fills no batch is at the end of the run alone
        return BlendStream(blend, **options)
    own = {"seed": one.seed, "repack": one.repack, "stores": one.stores, "batch_tokens": blend.batch_tokens}
    given = {name: value for name, value in options.items() if name not in own or value}
    return Stream(str(one.path), blend=blend, **{**own, **given})
