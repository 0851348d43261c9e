"""Conversations are rendered and masked as Transformers does, by the chat templates of the models that TRL supports."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tokenizing.runs import ASSET

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.interop


def test_texts_and_masks_are_those_of_transformers() -> None:
    made = subprocess.run(
        [sys.executable, "-m", "benchmarks.peers", "training"], cwd=ROOT, stdout=subprocess.PIPE, check=True
    )
    done = subprocess.run(
        [made.stdout.decode().strip(), ROOT / "tests" / "interop" / "chat_templates.py", ASSET, "20"],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["templates"] >= 60
    assert found["same"] > 5 * found["refused"] > 0
    assert found["masks"] > 300
    assert (found["differ"], found["differ_in_masks"]) == (0, 0)
