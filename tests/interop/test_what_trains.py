"""What an export becomes on its way through a trainer: whether documents of a row see each other in the model."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import packtool
from tests.tokenizing.runs import ASSET

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.interop


@pytest.fixture(scope="module")
def python() -> str:
    """The Python that has the trainers."""
    made = subprocess.run(
        [sys.executable, "-m", "benchmarks.peers", "training"], cwd=ROOT, stdout=subprocess.PIPE, check=True
    )
    return made.stdout.decode().strip()


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("trained")
    words = np.random.default_rng(0).integers(1, 12, 200)
    texts = (" ".join(f"w{number}x{n}" for n in range(count)) for number, count in enumerate(words))
    packtool.tokenize(texts, place / "store", tokenizer=ASSET)
    packtool.pack(place / "store", place / "rows", strategy="bfd", sequence_length=64)
    for name in ("parquet", "arrow"):
        packtool.export(place / "rows", place / name, format=name)
    return place


@pytest.mark.parametrize(
    ("way", "format", "apart"),
    [
        ("trainer", "parquet", True),
        ("trainer", "arrow", True),
        ("trainer eval", "parquet", True),
        ("trl padding_free", "parquet", True),
        ("trl padding_free", "arrow", True),
        ("trl", "parquet", False),
        ("trl packing", "parquet", False),
    ],
)
def test_documents_of_a_row_see_each_other_only_where_the_page_says_so(
    python: str, place: Path, way: str, format: str, apart: bool
) -> None:
    done = subprocess.run(
        [python, ROOT / "tests" / "interop" / "what_trains.py", way, place / format, place / "store"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["rows"] >= 6
    assert found["documents"] > 2 * found["rows"]
    assert found["targets"] > 0
    assert (found["difference"] < 1e-5) == apart
    if not apart:
        assert found["difference"] > 0.1
