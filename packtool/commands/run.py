"""`run`: run a pipeline from one file. Finished, unchanged stages are kept; interrupted ones resume.

The tables of the file are the stages, in the order they run:

    [tokenize]       input: --input, or its own                 output: tokens
    [[pack]]         input: every token store made before       output: packed
    [[shuffle]]      input: the dataset (or store) made before  output: shuffled
    [[materialize]]  input: the dataset made before             output: materialized
    [[export]]       input: the dataset made last               output: exported
    [[stats]]        input: the dataset made last

A stage may name its input: the `output` of an earlier table, or any other path. Outputs lie under `--output`, which may
be a URL.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, TypeAlias

from packtool.commands.result import Preview
from packtool.config import INPUT, StageTable, read
from packtool.engines import available_cpus
from packtool.engines.cluster import started
from packtool.errors import PacktoolError, UsageError
from packtool.formats.known import KnownDataset, known
from packtool.options.check import checked
from packtool.options.commands import arguments_of
from packtool.options.declare import declared
from packtool.options.run import RunArguments
from packtool.options.signature import takes
from packtool.outputs.claim import look, require_free
from packtool.places.typed import Typed, place_of
from packtool.places.url import as_typed, dataset_url, is_remote
from packtool.support.clock import Clock
from packtool.text.corpus.once import is_once

DEFAULT_OUTPUT = {
    "tokenize": "tokens",
    "pack": "packed",
    "shuffle": "shuffled",
    "materialize": "materialized",
    "export": "exported",
}
Location: TypeAlias = Path | str
"""A directory, or the URL of one."""

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class PipelineStage:
    """One step of a pipeline."""

    name: str  # the command
    table: StageTable  # where it is configured
    inputs: tuple[str, ...]  # what it reads
    output: Location | None  # the directory or URL that it writes; None for `stats`
    options: dict[str, Any]  # the other arguments of the command's function
    needs: tuple[Location, ...]  # outputs of earlier stages among its inputs

    def arguments(self) -> tuple[Any, ...]:
        """Return the positional arguments of the command's function."""
        source: Any = self.inputs[0]
        if self.name in ("tokenize", "pack", "export"):
            source = list(self.inputs)
        if self.output is None:
            return (source,)
        return (source, self.output)


@dataclass(frozen=True)
class StageResult:
    """The outcome of a stage.

    Attributes:
        stage: what was to be done.
        state: ``done``; ``kept`` (finished before, unchanged); after a dry run ``would keep``, ``would continue``,
            ``would replace``, ``would refuse``, ``would do``, or ``would compare`` (something is there, and whether it
            is kept depends on what an earlier stage makes).
        seconds: wall seconds it took.
        result: what the command returned; None if it was not run.
        preview: after a dry run, what the stage would do; None where that depends on an earlier stage.
    """

    stage: PipelineStage
    state: str
    seconds: float = 0.0
    result: Any = None
    preview: Preview | None = None


@takes(RunArguments)
def run(options: RunArguments) -> list[StageResult]:
    """Run the stages of a configuration file, in order.

    Raises:
        UsageError: the file makes no sense, or an output holds something that the stage did not write.
        DataError: a stage can't use its input.
    """
    tables = read(options.configuration)
    inputs = list(map(str, _several(options.input)))
    name = Path(options.configuration).stem
    if name == "-":  # standard input
        name = "run"
    planned = stages(tables, inputs, options.output or name)
    _check_all(planned)
    if options.scheduler is None or options.dry_run:
        return _stages(planned, options)
    with started(options.scheduler, options.workers or available_cpus()) as scheduler:
        return _stages(planned, replace(options, scheduler=scheduler))


def _several(given: Any) -> list[Any]:
    """Return what was given as a list, whether it is one thing or several."""
    if isinstance(given, str | Path):
        return [given]
    return list(given)


def _stages(planned: Sequence[PipelineStage], options: RunArguments) -> list[StageResult]:
    """Run each stage; all of them use the same scheduler."""
    results: list[StageResult] = []
    for number, stage in enumerate(planned, 1):
        if options.announce is not None:
            options.announce(number, len(planned), stage)
        values = {"quiet": options.quiet, **stage.options}
        for name in ("workers", "scheduler", "staging", "staging_limit"):
            if getattr(options, name) is not None and name in declared(arguments_of(stage.name)):
                values.setdefault(name, getattr(options, name))
        with _located(stage):
            if options.dry_run:
                results.append(_preview(stage, values, results, options.overwrite))
            else:
                results.append(_do(stage, values, options.overwrite))
    return results


def _function(command: str, name: str) -> Callable[..., Any]:
    """Return a function of the module of a command: the command itself, or what checks its options."""
    function: Callable[..., Any] = getattr(import_module(f"packtool.commands.{command}"), name)
    return function


