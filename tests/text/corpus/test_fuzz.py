"""Random inputs against an independent parse: a short form, and the long one (see fuzz.py)."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


def fuzz(kind: str, cases: int, seed: int) -> dict[str, int]:
    command = [sys.executable, "-m", "tests.text.corpus.fuzz", kind, str(cases), str(seed)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    counts: dict[str, int] = json.loads(done.stdout)
    assert counts[kind] == cases
    assert set(counts) <= {kind, "exit 0", "exit 1", "exit 2", "peak_mib"}
    return counts


@pytest.mark.parametrize("kind", ["jsonl", "archive", "parquet"])
def test_random_inputs(kind: str) -> None:
    assert fuzz(kind, 150, 0)["exit 1"] > 0


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "cases"), [("jsonl", 70_000), ("archive", 15_000), ("parquet", 15_000)])
def test_a_hundred_thousand_random_inputs(kind: str, cases: int) -> None:
    counts = fuzz(kind, cases, 1)
    assert counts["exit 0"] > 0
    assert counts["exit 1"] > 0
