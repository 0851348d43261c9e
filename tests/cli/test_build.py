"""Help, completion and the options that every command has, as they follow from the declarations."""

import logging
import os
import re
import warnings
from pathlib import Path

import pytest

from packtool.cli.commands import COMMANDS
from packtool.options.declare import declared
from packtool.options.pack import PackArguments
from packtool.options.shared import Terminal
from tests.cli.running import ENVIRONMENT, packtool
from tests.shell import Shell


@pytest.mark.parametrize("command", COMMANDS)
def test_help_fits_and_has_an_example(command: str, shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "50")
    narrow = shell(command, "--help")
    assert max(map(len, narrow.splitlines())) <= 50
    monkeypatch.setenv("COLUMNS", "80")
    text = shell(command, "--help")
    assert f"  Examples:\n  packtool {command}" in text
    assert max(map(len, text.splitlines())) <= 80
    assert "<" not in text.partition("Arguments:")[2].partition("\n\n")[0]
    assert "{" not in text.splitlines()[0]
    [one, other] = ["".join(each.replace("\\\n", "").split()) for each in (narrow, text)]
    assert one == other
    for option in ("--quiet", "--json") if command not in ("info", "doctor", "show", "find") else ("--json",):
        if command != "show":
            assert option in text


def test_help_is_grouped_and_the_rare_options_come_last(shell: Shell) -> None:
    text = shell("pack", "-h")
    assert text.startswith("Usage: packtool pack [OPTIONS] STORE...\n")
    titles = re.findall(r"^(\w[\w ]*):$", text, re.MULTILINE)
    common = "Arguments, Rows, Which documents, Order, Output, Resources, General"
    assert ", ".join(titles) == f"{common}, Tuning of strategies, Rarely needed"
    listed = re.findall(r"^  (?:-\w, )?(--[\w-]+)", text.partition("Arguments:")[2], re.MULTILINE)
    options = {each.flag for each in (*declared(PackArguments).values(), *declared(Terminal).values())}
    assert sorted(listed) == sorted((options | {"--help"}) - {"STORE", "--full", "--ids"}), "each option once"


def test_what_the_command_line_sets_lasts_as_long_as_the_command(
    place: Path, monkeypatch: pytest.MonkeyPatch, shell: Shell
) -> None:
    monkeypatch.setenv("PACKTOOL_PROGRESS", "log")
    logger = logging.getLogger("packtool")
    before = logger.level, list(logger.handlers), list(warnings.filters)
    shell("pack", "store", "-o", "p", "--strategy", "concat", "-L", "16", "-v", "-q", "--progress", "none")
    assert "documents planned" in shell.err
    assert os.environ["PACKTOOL_PROGRESS"] == "log"
    assert (logger.level, list(logger.handlers), list(warnings.filters)) == before


@pytest.mark.parametrize(
    ("typed", "completed"),
    [
        ("sh", ["shuffle", "show"]),
        ("pack --strategy bfd", ["bfd", "bfd-extra"]),
        ("shuffle --method p", ["partial"]),
        ("pack --seq", ["--sequence-length"]),
        ("stats --compare concat,bfd", ["concat,bfd", "concat,bfd-extra"]),
        ("tokenize --encoder g", ["gigatoken"]),
        ("tokenize --format p", ["parquet"]),
        ("pack --progress l", ["log"]),
    ],
)
def test_completion(typed: str, completed: list[str]) -> None:
    words = {"_PACKTOOL_COMPLETE": "complete_bash", "COMP_WORDS": f"packtool {typed}"}
    environment = {**ENVIRONMENT, **words, "COMP_CWORD": str(len(typed.split()))}
    result = packtool(env=environment)
    assert (result.stdout.split(), result.stderr) == (completed, "")
