"""What follows from the declarations: signatures, documentation, flags; and that they fit together."""

import inspect
import typing
from collections.abc import Iterable, Sequence
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import packtool
from packtool.cli import commands
from packtool.options import kinds
from packtool.options.commands import ARGUMENTS, arguments_of
from packtool.options.declare import Declared, declared
from packtool.options.names import METHODS, STRATEGIES
from packtool.options.order import ORDER
from packtool.options.shared import Terminal
from packtool.options.where import WHERE

COMMANDS = {name.replace("import", "import_"): arguments_of(name) for name in ARGUMENTS}
OPTIONS = [(command, each) for command, arguments in COMMANDS.items() for each in declared(arguments).values()]
PLAIN = {
    kinds.FLAG: {bool},
    kinds.NUMBER: {int},
    kinds.COUNT: {int},
    kinds.ROW_LENGTH: {int},
    kinds.COUNTS: {int, str, Sequence[int], Sequence[int | str]},
    kinds.AMOUNT: {int, str},
    kinds.PART: {kinds.HoldoutAmount, str, float},
    kinds.SHARD: {str},
    WHERE: {str},
    ORDER: {str, Sequence[str]},
    kinds.TEMPERATURE: {Decimal, str, float},
    kinds.SHARE: {Fraction, float, str},
    kinds.LIMIT: {Fraction, float, str},
    kinds.SIZE: {int, str},
    kinds.OBJECT: {Any, str},
    kinds.TEXT: {str, Path},
    kinds.LOCATION: {str, Path},
    kinds.FIELD: {str},
    kinds.FIELDS: {Sequence[str]},
    kinds.KEPT: {str, Sequence[kinds.KeptField | str]},
    kinds.TEXT_OR_ID: {str, int},
    kinds.WEIGHTS: {Sequence[str], str, float},
    kinds.NAMES: {str, Sequence[str]},
    kinds.TAGS: {str, Sequence[str]},
    kinds.PATH: {str, Path},
    kinds.PATHS: {str, Path, Sequence[Path | str]},
    kinds.PLACE: {str, Path},
    kinds.PLACES: {str, Path, Sequence[Path | str]},
    kinds.INPUTS: {str, Path, Sequence[Path | str], Iterable[Any]},
    kinds.GLOBS: {Sequence[str]},
}
"""The types that values of each kind may have in Python."""


def members(hint: Any) -> set[Any]:
    """The types that a hint allows, None aside."""
    if typing.get_origin(hint) is typing.Literal:
        return {type(value) for value in typing.get_args(hint)}
    parts = typing.get_args(hint) if typing.get_origin(hint) not in (None, Sequence, *Sequence.__mro__) else ()
    return set().union(*map(members, parts)) - {type(None)} if parts else {hint}


def test_every_command_is_declared() -> None:
    names = {name.replace("import", "import_") for name in commands.COMMANDS}
    assert names == set(COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_the_signature_is_the_declaration(command: str) -> None:
    """Names, types, defaults and order are those of the dataclass; so `mypy` and editors see what runs."""
    found = inspect.signature(getattr(packtool, command))
    wanted = inspect.signature(COMMANDS[command])
    assert list(found.parameters) == list(wanted.parameters)
    options = declared(COMMANDS[command])
    for name, parameter in found.parameters.items():
        assert parameter.kind is wanted.parameters[name].kind
        assert parameter.default == wanted.parameters[name].default
        assert parameter.annotation == options[name].type
    assert found.return_annotation is not inspect.Signature.empty
    assert "Annotated" not in str(found)


@pytest.mark.parametrize("command", COMMANDS)
def test_the_documentation_lists_every_argument(command: str) -> None:
    doc = inspect.getdoc(getattr(packtool, command)) or ""
    arguments = doc.partition("\nArgs:\n")[2].partition("\n\n")[0]
    for name, each in declared(COMMANDS[command]).items():
        assert f"    {name}: {each.help.split()[0]}" in arguments
    assert max(map(len, doc.splitlines())) <= 120


@pytest.mark.parametrize(("command", "each"), OPTIONS, ids=[f"{command}-{each.name}" for command, each in OPTIONS])
def test_a_declaration_makes_sense(command: str, each: Declared) -> None:
    option = each.option
    assert option.help.endswith(".")
    assert option.help[0].isupper() or option.suggestions or option.metavar, option.help
    assert len(each.help) < 200
    if not option.python_only:
        assert members(each.type) <= PLAIN[option.kind], "its kind parses what its type says"
    chosen = {"pack": STRATEGIES, "stats": STRATEGIES, "shuffle": METHODS}.get(command, ())
    assert {*option.taken_by, *option.not_taken_by} <= set(chosen)
    assert not (option.taken_by and option.not_taken_by)
    if option.kind in (kinds.COUNT, kinds.COUNTS):
        assert option.unit
    for value in each.choices:
        assert value in option.help, "help names every choice"
    if not each.required and each.default is not None and option.low is not None and isinstance(each.default, int):
        assert each.default >= option.low


@pytest.mark.parametrize("command", COMMANDS)
def test_flags_do_not_collide(command: str) -> None:
    both = [*declared(COMMANDS[command]).values(), *declared(Terminal).values()]
    short = [each.option.short for each in both if each.option.short]
    assert len(set(short)) == len(short)
    names = [each.name for each in both if not each.option.python_only]
    assert len(set(names)) == len(names)


def test_a_short_flag_means_the_same_everywhere() -> None:
    meaning: dict[str, set[str]] = {}
    for _, each in OPTIONS:
        if each.option.short:
            meaning.setdefault(each.option.short, set()).add(each.name)
    assert {flag: names for flag, names in meaning.items() if len(names) > 1} == {}
