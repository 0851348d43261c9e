"""Options that several commands share, and what they do as soon as they are read."""

from __future__ import annotations

from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from packtool.config import Table
    from packtool.errors import PacktoolError

_configured: ContextVar[tuple[typer.Context, Table] | None] = ContextVar("configured", default=None)


def _silence(value: bool) -> bool:
    if value:
        import warnings

        from packtool.warnings import PacktoolWarning

        warnings.simplefilter("ignore", PacktoolWarning)
    return value


def _explain(value: bool) -> bool:
    if value:
        import logging
        import sys

        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(logging.Formatter("packtool: %(message)s"))
        logger = logging.getLogger("packtool")
        logger.handlers[:] = [handler]
        logger.setLevel(logging.INFO)
    return value


def _configure(context: typer.Context, file: Path | None) -> Path | None:
    """Make the table of this command the defaults of its options."""
    if file is None or context.resilient_parsing:
        return file
    import packtool
    from packtool import config
    from packtool.errors import UsageError

    stage = str(context.info_name)
    tables = [t for t in config.read(file, lambda name: getattr(packtool, name), only=stage) if t.stage == stage]
    if len(tables) > 1:
        raise UsageError(
            "several-tables",
            f"there are {len(tables)} [[{stage}]] tables",
            remedy=f"keep one, or do all of them with packtool run {file}",
            where=tables[1].place(),
        )
    if tables:
        context.default_map = _defaults(context, tables[0])
        _configured.set((context, tables[0]))
    return file


def _defaults(context: typer.Context, table: Table) -> dict[str, Any]:
    """Values as if they came from the command line: as text, lists joined by commas."""
    from packtool.config import INPUT

    defaults: dict[str, Any] = {}
    for parameter in context.command.params:
        is_input = parameter.param_type_name == "argument"
        value = table.values.get(INPUT if is_input else str(parameter.name))
        if value is None or isinstance(value, bool):
            text: Any = value
        elif is_input and parameter.nargs == -1:
            text = [value] if isinstance(value, str) else value
        else:
            text = ",".join(map(str, value)) if isinstance(value, list) else str(value)
        if text is not None and parameter.name:
            defaults[parameter.name] = text
    return defaults


def strategies() -> list[str]:
    """Names of the strategies, for the shell to complete."""
    from packtool.packing import STRATEGIES

    return list(STRATEGIES)


def methods() -> list[str]:
    """Names of the shuffles, for the shell to complete."""
    from packtool.shuffling import METHODS

    return list(METHODS)


def locate(error: PacktoolError) -> PacktoolError:
    """The error, pointing into the configuration file if the option it is about was given there."""
    configured = _configured.get()
    if configured is None or error.where is None:
        return error
    context, table = configured
    source = context.get_parameter_source(error.where.removeprefix("--").replace("-", "_"))
    return table.locate(error) if source is not None and source.name == "DEFAULT_MAP" else error


def forget_config() -> None:
    """Start afresh: no configuration file was read."""
    _configured.set(None)


Output = Annotated[
    Path, typer.Option("--output", "-o", help="Directory to write; must be empty or new.", metavar="DIR")
]
Config = Annotated[
    Path | None,
    typer.Option(
        "--config",
        help="Take options from the command's table in this TOML file; flags win.",
        metavar="FILE",
        is_eager=True,
        callback=_configure,
    ),
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace what a packtool command wrote to the output.")]
Resume = Annotated[
    bool, typer.Option("--resume", help="Go on where an interrupted run stopped; nothing to do if it had finished.")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what would be done, with sizes, and write nothing.")]
Quiet = Annotated[
    bool,
    typer.Option("--quiet", "-q", help="No progress, no warnings, no summary.", is_eager=True, callback=_silence),
]
Verbose = Annotated[
    bool,
    typer.Option("--verbose", "-v", help="Say on standard error what is being done.", is_eager=True, callback=_explain),
]
Json = Annotated[bool, typer.Option("--json", help="Print the result as one JSON object on standard output.")]
Seed = Annotated[int, typer.Option("--seed", help="Seed of every random choice.", min=0, metavar="N")]
Workers = Annotated[
    int | None,
    typer.Option("--workers", "-j", help="Parallel workers; the output does not depend on it.", min=1, metavar="N"),
]
Memory = Annotated[str, typer.Option("--memory", help="Memory to use, such as 512MiB or 4GiB.", metavar="SIZE")]


def sizes(text: str, option: str) -> list[int]:
    """Numbers from a list such as ``2048,4096``.

    >>> sizes("2048, 4096", "--buckets")
    [2048, 4096]
    """
    from packtool.errors import UsageError

    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise UsageError(
            "bad-option", f"{text!r} is not a list of numbers", remedy="write it like 2048,4096", where=option
        ) from None
