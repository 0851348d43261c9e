"""How the command line behaves: without a command, into pipes, and where its streams are closed, full or plain."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.running import ENVIRONMENT
from tests.shell import Shell


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
        command = [sys.executable, "-m", "packtool", *arguments]
        result = subprocess.run(command, stdout=sender, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT, check=False)
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
    command = [sys.executable, "-m", "packtool", "pack", "store", "-o", "p", "--strategy", "concat", "-L", "16"]
    environment = {**ENVIRONMENT, "PYTHONIOENCODING": "latin-1"}
    result = subprocess.run(command, capture_output=True, env=environment, check=False)
    assert (result.returncode, result.stderr) == (0, b"")
    assert b"\x1b" not in result.stdout, "no colour unless on a terminal"
    assert max(map(len, result.stdout.splitlines())) <= 80


def test_a_command_that_was_loaded_hides_nothing() -> None:
    code = "import packtool.cli as cli; print([cli.run([name, '--help']) for name in ('run', 'import', 'run')])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.splitlines()[-1] == "[0, 0, 0]"
