"""A pipeline: the tables of a configuration file as stages, with inputs and outputs, in the order they run.

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

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from packtool.config import INPUT, Table
from packtool.errors import UsageError
from packtool.places.typed import as_typed, dataset_url, is_remote

DEFAULT_OUTPUT = {
    "tokenize": "tokens",
    "pack": "packed",
    "shuffle": "shuffled",
    "materialize": "materialized",
    "export": "exported",
}
Place: TypeAlias = Path | str
"""A directory, or the URL of one."""
REPORT_FILES = ("html",)
"""Options of stages that name a file to write."""


@dataclass(frozen=True)
class Stage:
    """One step of a pipeline.

    Attributes:
        name: the command.
        table: where it is configured.
        inputs: what it reads.
        output: directory or URL it writes; None for `stats`.
        options: the other arguments of the command's function.
        needs: outputs of earlier stages among its inputs.
    """

    name: str
    table: Table
    inputs: tuple[str, ...]
    output: Place | None
    options: dict[str, Any]
    needs: tuple[Place, ...]

    def arguments(self) -> tuple[Any, ...]:
        """Return the positional arguments of the command's function."""
        many = self.name in ("tokenize", "pack")
        source = list(self.inputs) if many else self.inputs[0]
        return (source,) if self.output is None else (source, self.output)


def stages(tables: Sequence[Table], inputs: Sequence[str] = (), root: Place = ".") -> list[Stage]:
    """Settle what each stage reads and writes.

    Args:
        tables: from `packtool.config.read`, in order.
        inputs: corpus for `tokenize`; without such a table, token stores (or a dataset) for what comes first.
        root: directory or URL that relative outputs lie in; pages lie beside it only in a directory.

    Raises:
        UsageError: an input is unknown or ambiguous, two outputs are the same, or there is nothing to do.
    """
    done: list[Stage] = []
    pages = Path() if is_remote(as_typed(root)) else Path(root)
    for table in tables:
        alone = sum(other.stage == table.stage for other in tables) == 1
        output = _output(table, alone, root)
        paths = _inputs(table, inputs, done, alone, root)
        if table.stage not in ("tokenize", "pack") and len(paths) > 1:
            raise _ambiguous(table, "takes one input", "name one of them")
        options = {name: value for name, value in table.values.items() if name not in (INPUT, "output")}
        options |= {name: str(pages / options[name]) for name in REPORT_FILES if name in options}
        needs = tuple(stage.output for stage in done if stage.output is not None and str(stage.output) in paths)
        stage = Stage(table.stage, table, tuple(paths), output, options, needs)
        _require_apart(stage, done)
        done.append(stage)
    if not done:
        raise UsageError(
            "nothing-to-do",
            "the file has no table",
            remedy="write [tokenize], [pack], [shuffle], [materialize], [export] or [stats]",
        )
    return done


def place_in(root: Place, name: str) -> Place:
    """Resolve a name in a directory, or below a URL.

    >>> place_in("s3://bucket/run", "packed"), place_in("data", "packed"), place_in("data", "s3://bucket/packed")
    ('s3://bucket/run/packed', PosixPath('data/packed'), 's3://bucket/packed')
    """
    if is_remote(as_typed(name)):
        return dataset_url(as_typed(name))
    if is_remote(as_typed(root)):
        return dataset_url(f"{as_typed(root).rstrip('/')}/{name}")
    return Path(root) / name


def _output(table: Table, alone: bool, root: Place) -> Place | None:
    if table.stage not in DEFAULT_OUTPUT:
        return None
    if "output" not in table.values and not alone:
        raise UsageError(
            "missing-option",
            f"one of several [[{table.stage}]] tables without an output of its own",
            remedy='give each a name, such as output = "concat-2048"',
            where=table.place(),
        )
    return place_in(root, str(table.values.get("output", DEFAULT_OUTPUT[table.stage])))


def _inputs(table: Table, given: Sequence[str], done: Sequence[Stage], alone: bool, root: Place) -> list[str]:
    """List the inputs of a stage: those it names, else the outputs of earlier stages, else the command line's."""
    if table.stage == "tokenize" and given:
        if not alone:
            raise _ambiguous(table, "one of several [[tokenize]] tables", "leave --input out, and name it in each")
        return list(given)
    if INPUT in table.values:
        named = table.values[INPUT]
        made = {str(stage.output): stage for stage in done}
        return [
            str(place_in(root, name)) if _is_made(root, name, made) else name
            for name in ([named] if isinstance(named, str) else named)
        ]
    outputs = [str(stage.output) for stage in _before(table, done)]
    if not outputs:
        if given and not any(stage.name == "tokenize" for stage in done):
            return list(given)
        remedy = "give --input, or name it in the table"
        raise UsageError("missing-input", f"{table.stage} has no input", remedy=remedy, where=table.place())
    if len(outputs) > 1 and table.stage != "pack":
        raise _ambiguous(table, f"could read {', '.join(outputs)}", "name one of them: input = ...")
    return outputs


def _is_made(root: Place, name: str, made: Container[str]) -> bool:
    """Return whether a name is that of an earlier table's output; a URL may be of any other kind."""
    try:
        return str(place_in(root, name)) in made
    except UsageError:
        return False


def _before(table: Table, done: Sequence[Stage]) -> Iterator[Stage]:
    """List the stages whose outputs a table reads unless it says otherwise."""
    made = {name: [stage for stage in done if stage.name == name] for name in DEFAULT_OUTPUT}
    reads_store = table.values.get("method") == "partial" or "compare" in table.values
    if table.stage == "pack" or reads_store:
        yield from made["tokenize"]
    elif table.stage == "shuffle":
        yield from made["pack"]
    elif table.stage == "materialize":
        yield from made["shuffle"] or made["pack"]
    else:
        yield from made["materialize"] or made["shuffle"] or made["pack"] or made["tokenize"]


def _ambiguous(table: Table, what: str, remedy: str) -> UsageError:
    return UsageError("ambiguous-input", f"{table.stage}: {what}", remedy=remedy, where=table.place())


def _require_apart(stage: Stage, done: Sequence[Stage]) -> None:
    for other in done:
        if stage.output is None or other.output is None:
            continue
        one, two = (each if isinstance(each, str) else str(each.resolve()) for each in (stage.output, other.output))
        if one == two or one.startswith(f"{two}/") or two.startswith(f"{one}/"):
            where = stage.table.place("output")
            what = f"writes {stage.output}, where {other.table.place()} writes {other.output}"
            raise UsageError("same-output", what, remedy="give each an output of its own", where=where)
