"""Turn errors of Typer and the operating system into `PacktoolError`, and format warnings."""

from __future__ import annotations

import difflib
import io
import sys
import warnings
from collections.abc import Sequence
from typing import Any, TextIO

from packtool.errors import DataError, PacktoolError, UsageError
from packtool.options.names import OTHER_OPTIONS
from packtool.spelling import as_typed
from packtool.support.naming import naming
from packtool.support.system_errors import refused_by_system

STANDARD_OUTPUT = "standard output"


class Answer(io.FileIO):
    """The descriptor of standard output, whose errors name it: they come from wherever something is printed."""

    def write(self, data: Any) -> int:
        with naming(STANDARD_OUTPUT):
            return super().write(data)


def say(message: str) -> None:
    """Write a line on standard error; on a terminal, broken between words."""
    if sys.stderr.isatty():
        import shutil
        import textwrap

        width = shutil.get_terminal_size().columns
        message = textwrap.fill(message, width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
    sys.stderr.write(message + "\n")


def print_error(error: PacktoolError) -> None:
    """Print an error as one JSON object on standard output, for callers of `--json`."""
    import json

    parts: dict[str, str | None] = {"code": error.code}
    for name in ("where", "what", "remedy"):
        text = getattr(error, name)
        parts[name] = text and as_typed(text)
    sys.stdout.write(json.dumps({"schema_version": 1, "error": parts}) + "\n")


def explain(error: Exception) -> PacktoolError | None:
    """Phrase an error for the user; None for a bug, which keeps its traceback."""
    if isinstance(error, PacktoolError):
        return error
    refused = refused_by_system(error)
    if refused is not None or isinstance(error, OSError):
        return refused
    # Typer's own errors: since it carries a copy of Click, their classes have no address that lasts, but names.
    names = {kind.__name__ for kind in type(error).__mro__}
    return _from_typer(error, names) if "ClickException" in names else None


def of_answer(error: Exception) -> PacktoolError | None:
    """Phrase an error of writing the answer, which says nothing of what the command has made; None for others."""
    if not isinstance(error, OSError) or error.filename != STANDARD_OUTPUT:
        return None
    what = f"can't be written ({(error.strerror or 'failed').lower()})"
    remedy = "send it somewhere else; what a command makes, it has finished before it answers"
    return DataError("answer-not-written", what, remedy=remedy, where=STANDARD_OUTPUT)


def show_warnings() -> None:
    """Print packtool's warnings on standard error, each once; other packages' warnings are not the user's."""
    from packtool.warnings import PacktoolWarning

    shown: set[str] = set()

    def show(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        if isinstance(message, PacktoolWarning) and str(message) not in shown:
            shown.add(str(message))
            say(f"packtool: warning[{message.code}]: {message.typed()}")

    warnings.simplefilter("always", PacktoolWarning)
    warnings.showwarning = show


def _behind(command: str, option: str) -> str:
    """Say where an argument stands that begins like an option, if this may be one: an id, or a number."""
    if command.endswith(" find") or option[1:].isdigit():
        return "; what begins with - and is no option, such as an id, stands behind --"
    return ""


def _alike(option: str, others: Sequence[str] | None) -> list[str]:
    """List the options whose letters are nearly those of an option; the dashes before them make any two alike."""
    found: list[str] = []
    for other in others or ():
        if difflib.get_close_matches(option.lstrip("-"), [other.lstrip("-")]):
            found.append(other)
    return found


def _from_typer(error: Any, names: set[str]) -> UsageError:
    context: Any = getattr(error, "ctx", None)
    command = context.command_path if context else "packtool"
    remedy = f"see {command} --help" if context else "see --help"
    where = None
    if "NoArgsIsHelpError" in names:
        sys.stderr.write(f"{context.get_help()}\n")
        code, what, remedy = "missing-command", "no command was given", "choose one of the commands above"
    elif "NoSuchOption" in names:
        code, what, where = "unknown-option", f"{command} has no such option", error.option_name
        remedy += _behind(command, error.option_name)
        owners = _owners(error.option_name)
        if owners and context:
            have = "has" if len(owners) == 1 else "have"
            what += f"; {' and '.join(owners)} {have} it"
        meant = OTHER_OPTIONS.get(error.option_name, f"-{error.option_name.lstrip('-')}")  # such as --L for -L
        alike = _alike(error.option_name, error.possibilities)
        if context and any(meant in option.opts for option in context.command.params):
            remedy = f"did you mean {meant}?"
        elif alike and not owners:  # where another command has it, a name that is nearly the same means something else
            remedy = f"did you mean {' or '.join(alike)}?"
    elif "MissingParameter" in names:
        code, what, where = "missing-option", _need(error.param, command), _name(error.param)
        remedy = getattr(error.param, "missing", "") or remedy
    elif "BadParameter" in names:
        code, what, where = "bad-option", error.message.rstrip("."), _name(error.param) if error.param else None
    elif "BadOptionUsage" in names:
        code, what, where = "bad-option", "a value is missing after it", error.option_name
    else:
        code, what = "bad-usage", error.format_message().rstrip(".")
        if what.startswith("No such command"):
            code = "unknown-command"
            what, _, close = what.partition(". ")
            remedy = close or remedy
        elif what.startswith("Got unexpected extra argument"):
            what = f"{command} takes fewer arguments: there is no room for {what[what.rindex('(') + 1 : -1]}"
        what = what[:1].lower() + what[1:]
    return UsageError(code, what, remedy=remedy, where=where)


def _owners(option: str) -> list[str]:
    """List the commands that have an option, at most two."""
    from packtool.options.commands import ARGUMENTS, arguments_of
    from packtool.options.declare import declared

    owners = []
    for command in ARGUMENTS:
        if any(declaration.flag == option for declaration in declared(arguments_of(command)).values()):
            owners.append(f"packtool {command}")
    return owners[:2]


def _need(parameter: Any, command: str) -> str:
    if parameter.param_type_name == "argument":
        return f"{command} needs at least one" if parameter.nargs == -1 else f"{command} needs it"
    return f"{command} needs this option"


def _name(parameter: Any) -> str:
    """Return the long flag of an option, or the metavar of an argument."""
    flags = [flag for flag in parameter.opts if flag.startswith("--")]
    return flags[0] if flags else str(parameter.metavar or parameter.name.upper())
