"""Build Typer commands from the declarations in `packtool.options`."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import typer
from typer.core import TyperArgument, TyperCommand, TyperOption

from packtool.cli import terminal as effects
from packtool.options.declare import Declared, Group, declared
from packtool.options.kinds import FLAG
from packtool.options.terminal import Terminal

Values = dict[str, Any]
"""Arguments of a function by name."""
Handler = Callable[[Values, Terminal], None]
STAGE = ("config", "progress", "quiet", "verbose", "json")
"""What every stage of the way takes beside its arguments."""
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


class Option(_AsTyped, TyperOption):
    """An option."""


@dataclass(frozen=True)
class Definition:
    """The description of a command and its options.

    Attributes:
        handler: called with the arguments of a function, and how the command was called.
        arguments: a dataclass of `packtool.options`.
        terminal: names of the options of `Terminal` that the command has.
    """

    handler: Handler
    arguments: type[Any]
    terminal: Sequence[str]


def typer_command(arguments: type[Any], terminal: Sequence[str]) -> Callable[[Handler], Definition]:
    """Build a Typer command from its definition."""
    return lambda handler: Definition(handler, arguments, terminal)


class Command(TyperCommand):
    """A command built from a definition."""

    def __init__(self, name: str, definition: Definition, summary: str) -> None:
        own, shared = declared(definition.arguments), declared(Terminal)
        self._handler = definition.handler
        self._python_only = {name for name, each in own.items() if each.option.python_only}
        self._own = {name: each for name, each in own.items() if name not in self._python_only}
        self._shared = {name: shared[name] for name in definition.terminal}
        super().__init__(
            name,
            params=[*map(_parameter, (*self._own.values(), *self._shared.values())), help_option()],
            help=inspect.getdoc(definition.handler),
            short_help=summary,
            rich_markup_mode=None,
        )

    def invoke(self, ctx: Any) -> Any:
        def value(each: Declared) -> Any:
            source = ctx.get_parameter_source(each.name)
            return each.default if source.name == "DEFAULT" else ctx.params[each.name]

        values = {name: value(each) for name, each in self._own.items()}
        terminal = Terminal(**{name: value(each) for name, each in self._shared.items()})
        if "quiet" in self._python_only:
            values["quiet"] = terminal.quiet
        with ExitStack() as stack:
            effects.apply(terminal, stack)
            self._handler(values, terminal)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        sections: dict[str, list[tuple[str, str]]] = {name: [] for name in ("Arguments", *typing.get_args(Group))}
        for each in self.get_params(ctx):
            group = "Arguments" if isinstance(each, Argument) else getattr(each, "rich_help_panel", None)
            if (record := each.get_help_record(ctx)) is not None:
                sections[group or "General"].append(record)
        for title, records in sections.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)


def help_option() -> Option:
    """Make the --help option; Typer's own would load pydantic."""

    def show(ctx: Any, parameter: Any, value: bool) -> None:
        if value and not ctx.resilient_parsing:
            typer.echo(ctx.get_help())
            ctx.exit()

    return flag("-h", "--help", callback=show, help="Show this message and exit.")


def _parameter(each: Declared) -> Argument | Option:
    """Make an option in the form that Typer takes."""
    option = each.option
    default = None if each.required else _text(each.default)
    shared: dict[str, Any] = {
        "type_descriptor": _TEXT,
        "required": each.required,
        "default": default,
        "metavar": each.metavar or None,
        "help": each.help,
        "autocompletion": _completion(each) if option.suggestions or each.choices else None,
    }
    if option.positional:
        return Argument(param_decls=[each.name], nargs=-1 if option.kind.repeated else 1, **shared)
    negates = option.kind is FLAG and each.default is not False  # it is on, or the strategy decides
    flags = f"{each.flag}/--no-{each.flag.removeprefix('--')}" if negates else each.flag
    eager: dict[str, Any] = {"callback": effects.configure, "is_eager": True} if each.name == "config" else {}
    return Option(
        param_decls=[each.name, flags, *filter(None, [option.short])],
        is_flag=option.kind is FLAG,
        multiple=option.kind.repeated,
        show_default=option.default or bool(each.default),
        rich_help_panel=option.group,
        **shared,
        **eager,
    )


def flag(*names: str, callback: Callable[..., Any], help: str) -> Option:
    """Make a flag that does something by itself, whatever the command."""
    shared: dict[str, Any] = {"type_descriptor": _TEXT, "default": False, "callback": callback, "help": help}
    return Option(param_decls=[*names], is_flag=True, expose_value=False, is_eager=True, **shared)


def _text(default: Any) -> Any:
    """Return a default as it would be typed."""
    if default is None or isinstance(default, int):
        return default
    if isinstance(default, Sequence) and not isinstance(default, str):
        return ",".join(map(str, default)) or None
    return str(default)


def _completion(each: Declared) -> Callable[[Any, list[str], str], list[str]]:
    """Suggest completions to the shell; for a list of values, of the last one."""
    known = each.option.suggestions or each.choices

    def complete(ctx: Any, arguments: list[str], incomplete: str) -> list[str]:
        before, comma, _ = incomplete.rpartition(",") if each.option.kind.many else ("", "", "")
        return [f"{before}{comma}{name}" for name in known]

    return complete
