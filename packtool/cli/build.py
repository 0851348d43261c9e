"""Build Typer commands from the declarations in `packtool.options`."""

from __future__ import annotations

import inspect
import textwrap
import typing
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import typer
from typer.completion import get_completion_inspect_parameters, install_callback, show_callback
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption

from packtool.cli import terminal as effects
from packtool.options.commands import arguments_of
from packtool.options.declare import Declared, Group, declared
from packtool.options.kinds import FLAG
from packtool.options.shared import Terminal
from packtool.spelling import as_typed, flag
from packtool.support.version import __version__

GivenValues = dict[str, Any]
"""Arguments of a function by name."""
Handler = Callable[[GivenValues, Terminal], None]
_TEXT: Any = SimpleNamespace(annotation=str, is_choice=False, is_file=False, is_list=False, choices=None)


class _AsTyped:
    """A parameter that keeps its value as typed: its kind parses it, and Typer need not load pydantic (0.13 s)."""

    def get_runtime_param(self) -> Any:
        return self

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        """Return the parameter's value untouched."""
        return () if value is None and param.nargs == -1 else value


class Argument(_AsTyped, TyperArgument):
    """An argument that help names plainly: ``STORE...``, not ``{STORE}... <list[str]>``."""

    def get_usage_pieces(self, ctx: Any) -> list[str]:
        return [f"{self.metavar}{'...' * (self.nargs == -1)}"]

    def display_type_rich(self, ctx: Any) -> str | None:
        return None


class TerminalOption(_AsTyped, TyperOption):
    """An option."""

    missing: str = ""  # what to do where it must be given and is not; empty to see the help


@dataclass(frozen=True)
class Definition:
    """The parts of a command."""

    name: str  # name, as the list of commands has it
    summary: str  # one line for the list of commands
    terminal: Sequence[str]  # names of the options of `Terminal` that it has
    handler: Handler  # called with a function's arguments, and how it was called; its docstring is the help


class Commands(TyperGroup):
    """The group of all commands. Its help loads no command."""

    def __init__(self, definitions: Mapping[str, Definition], **described: Any) -> None:
        get_completion_inspect_parameters()  # registers the shells
        names: Any = dict.fromkeys(definitions)
        params = [
            _flag("-V", "--version", callback=_show_version, help="Show the version and exit."),
            _flag("--install-completion", callback=install_callback, help="Install completion for the current shell."),
            _flag(
                "--show-completion", callback=show_callback, help="Print the completion script of the current shell."
            ),
            _help_option(),
        ]
        super().__init__(commands=names, params=params, no_args_is_help=True, rich_markup_mode=None, **described)
        self._definitions = definitions

    def get_command(self, ctx: Any, cmd_name: str) -> Command | None:
        definition = self._definitions.get(cmd_name)
        return None if definition is None else Command(definition)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, definition.summary) for name, definition in self._definitions.items()])


class Command(TyperCommand):
    """A command built from a definition."""

    def __init__(self, definition: Definition) -> None:
        own = declared(arguments_of(definition.name))
        self._handler = definition.handler
        self._quiet = "quiet" in own  # the function has one of its own
        self._own = {name: declaration for name, declaration in own.items() if not declaration.option.python_only}
        self._terminal = {name: declared(Terminal)[name] for name in definition.terminal}
        super().__init__(
            definition.name,
            params=[*map(_parameter, (*self._own.values(), *self._terminal.values())), _help_option()],
            help=inspect.getdoc(definition.handler),
            short_help=definition.summary,
            rich_markup_mode=None,
        )

    def invoke(self, ctx: Any) -> Any:
        def values(options: Mapping[str, Declared]) -> GivenValues:
            as_typed = {name for name in options if ctx.get_parameter_source(name).name != "DEFAULT"}
            defaults = {name: declaration.default for name, declaration in options.items()}
            return defaults | {name: ctx.params[name] for name in as_typed}

        for declaration in self._own.values():
            if declaration.option.positional:
                ctx.obj.arguments[flag(declaration.name)] = declaration.metavar
        terminal = Terminal(**values(self._terminal))
        arguments = values(self._own)
        if self._quiet:
            arguments["quiet"] = terminal.quiet
        with ExitStack() as stack:
            effects.apply(terminal, stack)
            self._handler(arguments, terminal)

    def get_help(self, ctx: Any) -> str:
        """Return the help, whose examples are folded where a terminal is narrow: they keep their lines otherwise."""
        width = ctx.make_formatter().width
        return "\n".join(_folded(line, width) for line in super().get_help(ctx).splitlines())

    def format_options(self, ctx: Any, formatter: Any) -> None:
        sections: dict[str, list[tuple[str, str]]] = {name: [] for name in ("Arguments", *typing.get_args(Group))}
        for parameter in self.get_params(ctx):
            group = "Arguments" if isinstance(parameter, Argument) else getattr(parameter, "rich_help_panel", None)
            record = parameter.get_help_record(ctx)
            if record is not None:
                sections[group or "General"].append(record)
        for title, records in sections.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)


