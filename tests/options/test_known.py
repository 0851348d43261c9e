"""Every option is where it is needed; what is missing is named."""

import ast
import functools
import re
from pathlib import Path

import pytest

import packtool
from packtool.options.commands import ARGUMENTS, arguments_of
from packtool.options.declare import declared
from packtool.options.plans import PackOptions
from packtool.options.stats import StatsArguments
from packtool.spelling import flag

ROOT = Path(__file__).parents[2]
COMMANDS = {arguments_of(name).__name__: arguments_of(name) for name in ARGUMENTS}
NOT_COMPARED = {"remainder", "window_tokens"}
"""Options of plans that `stats --compare` leaves at their defaults."""


def words(directory: str, pattern: str, without: str = "\0") -> set[str]:
    """Every match of a pattern in the code of a directory."""
    found: set[str] = set()
    for path in (ROOT / directory).rglob("*.py"):
        if without not in str(path):
            found.update(re.findall(pattern, path.read_text(encoding="utf-8")))
    return found


OPTIONS = set().union(*map(declared, COMMANDS.values()))
TAKE_OPTIONS = {*packtool.__all__, *COMMANDS}


def called(function: ast.expr) -> str:
    """The last part of the name of what is called."""
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def passed(tree: ast.AST) -> set[str]:
    """Options that a test passes by name: to what takes options, or in a dictionary of nothing but options.

    A word that only occurs, such as the `value` of a message or the keyword of another function, tests no option of
    that name.
    """
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and called(node.func) in TAKE_OPTIONS:
            found.update(keyword.arg for keyword in node.keywords if keyword.arg)
        elif isinstance(node, ast.Dict):
            keys = {ast.literal_eval(key) for key in node.keys if isinstance(key, ast.Constant)}
            found.update(keys if keys <= OPTIONS else ())
    return found


# Both take a second: too long for every process that collects tests.
@functools.cache
def code() -> set[str]:
    """The words of the package, but for the declarations of options."""
    return words("packtool", r"\w+", without="packtool/options")


@functools.cache
def named_in_tests() -> set[str]:
    """Options that tests write as flags, or pass by name."""
    found = words("tests", r"--[\w-]+")
    for path in (ROOT / "tests").rglob("*.py"):
        found |= passed(ast.parse(path.read_bytes()))
    return found


def missing(name: str, *, named: bool = True) -> list[str]:
    """List what an option lacks."""
    known = {
        "used nowhere in packtool/": name in code(),
        "in no test": not named or name in named_in_tests() or flag(name) in named_in_tests(),
    }
    return [place for place, knows in known.items() if not knows]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_is_used_and_tested(command: str) -> None:
    for name, each in declared(COMMANDS[command]).items():
        lacks = missing(name, named=not each.option.positional)
        assert not lacks, f"{flag(name)} of {command} is {' and '.join(lacks)}"


def test_options_of_plans_are_compared() -> None:
    lacking = declared(PackOptions).keys() - declared(StatsArguments).keys() - NOT_COMPARED
    assert not lacking, f"{sorted(lacking)}: declare it with _tried in packtool/options/stats.py"
    assert declared(PackOptions).keys() >= NOT_COMPARED


def test_what_an_option_lacks_is_named() -> None:
    assert missing("max_" + "bucket" + "_of") == ["used nowhere in packtool/", "in no test"]
    assert missing("value") == ["in no test"], "tests are full of the word, and pass no option of this name"
