"""Blends as users write them, in a file or in Python: named sources, and stages of weights.

    tokens = "40B"                              the run: tokens, rows or steps (of batch-size rows)

    [sources.web]
    path = "web-rows"                           relative to the file

    [sources.code]
    path = "code-rows"
    max-epochs = 4

    [[stages]]
    weights = { web = 0.8, code = 0.2 }

    [[stages]]
    from = "60%"                                or "24B tokens", "12M rows", "6000 steps"
    ramp = true                                 in a straight line until the next stage or the end; or until "80%"
    weights = { web = 0.3, code = 0.7 }

Without stages the weights are the sizes of the sources; without a length of the run every row comes once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import xxhash

from packtool.blending.schedule import Stage
from packtool.errors import UsageError
from packtool.options.check import suggest
from packtool.options.kinds import (
    AMOUNT,
    FLAG,
    PLACE,
    PLACES,
    POSITIVE,
    WHOLE,
    Kind,
    parse_amount,
    parse_exact,
    parse_share,
    shown,
)
from packtool.options.values import read_value
from packtool.places.url import as_typed, is_remote
from packtool.support.toml_file import Key, TomlFile, read_toml

if TYPE_CHECKING:
    from packtool.places.typed import Typed

_UNITS = ("tokens", "rows", "steps")  # units of the length of a run, and of the start of a stage
MOST_SAMPLES = 10**12
"""Samples of the longest run. The rows of each source are counted for every block of a few thousand samples, and these
counts must fit in memory."""
_KEYS = ("sources", "stages", *_UNITS, "batch_size", "batch_tokens")


@dataclass(frozen=True)
class WrittenSource:
    """A source as it was written."""

    where: str  # file and line, or the name of the argument in Python, for messages
    path: Typed | None = None  # path or URL of a packed dataset; None if a resumed run has read all its rows
    max_epochs: int | None = None  # how often the source may be read; None for no limit
    stop: bool = False  # at that limit the other sources share its weight; without `stop` it is an error
    repack: bool = False  # pack its documents anew for every epoch
    shuffle: bool = True  # read every epoch in its own order; otherwise in stored order
    seed: int | None = None  # seed of the orders; None for the seed of the dataset
    stores: tuple[Typed, ...] = ()  # token stores of a dataset without tokens, if its manifest's places are wrong


@dataclass(frozen=True)
class Amount:
    """A part of a run, or all of it."""

    where: str  # file and line, or argument, for messages
    unit: str  # ``tokens``, ``rows``, ``steps``, or ``share`` of the run
    number: Fraction  # number of these units; a share is from 0 to 1


@dataclass(frozen=True)
class WrittenStage:
    """A stage as it was written."""

    where: str  # file and line, or argument, for messages
    weights: dict[str, Fraction]  # weights by source, or by row length
    start: Amount | None  # where the stage begins; None for the start of the run
    ramp: Amount | bool  # where a ramp reaches the weights; True for the end of the stage, False for no ramp
    places: dict[str, str]  # where each weight is written, by name, for messages


class Blend:
    """Several packed datasets, read by weights that may change on a schedule.

    Args:
        sources: packed datasets by name. A source is a path or URL, or a mapping with `path` and any of `max_epochs`
            (how often the run may read it), `stop` (at that limit the other sources share its weight, in place of an
            error), `repack`, `shuffle`, `seed` and `stores`, as in `packtool.torch.Loader`.
        stages: mappings in order, with `weights` by source. Every stage but the first has `from`, where it begins:
            ``"60%"``, ``"24B tokens"``, ``"12M rows"`` or ``"6000 steps"``. A stage may have `ramp`: True to reach its
            weights in a straight line at the next stage or the end, or the place where they are reached, such as
            ``"80%"``. Without stages the weights are the sizes of the sources. Of one dataset of several row lengths,
            weights are by row length.
        tokens, rows, steps: the length of the run, one of the three; ``"40B"`` is 40 billion. By default, without
            stages, every row comes once.
        batch_size: rows in a step, if a length or a place is in steps.
        batch_tokens: tokens in a batch of a dataset of several row lengths; by default as in its stored batches.

    Raises:
        UsageError: an unknown key; a value of the wrong kind; stages out of order; weights that are all zero.

    >>> blend = Blend({"web": "web-rows", "code": "code-rows"}, [{"weights": {"web": 3, "code": 1}}], rows=1000)
    >>> sorted(blend.sources), blend.stages[0].weights["web"]
    (['code', 'web'], Fraction(3, 1))
    """

    def __init__(
        self,
        sources: Mapping[str, str | Path | Mapping[str, Any]],
        stages: Sequence[Mapping[str, Any]] = (),
        *,
        tokens: str | int | None = None,
        rows: str | int | None = None,
        steps: str | int | None = None,
        batch_size: int | None = None,
        batch_tokens: int | None = None,
    ) -> None:
        given = {"sources": sources, "stages": stages, "tokens": tokens, "rows": rows, "steps": steps}
        given |= {"batch_size": batch_size, "batch_tokens": batch_tokens}
        self._set("blend", None, _Reader(), {key: value for key, value in given.items() if value not in (None, ())})

    @classmethod
    def read(cls, path: str | Path) -> Blend:
        """Read a blend from a TOML file; paths in it are relative to it.

        Raises:
            DataError: the file can't be read.
            UsageError: as in `Blend`, with the line in the file.
        """
        file = read_toml(path)
        if "sources" not in file.values:
            _require_no_options(file)
        blend = cls.__new__(cls)
        blend._set(str(path), file.path.parent, _Reader(file.place), file.values)
        return blend

    def _set(self, name: str, base: Path | None, reader: _Reader, values: Mapping[str, Any]) -> None:
        """Check the values of a blend, and set its attributes.

        Args:
            base: directory that paths are relative to; None for the working directory.
        """
        self.name = name
        top = reader.table((), values, _KEYS)
        written = reader.mapping(("sources",), top.get("sources"), "sources: at least one packed dataset by its name")
        self.sources = {key: reader.source(key, value, base) for key, value in written.items()}
        self.batch_size = reader.count("batch_size", top.get("batch_size"))
        self.batch_tokens = reader.count("batch_tokens", top.get("batch_tokens"))
        lengths = [unit for unit in _UNITS if unit in top]
        if len(lengths) > 1:
            raise reader.error(
                "bad-option", lengths[1:2], f"the run has {lengths[0]} already", "give one length of the run"
            )
        self.length: Amount | None = None
        if lengths:
            self.length = reader.length(lengths[0], top[lengths[0]])
        stages = top.get("stages", ())
        if not isinstance(stages, Sequence) or isinstance(stages, str):
            raise reader.error("bad-type", ("stages",), "stages are not a list", "write [[stages]] for each")
        self.stages = [reader.stage(number, stage) for number, stage in enumerate(stages)]

    def __repr__(self) -> str:
        return f"<packtool blend: {', '.join(sorted(self.sources))}, {self.name}>"

    def digest(self) -> str:
        """Return the digest of the stages, as they are written."""
        plain = []
        for stage in self.stages:
            # As text, which stays the same: states of loaders hold the digest.
            plain.append([_stable(stage.start), _stable(stage.ramp), *map(str, sorted(stage.weights.items()))])
        return xxhash.xxh3_64_hexdigest(repr(plain).encode())

    def samples(self, amount: Amount, sizes: Sizes) -> int:
        """Return an amount in samples, rounded down.

        Raises:
            UsageError: an amount in rows, where samples are batches; in steps of an unknown size; above `MOST_SAMPLES`.
        """
        samples = self._samples(amount, sizes)
        if samples > MOST_SAMPLES:
            what = f"{samples:,} samples, of which a run has {MOST_SAMPLES:,} at most"
            raise UsageError("bad-option", what, remedy="give less", where=amount.where)
        return samples

    def _samples(self, amount: Amount, sizes: Sizes) -> int:
        """Return an amount in samples, as `samples` does, but of any size."""
        if amount.unit == "rows" and sizes.batches:
            remedy = "give tokens, steps or a share of the run"
            raise UsageError("bad-option", "rows of several lengths", remedy=remedy, where=amount.where)
        if amount.unit == "share":
            return int(amount.number * sizes.samples)
        if amount.unit == "tokens":
            return int(amount.number / sizes.tokens)
        if amount.unit == "rows" or sizes.batches:
            return int(amount.number)  # where samples are batches, a step is one sample
        if self.batch_size is None:
            remedy = "give batch-size, the rows of a step over all ranks"
            raise UsageError("missing-option", "steps of an unknown size", remedy=remedy, where=amount.where)
        return int(amount.number * self.batch_size)

    def resolved(self, sizes: Sizes) -> list[Stage]:
        """Return the stages, with places in samples.

        Raises:
            UsageError: as in `samples`; stages out of order; ramps that end before they begin.
        """
        starts = []
        for stage in self.stages:
            if stage.start is None:
                starts.append(0)
            else:
                starts.append(self.samples(stage.start, sizes))
        ends = [*starts[1:], sizes.samples]
        out: list[Stage] = []
        for stage, first, after in zip(self.stages, starts, ends, strict=False):
            if out and first <= out[-1].first:
                what = f"begins with sample {first:,}, and the stage before it with {out[-1].first:,}"
                raise UsageError("bad-option", what, remedy="write stages in their order", where=stage.where)
            reached = None
            if isinstance(stage.ramp, Amount):
                reached = self.samples(stage.ramp, sizes)
            elif stage.ramp:
                reached = after
            if reached is not None and reached <= first:
                what = f"the ramp would end at sample {reached:,}, but begins at {first:,}"
                raise UsageError("bad-option", what, remedy="let it end later", where=stage.where)
            out.append(Stage(first, stage.weights, reached))
        return out


def weights_of(written: Mapping[str, float]) -> dict[str, Fraction]:
    """Return weights as exact fractions of the written decimals.

    Raises:
        UsageError: a weight is not a number of 0 or more; or all are zero.

    >>> weights_of({"web": 0.3})
    {'web': Fraction(3, 10)}
    """
    return _Reader().weights(("weights",), written)


def names_blend(path: str | Path) -> bool:
    """Return whether a path is the file of a blend, by its suffix.

    >>> names_blend("blend.toml"), names_blend("packed")
    (True, False)
    """
    return str(path).endswith(".toml")


def _require_no_options(file: TomlFile) -> None:
    """Refuse a file with options of commands, which `packtool run` takes, in place of a blend."""
    from packtool.options.commands import STAGES, arguments_of  # here, so that reading rows does not load options
    from packtool.options.declare import declared

    options = set(STAGES)
    for stage in STAGES:
        options |= set(declared(arguments_of(stage)))
    options -= set(_KEYS)
    for key in file.values:
        if key.replace("-", "_") in options:
            what = f"{key} is for packtool run, and this is no blend, which has [sources]"
            raise UsageError("not-a-blend", what, remedy=f"run it: packtool run {file.path}", where=file.place(key))


@dataclass(frozen=True)
class Sizes:
    """The sizes that turn amounts into samples."""

    tokens: int  # tokens in a sample
    samples: int  # samples of the run
    batches: bool = False  # whether samples are batches, rather than rows


class _Reader:
    """Checks the values of a blend by their keys, and converts them.

    Args:
        place: function that returns where the value of some keys was written; by default its name in Python.
    """

    def __init__(self, place: Callable[..., str] | None = None) -> None:
        self._where = place or _in_python
        self._spelled: dict[tuple[Key, ...], Key] = {}

    def _place(self, *keys: Key) -> str:
        """Return where a value was written, with its keys as they are spelled there: `max-epochs` or `max_epochs`."""
        spelled = [self._spelled.get(keys[: size + 1], key) for size, key in enumerate(keys)]
        return self._where(*spelled)

    def error(self, code: str, keys: Sequence[Key], what: str, remedy: str) -> UsageError:
        where = self._place(*keys)
        return UsageError(code, what, remedy=remedy, where=where)

    def mapping(self, keys: tuple[Key, ...], value: Any, words: str) -> Mapping[str, Any]:
        if value is None:
            raise self.error("missing-option", keys, f"no {keys[-1]}", f"give {words}")
        if not isinstance(value, Mapping) or not value or not all(isinstance(key, str) and key for key in value):
            raise self.error("bad-type", keys, f"no {keys[-1]}", f"give {words}")
        return value

    def table(self, keys: tuple[Key, ...], value: Any, known: Sequence[str]) -> dict[str, Any]:
        """Return a table with the keys that Python has: `max_epochs` for `max-epochs`."""
        if not isinstance(value, Mapping):
            raise self.error("bad-type", keys, f"{shown(value)} is not a table", "give a path, or a table of options")
        out: dict[str, Any] = {}
        for key, inside in value.items():
            name = str(key).replace("-", "_")
            if name not in known:
                remedy = suggest(name.replace("_", "-"), [known_key.replace("_", "-") for known_key in known])
                raise self.error("unknown-key", (*keys, key), f"a blend has no key {key!r} here", remedy)
            if name in out:
                where = self._where(*keys, key)
                raise UsageError("duplicate-key", f"{key} is given twice", remedy="keep one of them", where=where)
            out[name] = inside
            self._spelled[*keys, name] = key
        return out

    def value(self, kind: Kind, keys: tuple[Key, ...], value: Any) -> Any:
        """Return a value, parsed and checked by its kind."""
        name = str(keys[-1]).replace("_", "-")
        return read_value(kind, name, value, self._place(*keys))

    def source(self, name: str, value: Any, base: Path | None) -> WrittenSource:
        keys = ("sources", name)
        written: dict[str, Any] = {"path": value}
        if not isinstance(value, str | Path):
            written = self.table(keys, value, tuple(_OF_SOURCE))
        given = {key: self.value(_OF_SOURCE[key], (*keys, key), item) for key, item in written.items()}
        stores = tuple(_relative(store, base) for store in given.pop("stores", ()))
        path = _relative(given.pop("path"), base) if "path" in given else None
        return WrittenSource(self._place(*keys), path, stores=stores, **given)

    def count(self, key: str, value: Any) -> int | None:
        """Return a positive number of the blend; None if it is not given."""
        if value is None:
            return None
        number: int = self.value(POSITIVE, (key,), value)
        return number

    def length(self, unit: str, value: Any) -> Amount:
        return Amount(self._place(unit), unit, Fraction(self.value(AMOUNT, (unit,), value)))

    def stage(self, number: int, value: Any) -> WrittenStage:
        keys: tuple[Key, ...] = ("stages", number)
        given = self.table(keys, value, ("from", "ramp", "weights"))
        weights = self.weights((*keys, "weights"), given.get("weights"))
        start, ramp = None, given.get("ramp", False)
        if "from" in given:
            start = self._amount((*keys, "from"), given["from"])
        begins_with_the_run = start is None or not start.number
        if number == 0 and not begins_with_the_run:
            what = "the first stage does not begin with the run"
            raise self.error("bad-option", keys, what, "leave out its from")
        if number > 0 and begins_with_the_run:
            what, remedy = "it is not said where it begins", 'give from = "60%", or tokens, rows or steps'
            raise self.error("bad-option", keys, what, remedy)
        if not isinstance(ramp, bool):
            ramp = self._amount((*keys, "ramp"), ramp)
        if ramp and number == 0:
            raise self.error(
                "bad-option", (*keys, "ramp"), "there is nothing to ramp from", "leave it out in the first stage"
            )
        places = {name: self._place(*keys, "weights", name) for name in weights}
        return WrittenStage(self._place(*keys), weights, start, ramp, places)

    def weights(self, keys: tuple[Key, ...], value: Any) -> dict[str, Fraction]:
        written = self.mapping(keys, value, "a weight for each source")
        parsed = {}
        for name, weight in written.items():
            parsed[name] = read_value(_WEIGHT, "a weight", weight, self._place(*keys, name))
        if not any(parsed.values()):
            raise self.error("bad-option", keys, "all weights are zero", "give a source a weight")
        return parsed

    def _amount(self, keys: tuple[Key, ...], value: Any) -> Amount:
        unit, number = self.value(_BEGIN, keys, value)
        return Amount(self._place(*keys), unit, number)


def _parse_place(value: Any) -> Any:
    """Parse the path or URL of a dataset. An empty one is refused: it would be the working directory."""
    if not value:
        raise ValueError(value)
    return PLACE.parse(value)


def _parse_weight(value: Any) -> Fraction:
    """Parse a weight exactly as it is written.

    >>> _parse_weight(0.3)
    Fraction(3, 10)
    """
    number = isinstance(value, int | float | Fraction) and not isinstance(value, bool)
    if not number or not 0 <= value <= _MOST_WEIGHT:
        raise ValueError(value)
    if isinstance(value, Fraction):
        return value
    return parse_exact(str(value))  # of the decimals that were written: 0.3 is 3/10, which the float is not


def _parse_begin(value: Any) -> tuple[str, Fraction]:
    """Parse a part of a run to its unit and number; the unit of a percentage is ``share``.

    >>> _parse_begin("60%"), _parse_begin("6000 steps"), _parse_begin(0)
    (('share', Fraction(3, 5)), ('steps', Fraction(6000, 1)), ('rows', Fraction(0, 1)))
    """
    text = "0 rows" if value == 0 else str(value).strip()
    if text.endswith("%"):
        return "share", parse_share(text)
    match = re.fullmatch(r"(.+?)\s*(tokens|rows|steps)", text)
    if match is None:
        raise ValueError(value)
    number, unit = match[1], match[2]
    return unit, Fraction(0 if number == "0" else parse_amount(number))


_MOST_WEIGHT = 1 << 64
_WEIGHT = Kind("a number of 0 or more", "", Any, _parse_weight)
_BEGIN = Kind(
    'a share of the run, or tokens, rows or steps, as "60%", "24B tokens", "12M rows", "6000 steps"',
    "",
    int | float | str,
    _parse_begin,
)
_OF_SOURCE = {
    "path": Kind("a path or URL", "", str, _parse_place),
    "max_epochs": POSITIVE,
    "stop": FLAG,
    "repack": FLAG,
    "shuffle": FLAG,
    "seed": WHOLE,
    "stores": Kind("a list of paths or URLs", "", PLACES.in_file, PLACES.parse),
}
"""The kinds of the values of a source, by key."""


def _stable(amount: Amount | bool | None) -> str:
    """Return the start or ramp of a stage as a text that does not depend on where it is written."""
    if isinstance(amount, Amount):
        return f"{amount.number} {amount.unit}"
    return str(amount)


def _in_python(*keys: Key) -> str:
    """Name a value of the arguments of `Blend`.

    >>> _in_python("stages", 1, "weights")
    'stages[1].weights'
    """
    out = ""
    for key in keys:
        out += f"[{key}]" if isinstance(key, int) else f".{key}"
    return out.removeprefix(".") or "blend"


def _relative(path: str | Path, base: Path | None) -> str:
    """Return a path relative to the directory that it was written in, or a URL."""
    typed = as_typed(path)
    if base is None or is_remote(typed):
        return str(typed)
    return str(base / path)