def _check_all(planned: Sequence[PipelineStage]) -> None:
    """Find mistakes in late stages before the early ones have taken hours.

    Each command says whether it can do what is asked. What a stage reads is known by its manifest, or of the stage that
    will make it.
    """
    made: dict[str, KnownDataset] = {}

    def known_or_made(typed: Typed) -> KnownDataset:
        return made.get(str(typed)) or known(typed)

    for stage in planned:
        with _located(stage):
            made[str(stage.output)] = _function(stage.name, "makes")(_options(stage), known_or_made)
        if stage.output is not None:
            require_free(place_of(stage.output), stage.name, stage.inputs)


@contextmanager
def _located(stage: PipelineStage) -> Iterator[None]:
    """Point errors of the block into the file of the run."""
    try:
        yield
    except PacktoolError as error:
        raise stage.table.locate(error) from None


def _options(stage: PipelineStage) -> Any:
    """Return the arguments of a stage as its command takes them."""
    if any(map(is_once, stage.inputs)):
        what = "standard input and pipes can't be read twice, so a run could not be resumed"
        remedy = "write it to a file first, or use packtool tokenize -"
        raise UsageError("stdin-no-resume", what, remedy=remedy, where=stage.table.place(INPUT))
    for name, declaration in declared(arguments_of(stage.name)).items():
        if declaration.required and declaration.missing and name not in stage.options:
            what, where = f"{stage.name} needs the option {name}", stage.table.place()
            raise UsageError("missing-option", what, remedy=declaration.missing, where=where)
    return checked(arguments_of(stage.name)(*stage.arguments(), **stage.options))


def _do(stage: PipelineStage, options: dict[str, Any], overwrite: bool) -> StageResult:
    clock = Clock()
    function = partial(_function(stage.name, stage.name), *stage.arguments(), **options)
    if stage.output is None:
        if "html" in options:
            Path(options["html"]).parent.mkdir(parents=True, exist_ok=True)
        result = function()
        return StageResult(stage, "done", clock.seconds()["wall"], result)
    try:
        result = function(resume=True)
    except UsageError as error:
        if error.code not in ("resume-differs", "nothing-to-resume"):
            raise
        if not overwrite:
            remedy = "give --overwrite=True to make it anew, or another --output"
            raise UsageError(error.code, error.what, remedy=remedy, where=error.where) from None
        result = function(overwrite=True)
    state, seconds = "kept" if result.kept else "done", clock.seconds()["wall"]
    log.info("%s: %s in %.1f s", stage.output, state, seconds)
    return StageResult(stage, state, seconds, result)


def _preview(
    stage: PipelineStage, options: dict[str, Any], before: Sequence[StageResult], overwrite: bool
) -> StageResult:
    """Preview a stage, as far as that is possible before the stages it needs have run."""
    if stage.output is None:
        return StageResult(stage, "would do")
    changing = [result.stage.output for result in before if result.state != "would keep"]
    if any(path in changing for path in stage.needs):
        occupied = look(place_of(stage.output)).names
        return StageResult(stage, "would compare" if occupied else "would do")
    preview = _function(stage.name, stage.name)(*stage.arguments(), **options, dry_run=True).preview
    states = {"nothing": "would do", "finished": "would keep", "unfinished": "would continue"}
    state = states.get(preview.found)
    if state is None:
        state = "would replace" if overwrite else "would refuse"
    return StageResult(stage, state, preview=preview)


def stages(tables: Sequence[StageTable], inputs: Sequence[str] = (), root: Location = ".") -> list[PipelineStage]:
    """Settle what each stage reads and writes.

    Args:
        tables: from `packtool.config.read`, in order.
        inputs: corpus for `tokenize`; without such a table, token stores (or a dataset) for what comes first.
        root: directory or URL that relative outputs lie in; pages lie next to it only in a directory.

    Raises:
        UsageError: an input is unknown or ambiguous, or two outputs are the same.
    """
    done: list[PipelineStage] = []
    pages = Path()
    if not is_remote(as_typed(root)):
        pages = Path(root)
    for table in tables:
        alone = sum(other.stage == table.stage for other in tables) == 1
        output = _output(table, alone, root)
        paths = _inputs(table, inputs, done, alone, root)
        if table.stage not in ("tokenize", "pack", "export") and len(paths) > 1:
            raise _ambiguous(table, "takes one input", "name one of them")
        options = dict(table.values)
        for name in (INPUT, "output"):
            options.pop(name, None)
        if "html" in options:
            options["html"] = str(pages / options["html"])
        read = {*paths, *_resolve_others(table.stage, options, {str(stage.output) for stage in done}, root)}
        needs = tuple(stage.output for stage in done if stage.output is not None and str(stage.output) in read)
        stage = PipelineStage(table.stage, table, tuple(paths), output, options, needs)
        _require_apart(stage, done)
        done.append(stage)
    return done


