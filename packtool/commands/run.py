"""`run`: run a pipeline from one file. Finished, unchanged stages are kept; interrupted ones resume."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from packtool import config, packing, shuffling
from packtool.clock import Clock
from packtool.commands import pipeline
from packtool.commands.document_choice import names_of, require_distinct
from packtool.commands.pack import check_options, padding_id
from packtool.commands.pipeline import Stage
from packtool.commands.result import Preview
from packtool.engines import available_cpus
from packtool.engines.cluster import started
from packtool.errors import PacktoolError, UsageError
from packtool.options.check import check_taken, checked
from packtool.options.declare import declared
from packtool.options.pack import PackArguments
from packtool.options.run import STAGES, RunArguments
from packtool.options.shuffle import ShuffleArguments
from packtool.options.signature import takes
from packtool.places.typed import place_of, places_of
from packtool.selecting.mixture import weights_of
from packtool.storage.claim import look
from packtool.storage.schema import TokenizerInfo
from packtool.storage.token_store import TokenStore
from packtool.tokenizing.load import load
from packtool.warnings import PacktoolWarning

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class StageResult:
    """What became of a stage.

    Attributes:
        stage: what was to be done.
        state: ``done``; ``kept`` (finished before, unchanged); after a dry run ``would keep``, ``would continue``,
            ``would replace``, ``would refuse``, ``would do``, or ``would compare`` (something is there, and whether it
            is kept depends on what an earlier stage makes).
        seconds: wall seconds it took.
        result: what the command returned; None for what was not run.
        preview: after a dry run, what the stage would write; None where that depends on an earlier stage.
        about_bytes: then, the size of what the earlier stages would write for it.
    """

    stage: Stage
    state: str
    seconds: float = 0.0
    result: Any = None
    preview: Preview | None = None
    about_bytes: int | None = None


@takes(RunArguments)
def run(options: RunArguments) -> list[StageResult]:
    """Run the stages of a configuration file, in order.

    Raises:
        UsageError: the file makes no sense, or an output holds something else.
        DataError: whatever a stage finds wrong with its input.
    """
    tables = config.read(options.configuration)
    given = [str(each) for each in ([options.input] if isinstance(options.input, str | Path) else options.input)]
    name = Path(options.configuration).stem
    planned = pipeline.stages(tables, given, options.output or (name if name != "-" else "run"))
    for stage in planned:
        _check(stage, {str(made.output): made for made in planned if made.name == "tokenize"})
    if options.scheduler is None or options.dry_run:
        return _stages(planned, options, options.scheduler)
    with started(options.scheduler, options.workers or available_cpus()) as scheduler:
        return _stages(planned, options, scheduler)


def _stages(planned: Sequence[Stage], options: RunArguments, scheduler: str | None) -> list[StageResult]:
    """Run each stage; all of them use the same scheduler."""
    given = replace(options, scheduler=scheduler)
    results: list[StageResult] = []
    for number, stage in enumerate(planned, 1):
        if given.announce is not None:
            given.announce(number, len(planned), stage)
        values = {"quiet": given.quiet, **stage.options}
        for name in ("workers", "scheduler", "staging", "staging_limit"):
            if getattr(given, name) is not None and name in declared(STAGES[stage.name]):
                values.setdefault(name, getattr(given, name))
        try:
            if given.dry_run:
                results.append(_preview(stage, values, results, given.overwrite))
            else:
                results.append(_do(stage, values, given.overwrite))
        except PacktoolError as error:
            raise stage.table.locate(error) from None
    return results


def _function(name: str) -> Callable[..., Any]:
    function: Callable[..., Any] = getattr(import_module(f"packtool.commands.{name}"), name)
    return function


def _check(stage: Stage, stores: Mapping[str, Stage]) -> None:
    """Find mistakes of late stages before the early ones have taken hours.

    Args:
        stores: the stages that will have made token stores, by these.
    """
    if "-" in stage.inputs:
        raise UsageError(
            "stdin-no-resume",
            "standard input can't be read twice, so a run could not go on",
            remedy="write it to a file first, or use packtool tokenize -",
            where=stage.table.place(config.INPUT),
        )
    try:
        if stage.name == "pack" and "strategy" not in stage.options:
            remedy = f'give strategy = "concat", or another of {", ".join(packing.STRATEGIES)}'
            what, where = "pack needs the option strategy", stage.table.place()
            raise UsageError("missing-option", what, remedy=remedy, where=where)
        given = checked(STAGES[stage.name](*stage.arguments(), **stage.options))
        if isinstance(given, PackArguments):
            check_options(given)
            _check_inputs(given, stage.inputs, stores)
        elif isinstance(given, ShuffleArguments):
            check_taken(given, "--method", shuffling.method(given.method).name)
    except PacktoolError as error:
        raise stage.table.locate(error) from None
    if stage.output is not None:
        state = look(place_of(stage.output)).state
        if state is not None and state.command != stage.name:
            what = f"written by packtool {state.command}, not by packtool {stage.name}"
            raise UsageError("resume-differs", what, remedy="choose another output", where=str(stage.output))


def _check_inputs(given: PackArguments, inputs: Sequence[str], stores: Mapping[str, Stage]) -> None:
    """Check what `pack` asks of its stores: names in a mixture, origins of documents, and the padding token.

    Raises:
        UsageError: of an option that does not fit the stores.
    """
    places = places_of(inputs)
    require_distinct(places)
    weights_of(given.mix, names_of(places), shares=given.tokens is not None)
    by_text = {"--holdout": given.holdout, "--shard-of": given.shard_of, "--exclude": given.exclude}
    asked = [option for option, value in by_text.items() if value is not None]
    asked += ["--drop-duplicates"] * given.drop_duplicates
    for store in inputs:
        if store in stores and asked and not stores[store].options.get("provenance", True):
            what, remedy = f"{store} will not know where its documents came from", "tokenize without provenance = false"
            raise UsageError("no-provenance", what, remedy=remedy, where=asked[0])
        if given.pad_token is not None:
            padding_id(given.pad_token, _tokenizer(store, stores.get(store)))


def _tokenizer(store: str, stage: Stage | None) -> TokenizerInfo:
    """Return the tokenizer of a store, or the one that an earlier stage will make it with."""
    if stage is None:
        return TokenStore(store).manifest.tokenizer
    names = ("revision", "eos_token", "bos", "bos_token")
    options = {name: stage.options[name] for name in names if name in stage.options}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PacktoolWarning)  # tokenize will say it
        return load(stage.options.get("tokenizer"), **options).info


def _do(stage: Stage, options: dict[str, Any], overwrite: bool) -> StageResult:
    clock = Clock()
    function = partial(_function(stage.name), *stage.arguments(), **options)
    if stage.output is None:
        for name in pipeline.REPORT_FILES:
            if name in options:
                Path(options[name]).parent.mkdir(parents=True, exist_ok=True)
        result = function()
        return StageResult(stage, "done", clock.seconds()["wall"], result)
    try:
        result = function(resume=True)
    except UsageError as error:
        if error.code not in ("resume-differs", "nothing-to-resume"):
            raise
        if not overwrite:
            remedy = "give --overwrite to make it anew, or another --output"
            raise UsageError(error.code, error.what, remedy=remedy, where=error.where) from None
        result = function(overwrite=True)
    state, seconds = "kept" if result.kept else "done", clock.seconds()["wall"]
    log.info("%s: %s in %.1f s", stage.output, state, seconds)
    return StageResult(stage, state, seconds, result)


def _preview(stage: Stage, options: dict[str, Any], before: Sequence[StageResult], overwrite: bool) -> StageResult:
    """Preview a stage, as far as that is possible before the stages it needs have run."""
    if stage.output is None:
        return StageResult(stage, "would do")
    changing = [result.stage.output for result in before if result.state != "would keep"]
    if any(path in changing for path in stage.needs):
        occupied = look(place_of(stage.output)).names
        sizes = [_bytes(result) for result in before if result.stage.output in stage.needs]
        about = None if None in sizes else sum(size or 0 for size in sizes)
        return StageResult(stage, "would compare" if occupied else "would do", about_bytes=about)
    preview = _function(stage.name)(*stage.arguments(), **options, dry_run=True).preview
    states = {"nothing": "would do", "finished": "would keep", "unfinished": "would continue"}
    other = "would replace" if overwrite else "would refuse"
    return StageResult(stage, states.get(preview.found, other), preview=preview)


def _bytes(result: StageResult) -> int | None:
    return result.about_bytes if result.preview is None else result.preview.figures.get("bytes")
