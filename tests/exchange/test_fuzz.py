"""Damaged files of every format against a naive reader: a short form, and the long one (see fuzz.py)."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from packtool.options.names import IMPORTS
from tests.exchange.foreign import WRITERS

ROOT = Path(__file__).parents[2]


def fuzz(names: str, cases: int, seed: int) -> dict[str, int]:
    command = [sys.executable, "-m", "tests.exchange.fuzz", names, str(cases), str(seed)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    counts: dict[str, int] = json.loads(done.stdout)
    assert counts["whole"] == len(names.split(",")) * -(-cases // 10)
    assert counts["refused"] > counts["read"] // 4 > 0
    return counts


def test_damaged_files() -> None:
    assert fuzz(",".join(WRITERS), 20, 0)["peak_mib"] < 1000


@pytest.mark.slow
@pytest.mark.parametrize("name", IMPORTS)
def test_thousands_of_damaged_files(name: str) -> None:
    fuzz(name, 400, 7)
