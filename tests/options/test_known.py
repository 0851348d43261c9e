"""Every option is where it is needed; what is missing is named."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from packtool.options import exchange, inspecting
from packtool.options.declare import declared, flag
from packtool.options.pack import PackOptions
from packtool.options.run import WRITING
from packtool.options.stats import StatsArguments

ROOT = Path(__file__).parents[2]
COMMANDS = {each.__name__: each for each in (*WRITING.values(), exchange.ImportArguments, StatsArguments)}
COMMANDS |= {name: each for name, each in vars(inspecting).items() if name.endswith("Arguments")}
NOT_COMPARED = {"remainder", "window_tokens"}
"""Options of plans that `stats --compare` leaves at their defaults."""


def words(directory: str, pattern: str, without: str = "\0") -> set[str]:
    """Every match of a pattern in the code of a directory."""
    found: set[str] = set()
    for path in (ROOT / directory).rglob("*.py"):
        if without not in str(path):
            found.update(re.findall(pattern, path.read_text(encoding="utf-8")))
    return found


CODE = words("packtool", r"\w+", without="packtool/options")
TESTS = words("tests", r"--[\w-]+")
"""Flags, and what tests pass: a word that only occurs in one, such as `value`, tests no option of that name."""
for passed in (r"\b(\w+)=", r"[\"'](\w+)[\"']", r"^\s*(\w+) ="):
    TESTS |= words("tests", passed)


def missing(name: str, *, named: bool = True) -> list[str]:
    """List what an option lacks."""
    known = {
        "used nowhere in packtool/": name in CODE,
        "in no test": not named or name in TESTS or flag(name) in TESTS,
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
    occurs = "mono" + "tonic"  # as time.monotonic does, which is no option that is passed
    assert missing(occurs) == ["in no test"]
