"""docs/training.md runs, in order, in an empty directory."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.test_docs import ROOT, blocks, command, empty, run_blocks

__all__ = ["command", "empty"]
pytestmark = [
    pytest.mark.torch,
    pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile"),
    pytest.mark.filterwarnings("ignore:.*pin_memory.*:UserWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),  # Lightning calls what PyTorch deprecates
]
pytest.importorskip("torch")


def test_the_page_runs(empty: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of it but the data of torchtitan and Megatron, which tests/interop runs beside them."""
    pytest.importorskip("transformers")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    run_blocks("training.md", blocks(ROOT / "docs" / "training.md"), empty, monkeypatch)
