"""Apply the options of the command line itself, from before a command runs until it ends."""

from __future__ import annotations

import os
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from packtool.errors import visible

if TYPE_CHECKING:
    from logging import LogRecord

    from packtool.config import StageTable
    from packtool.errors import PacktoolError
    from packtool.options.shared import Terminal


@dataclass
class Session:
    """One call of the command line, which commands find in their context."""

    table: StageTable | None = None  # table of the configuration file that gave options; None without one
    context: Any = None  # context of the command with that file
    arguments: dict[str, str] = field(default_factory=dict)  # how help names the arguments, by their flags in errors

    def locate(self, error: PacktoolError) -> PacktoolError:
        """Point an error into the configuration file if the option was given there; name an argument as help does."""
        if error.where is None:
            return error
        if self.table is not None:
            source = self.context.get_parameter_source(error.where.removeprefix("--").replace("-", "_"))
            if source is not None and source.name == "DEFAULT_MAP":
                return self.table.locate(error)
        if error.where in self.arguments:
            return type(error)(error.code, error.what, remedy=error.remedy, where=self.arguments[error.where])
        return error


def apply(terminal: Terminal, stack: ExitStack) -> None:
    """Set verbosity and progress for a command until the stack closes."""
    if terminal.quiet:
        import warnings

        from packtool.warnings import PacktoolWarning

        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore", PacktoolWarning)
    if terminal.verbose:
        import logging
        import sys

        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(logging.Formatter("packtool: %(message)s"))
        handler.addFilter(_escape)
        logger = logging.getLogger("packtool")
        stack.callback(logger.setLevel, logger.level)
        stack.callback(logger.removeHandler, handler)
        logger.addHandler(handler)
        logger.setLevel(logging.INFO)
    if terminal.progress != "auto":
        from packtool.options.check import checked

        checked(terminal)
        stack.callback(os.environ.update, dict(os.environ))
        stack.callback(os.environ.pop, "PACKTOOL_PROGRESS")
        os.environ["PACKTOOL_PROGRESS"] = terminal.progress


def _escape(record: LogRecord) -> bool:
    """Escape what could command a terminal in a message, and let it pass."""
    record.msg, record.args = visible(record.getMessage()), ()
    return True


def configure(context: Any, parameter: Any, file: str | None) -> str | None:
    """Make the table of this command the defaults of its options."""
    if file is None or context.resilient_parsing:
        return file
    from packtool import config
    from packtool.errors import UsageError

    stage = str(context.info_name)
    tables = config.read(file, only=stage)
    if len(tables) > 1:
        what = f"there are {len(tables)} [[{stage}]] tables"
        remedy = f"keep one, or do all of them with packtool run {file}"
        raise UsageError("several-tables", what, remedy=remedy, where=tables[1].place())
    if tables:
        context.default_map = _defaults(context, tables[0])
        context.obj.table, context.obj.context = tables[0], context
    return file


def _defaults(context: Any, table: StageTable) -> dict[str, Any]:
    """Name a table's values after parameters; a value that may be repeated becomes a list."""
    from packtool.config import INPUT

    defaults: dict[str, Any] = {}
    for parameter in context.command.params:
        is_input = parameter.param_type_name == "argument"
        value = table.values.get(INPUT if is_input else str(parameter.name))
        if value is not None:
            several = parameter.nargs == -1 or getattr(parameter, "multiple", False)
            defaults[str(parameter.name)] = [value] if several and isinstance(value, str) else value
    return defaults
