"""Random damage to arrays, tokenizers, configurations and options."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.faults.fuzz import KINDS

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(("cases", "seed"), [(40, 0), pytest.param(5000, 1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", KINDS)
def test_nothing_ends_in_a_traceback(kind: str, cases: int, seed: int) -> None:
    command = [sys.executable, "-m", "tests.faults.fuzz", kind, str(cases), str(seed)]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr
