"""`packtool info` on the command line."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from packtool.cli import run
from tests.cli.running import ENVIRONMENT
from tests.stores import write_uniform_store


def test_info_gives_the_command_that_goes_on(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_uniform_store(place / "large", 20_000, 400)
    typed = ["pack", "large", "-o", "my p", "--strategy", "concat", "-L", "16", "--overwrite"]
    process = subprocess.Popen([sys.executable, "-m", "packtool", *typed], stderr=subprocess.DEVNULL, env=ENVIRONMENT)
    while not (place / "my p" / "unfinished" / "state.json").exists():
        time.sleep(0.001)
    process.send_signal(signal.SIGINT)
    process.wait()
    assert run(["info", "my p"]) == 0
    assert capsys.readouterr().out.splitlines()[-2:] == [
        "  packtool pack large -o 'my p' --strategy concat -L 16 --resume",
        "  packtool pack large -o 'my p' --strategy concat -L 16 --overwrite",
    ]
    assert run(["stats", "my p"]) == 1
    assert "interrupted. Finish it first: packtool info 'my p' tells how." in capsys.readouterr().err
