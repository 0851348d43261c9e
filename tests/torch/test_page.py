"""The pages that need PyTorch run, each in order, in an empty directory."""

from __future__ import annotations

import shutil
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
ABORTED = "terminate called without an active exception"
"""What a rank says, now and then, when it ends after all of its work: a thread of gloo's wants the interpreter that is
gone. No line of the page or of packtool runs then, so the page is tried once more."""


@pytest.mark.parametrize("page", ELSEWHERE)
def test_the_page_runs(page: str, empty: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of it but the data of torchtitan and Megatron, which tests/interop runs beside them."""
    pytest.importorskip("transformers")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    again = shutil.copytree(empty, empty.with_name("again"), symlinks=True)
    try:
        run_blocks(page, blocks(ROOT / "docs" / page), empty, monkeypatch)
    except AssertionError as error:
        if ABORTED not in str(error):
            raise
        run_blocks(page, blocks(ROOT / "docs" / page), again, monkeypatch)
