"""The command line itself: no command, a file of options, quiet, verbose, and streams that are closed or plain."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from packtool.cli import run
from tests.cli.running import ENVIRONMENT, packtool
from tests.shell import Shell, python
from tests.stores import load


def test_without_a_command(shell: Shell) -> None:
    error = shell.refused(status=2)
    assert shell.out == ""
    assert "Commands:\n" in error
    said = "packtool: error[missing-command]: no command was given. Choose one of the commands above.\n"
    assert error.endswith(said)


def test_version(shell: Shell) -> None:
    assert shell("--version").startswith("packtool 0.")


def test_a_reader_that_leaves_early_is_no_error(place: Path) -> None:
    """Nobody reads from the start: every write fails."""
    receiver, sender = os.pipe()
    os.close(receiver)
    for arguments in (["pack", "--help"], ["info", "store", "--json"]):
        result = packtool(*arguments, stdout=sender)
        assert (result.returncode, result.stderr) == (141, "")
    os.close(sender)


@pytest.mark.parametrize(
    ("arguments", "status"), [("info store --json >&-", 0), ("info store >&-", 0), ("info nowhere 2>&-", 1)]
)
def test_streams_that_are_closed(place: Path, arguments: str, status: int) -> None:
    command = f'exec "{sys.executable}" -m packtool {arguments}'
    result = subprocess.run(["sh", "-c", command], capture_output=True, env=ENVIRONMENT, check=False)
    assert (result.returncode, result.stdout, result.stderr) == (status, b"", b"")


def test_a_terminal_that_lacks_characters(place: Path) -> None:
    words = ["pack", "store", "-o", "p", "--strategy", "concat", "-L", "16"]
    result = packtool(*words, env={**ENVIRONMENT, "PYTHONIOENCODING": "latin-1"}, text=False)
    assert (result.returncode, result.stderr) == (0, b"")
    assert b"\x1b" not in result.stdout, "no colour unless on a terminal"
    assert max(map(len, result.stdout.splitlines())) <= 80


def test_a_command_that_was_loaded_hides_nothing() -> None:
    code = "import packtool.cli as cli; print([cli.run([name, '--help']) for name in ('run', 'import', 'run')])"
    assert python(code).splitlines()[-1] == "[0, 0, 0]"


def test_quiet_says_nothing_and_verbose_what_is_done(place: Path, shell: Shell) -> None:
    words = ("pack", "store", "--strategy", "concat", "-L", "16", "-q")
    assert (shell(*words, "-o", "p"), shell.err) == ("", "")
    shell(*words, "-o", "q", "-v")
    assert shell.err.startswith("packtool: concat: 3 documents planned in ")


CONFIG = """
[pack]
input = ["store"]
strategy = "padding"
sequence-length = 8
buckets = [2]
"""


def test_lists_and_switches_from_a_file(place: Path, shell: Shell) -> None:
    (place / "c.toml").write_text(
        """
        [stats]
        input = "store"
        compare = ["concat", "bfd"]
        sequence-length = [16, 32]
        [pack]
        input = "store"
        strategy = "seamless"
        sequence-length = 16
        max-repetition = 0.25
        shuffle = false
        segments = false
        """,
        encoding="utf-8",
    )
    entries = json.loads(shell("stats", "--config", "c.toml", "--json"))["comparison"]["entries"]
    assert {(row["strategy"], row["sequence_length"]) for row in entries} == {
        (strategy, length) for strategy in ("concat", "bfd") for length in (16, 32)
    }
    assert run(["pack", "--config", "c.toml", "-o", "p", "-q", "--segments"]) == 0
    manifest = load(place / "p")
    assert manifest["shuffle"] is None
    assert manifest["options"]["max_repetition"] == "1/4"
    assert manifest["lengths"] is not None, "the flag wins"
    error = shell.refused("pack", "-o", "q", "--strategy", "concat", "-L", "8", status=2)
    assert "STORE" in error, "an earlier call's file is forgotten"


def test_an_option_in_a_file_is_blamed_there(place: Path, shell: Shell) -> None:
    (place / "c.toml").write_text(CONFIG, encoding="utf-8")
    words, begin = ("pack", "--config", "c.toml", "-o", "p"), "packtool: error[option-not-taken]: "
    assert shell.refused(*words, status=2).startswith(
        f'{begin}c.toml:6: buckets: strategy = "padding" does not take this'
    )
    assert shell.refused(*words, "--buckets", "64", status=2).startswith(f"{begin}--buckets: --strategy")


def test_several_tables_are_for_run(place: Path, shell: Shell) -> None:
    (place / "c.toml").write_text("[[pack]]\n\n[[pack]]\n", encoding="utf-8")
    said = "c.toml:3: there are 2 [[pack]] tables. Keep one, or do all of them with packtool run c.toml."
    assert said in shell.refused("pack", "--config", "c.toml", "-o", "p", status=2)


def test_a_file_from_standard_input(place: Path) -> None:
    result = packtool("pack", "--config", "-", "-o", "p", "-q", input=CONFIG.replace("buckets = [2]", ""))
    assert (result.returncode, result.stderr) == (0, "")
