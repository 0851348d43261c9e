"""The pages that need PyTorch run, each in order, in an empty directory."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.test_docs import ELSEWHERE, ROOT, blocks, command, corpus, empty, run_blocks

__all__ = ["command", "corpus", "empty"]
pytestmark = [
    pytest.mark.torch,
    pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile"),
    pytest.mark.filterwarnings("ignore:.*pin_memory.*:UserWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),  # Lightning calls what PyTorch deprecates
]
pytest.importorskip("torch")


@pytest.mark.parametrize("page", ELSEWHERE)
def test_the_page_runs(page: str, empty: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of it but the data of torchtitan and Megatron, which tests/interop runs beside them."""
    pytest.importorskip("transformers")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    run_blocks(page, blocks(ROOT / "docs" / page), empty, monkeypatch)