def place_in(root: Location, name: str) -> Location:
    """Resolve a name in a directory, or below a URL.

    >>> place_in("s3://bucket/run", "packed"), place_in("data", "packed"), place_in("data", "s3://bucket/packed")
    ('s3://bucket/run/packed', PosixPath('data/packed'), 's3://bucket/packed')
    """
    if is_remote(as_typed(name)):
        return dataset_url(as_typed(name))
    if is_remote(as_typed(root)):
        return dataset_url(f"{as_typed(root).rstrip('/')}/{name}")
    return Path(root) / name


def _output(table: StageTable, alone: bool, root: Location) -> Location | None:
    if table.stage not in DEFAULT_OUTPUT:
        return None
    if "output" not in table.values and not alone:
        what = f"one of several [[{table.stage}]] tables without an output of its own"
        remedy = 'give each a name, such as output = "concat-2048"'
        raise UsageError("missing-option", what, remedy=remedy, where=table.place())
    return place_in(root, str(table.values.get("output", DEFAULT_OUTPUT[table.stage])))


def _inputs(
    table: StageTable, given: Sequence[str], done: Sequence[PipelineStage], alone: bool, root: Location
) -> list[str]:
    """List the inputs of a stage: what it names, or the outputs of earlier stages, or else the command line's."""
    if table.stage == "tokenize" and given:
        if not alone:
            raise _ambiguous(table, "one of several [[tokenize]] tables", "leave --input out, and name it in each")
        return list(given)
    if INPUT in table.values:
        made = {str(stage.output) for stage in done}
        return [_input(name, made, root) for name in _several(table.values[INPUT])]
    outputs = [str(stage.output) for stage in _before(table, done)]
    if not outputs:
        if given and not any(stage.name == "tokenize" for stage in done):
            return list(given)
        remedy = "give --input, or name it in the table"
        raise UsageError("missing-input", f"{table.stage} has no input", remedy=remedy, where=table.place())
    if len(outputs) > 1 and table.stage != "pack":
        raise _ambiguous(table, f"has several possible inputs: {', '.join(outputs)}", "name one of them: input = ...")
    return outputs


def _resolve_others(stage: str, options: dict[str, Any], made: Container[str], root: Location) -> list[str]:
    """Resolve the other datasets that options of a stage name; return the ones that an earlier table makes."""
    others: list[str] = []
    if stage == "tokenize":  # whose `exclude` has patterns of files
        return others
    if "holdout_of" in options:
        options["holdout_of"] = _input(str(options["holdout_of"]), made, root)
        others.append(options["holdout_of"])
    if "exclude" in options:
        options["exclude"] = [_input(str(name), made, root) for name in _several(options["exclude"])]
        others += options["exclude"]
    return [name for name in others if name in made]


def _input(name: str, made: Container[str], root: Location) -> str:
    """Resolve the name of an output that an earlier table makes; anything else stays as given."""
    try:
        output = str(place_in(root, name))
    except UsageError:  # a URL of another kind
        return name
    if output in made:
        return output
    return name


def _before(table: StageTable, done: Sequence[PipelineStage]) -> Iterator[PipelineStage]:
    """List the stages whose outputs a table reads unless it says otherwise."""
    made = defaultdict(list)
    for stage in done:
        made[stage.name].append(stage)
    reads_store = table.values.get("method") == "partial" or "compare" in table.values
    if table.stage == "pack" or reads_store:
        yield from made["tokenize"]
    elif table.stage == "shuffle":
        yield from made["pack"]
    elif table.stage == "materialize":
        yield from made["shuffle"] or made["pack"]
    else:
        yield from made["materialize"] or made["shuffle"] or made["pack"] or made["tokenize"]


def _ambiguous(table: StageTable, what: str, remedy: str) -> UsageError:
    return UsageError("ambiguous-input", f"{table.stage}: {what}", remedy=remedy, where=table.place())


def _resolved(place: Location) -> str:
    if isinstance(place, str):
        return place
    return str(place.resolve())


def _require_apart(stage: PipelineStage, done: Sequence[PipelineStage]) -> None:
    for other in done:
        if stage.output is None or other.output is None:
            continue
        one, two = _resolved(stage.output), _resolved(other.output)
        if one == two or one.startswith(f"{two}/") or two.startswith(f"{one}/"):
            where = stage.table.place("output")
            what = f"writes {stage.output}, where {other.table.place()} writes {other.output}"
            raise UsageError("same-output", what, remedy="give each an output of its own", where=where)
