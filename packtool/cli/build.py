"""From the declarations in `packtool.options` to Typer's commands."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from packtool.cli.terminal import CALLBACKS
from packtool.errors import UsageError
from packtool.options.declare import Declared, declared
from packtool.options.kinds import FLAG, NUMBER
from packtool.options.terminal import Terminal

Values = dict[str, Any]
"""Arguments of a function by name."""
Handler = Callable[[Values, Terminal], None]
STAGE = ("config", "progress", "quiet", "verbose", "json")
"""What every stage of the way takes beside its arguments."""


class _Given:
    """Values as they were typed."""

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        """A value as it is: its kind parses it (`_parsed`), or its callback does."""
        return () if value is None and param.nargs == -1 else value


class AsTyped:
    """Of a command or group: its options are not validated by Typer, which would load pydantic (0.13 s) for it."""

    def get_params(self, ctx: Any) -> list[Any]:
        params: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for each in params:
            vars(each)["get_runtime_param"] = _Given
        return params


class Command(AsTyped, TyperCommand):
    """A command whose help names its arguments plainly: ``STORE...``, not ``{STORE}...`` and ``<list[str]>``."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for each in self.params:
            if each.param_type_name == "argument":
                usage = str(each.metavar) + "..." * (each.nargs == -1)
                vars(each).update(display_type_rich=lambda ctx: None, get_usage_pieces=lambda ctx, usage=usage: [usage])


def typer_command(arguments: type[Any] | None, terminal: Sequence[str]) -> Callable[[Handler], Callable[..., None]]:
    """Make a command of a function that takes the arguments declared for it, and some of `Terminal`.

    Args:
        arguments: a dataclass of `packtool.options`; None for a command without any.
        terminal: names of the options of `Terminal` that the command has.
    """
    own = {} if arguments is None else declared(arguments)
    taken = {name: each for name, each in own.items() if not each.option.python_only}
    shared = {name: each for name, each in declared(Terminal).items() if name in terminal}

    def decorate(handler: Handler) -> Callable[..., None]:
        def command(**given: Any) -> None:
            values = {name: _parsed(each, given[name]) for name, each in taken.items()}
            if "quiet" in own:
                values["quiet"] = given["quiet"]
            handler(values, Terminal(**{name: given[name] for name in shared}))

        parameters = [_parameter(each) for each in (*taken.values(), *shared.values())]
        command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        command.__annotations__ = {each.name: each.annotation for each in parameters}
        command.__doc__ = handler.__doc__
        return command

    return decorate


def _parameter(each: Declared) -> inspect.Parameter:
    """An option as Typer takes it: text, numbers and flags. The rest is parsed by its kind."""
    option = each.option
    plain: Any = bool if option.kind is FLAG else int if option.kind is NUMBER else str
    typer_type: Any = list[str] if option.kind.repeated else plain
    default = inspect.Parameter.empty if each.required else _text(each.default)
    what: dict[str, Any] = {"help": each.help, "metavar": each.metavar or None}
    if option.suggestions or each.choices:
        what["autocompletion"] = _completion(each)
    if option.positional:
        info: Any = typer.Argument(**what)
    else:
        negates = option.kind is FLAG and each.default is not False  # it is on, or the strategy decides
        flags = f"{each.flag}/--no-{each.flag.removeprefix('--')}" if negates else each.flag
        what["show_default"] = option.default or bool(each.default)
        if each.name in CALLBACKS:
            what |= {"callback": CALLBACKS[each.name], "is_eager": True}
        info = typer.Option(flags, *filter(None, [option.short]), **what)
    annotation: Any = Annotated[typer_type if default is not None else typer_type | None, info]
    return inspect.Parameter(each.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _text(default: Any) -> Any:
    """A default as it would be typed."""
    if default is None or isinstance(default, int):
        return default
    if isinstance(default, Sequence) and not isinstance(default, str):
        return ",".join(map(str, default)) or None
    return str(default)


def _parsed(each: Declared, given: Any) -> Any:
    """A value as the function takes it."""
    kind = each.option.kind
    if given is None:
        return () if kind.repeated else None
    try:
        return kind.parse(given)
    except ValueError:
        what = f"{given!r} is not {kind.words}"
        raise UsageError("bad-option", what, remedy=f"give {kind.words}", where=each.flag) from None


def _completion(each: Declared) -> Callable[[str], list[str]]:
    """What the shell may complete; of several values the last one."""
    known = each.option.suggestions or each.choices

    def complete(incomplete: str) -> list[str]:
        before, comma, _ = incomplete.rpartition(",") if each.option.kind.many else ("", "", "")
        return [f"{before}{comma}{name}" for name in known]

    return complete
