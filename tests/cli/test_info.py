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
        f"  packtool pack {place}/large -o 'my p' --strategy concat --sequence-length 16 --resume",
        f"  packtool pack {place}/large -o 'my p' --strategy concat --sequence-length 16 --overwrite",
    ]
    assert run(["stats", "my p"]) == 1
    assert "interrupted. Finish it first: packtool info 'my p' tells how." in capsys.readouterr().err


def test_a_file_of_a_dataset_belongs_to_it(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["info", "store/tokens-00000.npy"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("store/tokens-00000.npy: file of the token store store\n")
    assert text.endswith("Next:\n  packtool info store\n")


def test_which_tokenizer_made_a_store(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.txt").write_text("a text")
    assert run(["tokenize", str(tmp_path / "a.txt"), "-o", str(tmp_path / "s")]) == 0
    named = "packtool's own small one, for trying things out: give --tokenizer to train a model"
    assert f"tokenizer: {named}; EOS <|endoftext|> (0)\n" in capsys.readouterr().out
    assert run(["info", str(tmp_path / "s")]) == 0
    assert f"  tokenizer   {named}\n" in capsys.readouterr().out
