"""Conversations are rendered and masked as Transformers does, by the chat templates of the models that TRL supports."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.text.tokenizing.runs import ASSET

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.interop


def peer(script: str) -> dict[str, int]:
    """What a script prints, run where Transformers and TRL are."""
    made = subprocess.run(
        [sys.executable, "-m", "benchmarks.peers", "training"], cwd=ROOT, stdout=subprocess.PIPE, check=True
    )
    done = subprocess.run(
        [made.stdout.decode().strip(), ROOT / "tests" / "interop" / script, ASSET, "20"],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, int] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_texts_and_masks_are_those_of_transformers() -> None:
    found = peer("chat_templates.py")
    assert found["templates"] >= 60
    assert found["same"] > 5 * found["refused"] > 0
    assert found["masks"] > 300
    assert 0 < found["for_parts"] < 60
    assert (found["differ"], found["differ_in_masks"]) == (0, 0)


def test_control_tokens_of_messages_are_encoded_as_by_transformers() -> None:
    found = peer("chat_sanitized.py")
    assert found["differ"] == 0
    assert found["apart"] > 300
    assert found["cuts"] < found["same"] // 10
