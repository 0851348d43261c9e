"""docs/training.md runs, in order, beside a small corpus and what is made of it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.test_docs import ROOT, blocks, run_blocks, workshop

__all__ = ["workshop"]
pytestmark = [
    pytest.mark.torch,
    pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile"),
    pytest.mark.filterwarnings("ignore:.*pin_memory.*:UserWarning"),
]
pytest.importorskip("torch")


def test_the_page_runs(workshop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of it but the data of torchtitan and Megatron, which tests/interop runs beside them."""
    pytest.importorskip("transformers")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    place = tmp_path / "here"
    shutil.copytree(workshop, place)
    run_blocks("training.md", blocks(ROOT / "docs" / "training.md"), place, monkeypatch)