def _folded(line: str, width: int) -> str:
    """Fold a command that is too wide, as a shell reads it.

    >>> print(_folded("  packtool tokenize data/ -o store -j 16", 30))
      packtool tokenize data/ -o \\
          store -j 16
    """
    if len(line) <= width:
        return line
    lead = " " * (len(line) - len(line.lstrip()))
    lines = textwrap.wrap(line, width - 2, subsequent_indent=f"{lead}    ", break_on_hyphens=False)
    return " \\\n".join(lines)


def _flag(*names: str, callback: Callable[..., Any], help: str) -> TerminalOption:
    """Make a flag that does something by itself, whatever the command."""
    shared: dict[str, Any] = {"type_descriptor": _TEXT, "default": False, "callback": callback, "help": help}
    return TerminalOption(param_decls=[*names], is_flag=True, expose_value=False, is_eager=True, **shared)


def _help_option() -> TerminalOption:
    """Make the --help option; Typer's own would load pydantic."""

    def show(ctx: Any, parameter: Any, value: bool) -> None:
        if value and not ctx.resilient_parsing:
            typer.echo(ctx.get_help())
            ctx.exit()

    return _flag("-h", "--help", callback=show, help="Show this message and exit.")


def _show_version(ctx: Any, parameter: Any, value: bool) -> None:
    if value:
        typer.echo(f"packtool {__version__}")
        ctx.exit()


def _parameter(declaration: Declared) -> Argument | TerminalOption:
    """Make an option in the form that Typer takes."""
    option = declaration.option
    default = None if declaration.required else _text(declaration.default)
    shared: dict[str, Any] = {
        "type_descriptor": _TEXT,
        "required": declaration.required,
        "default": default,
        "metavar": declaration.metavar or None,
        "help": as_typed(declaration.help),
        "autocompletion": _completion(declaration) if option.suggestions or declaration.choices else None,
    }
    if option.positional:
        return Argument(param_decls=[declaration.name], nargs=-1 if option.kind.repeated else 1, **shared)
    negates = option.kind is FLAG and declaration.default is not False  # it is on, or the strategy decides
    flags = f"{declaration.flag}/--no-{declaration.flag.removeprefix('--')}" if negates else declaration.flag
    eager: dict[str, Any] = {"callback": effects.configure, "is_eager": True} if declaration.name == "config" else {}
    made = TerminalOption(
        param_decls=[declaration.name, flags, *filter(None, [option.short])],
        is_flag=option.kind is FLAG,
        multiple=option.kind.repeated,
        show_default=option.default or bool(declaration.default),
        rich_help_panel=option.group,
        **shared,
        **eager,
    )
    made.missing = declaration.missing
    return made


def _text(default: Any) -> Any:
    """Return a default as it would be typed."""
    if default is None or isinstance(default, int):
        return default
    if isinstance(default, Sequence) and not isinstance(default, str):
        return ",".join(map(str, default)) or None
    return str(default)


def _completion(declaration: Declared) -> Callable[[Any, list[str], str], list[str]]:
    """Suggest completions to the shell; for a list of values, of the last one."""
    known = declaration.option.suggestions or declaration.choices

    def complete(ctx: Any, arguments: list[str], incomplete: str) -> list[str]:
        before, comma, _ = incomplete.rpartition(",") if declaration.option.kind.many else ("", "", "")
        return [f"{before}{comma}{name}" for name in known]

    return complete
