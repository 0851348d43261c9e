"""The example in examples/experiment: from text to a page, with controls that come out as they must."""

from __future__ import annotations

import doctest
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "experiment"
pytestmark = [pytest.mark.torch]
torch = pytest.importorskip("torch")


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLE))


@pytest.mark.parametrize("name", ["measures", "model", "page"])
def test_examples_in_docstrings(name: str, example: None) -> None:
    module = __import__(name)
    assert doctest.testmod(module).failed == 0


def test_windows_score_each_token_once(example: None, tmp_path: Path) -> None:
    from training import windows

    from tests.stores import write_store

    store = write_store(tmp_path / "store", [1, 2, 7, 8, 9, 30], per_shard=10)
    rows, counted = windows(store, 8)
    assert rows.shape == counted.shape
    assert int(counted.sum()) == sum(length - 1 for length in (1, 2, 7, 8, 9, 30))


def test_ranks_of_segments(example: None) -> None:
    import numpy as np
    from measures import final, rankings, segments

    def run(loss: float) -> Any:
        progress = np.arange(1, 201) / 100
        return np.stack([progress, *(np.full(200, value) for value in (loss * 10, 10.0, 0.0, 0.0))], axis=1)

    runs = {name: segments(run(loss), 2) for name, loss in {"low": 1.0, "high": 2.0}.items()}
    assert rankings(runs) == {"low": 1.0, "high": 2.0}
    assert final(run(1.0), 2) == pytest.approx(np.e)


@pytest.mark.slow
def test_controls_come_out_and_a_second_run_keeps_them(tmp_path: Path) -> None:
    arguments = [
        str(tmp_path),
        "--part",
        "controls",
        "--seeds",
        "1",
        "--epochs",
        "1",
        "--threads",
        "1",
        "--width",
        "32",
    ]
    command = [sys.executable, str(EXAMPLE / "experiment.py"), *arguments]
    first = subprocess.run(command, capture_output=True, text=True, check=True)
    results = {file.stem: json.loads(file.read_text()) for file in (tmp_path / "results").glob("*.json")}
    shuffled = results["shuffled-0"]["same_text"]
    assert results["corpus-order-0"]["same_text"] > shuffled
    assert results["half-padded-0"]["same_text"] > shuffled
    again = subprocess.run(command, capture_output=True, text=True, check=True)
    assert again.stdout.splitlines() == first.stdout.splitlines()[-1:]
    assert "as it must be" in (tmp_path / "report.html").read_text()
