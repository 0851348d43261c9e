"""The options of the command line itself: what they do as soon as they are read."""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

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


def _show_progress(value: str) -> str:
    from packtool import progress
    from packtool.errors import UsageError
    from packtool.options.check import suggest

    if value not in progress.MODES:
        remedy = suggest(value, progress.MODES)
        raise UsageError("bad-option", f"{value!r} is not a known value", remedy=remedy, where="--progress")
    progress.set_mode(value)
    return value


def _configure(context: typer.Context, file: str | None) -> str | None:
    """Make the table of this command the defaults of its options."""
    if file is None or context.resilient_parsing:
        return file
    from packtool import config
    from packtool.errors import UsageError

    stage = str(context.info_name)
    tables = [t for t in config.read(file, only=stage) if t.stage == stage]
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


CALLBACKS: dict[str, Any] = {
    "config": _configure,
    "progress": _show_progress,
    "quiet": _silence,
    "verbose": _explain,
}
"""What options do as soon as they are read."""
