"""docs/pytorch.md runs, in order, beside a small corpus and what is made of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.test_docs import ROOT, blocks, workshop

__all__ = ["workshop"]
pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")]
pytest.importorskip("torch")


def test_the_page_runs(workshop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(workshop)
    namespace: dict[str, object] = {"__name__": "documentation"}
    for language, _, code in blocks(ROOT / "docs" / "pytorch.md"):
        assert language == "python"
        exec(compile(code, f"pytorch.md: {code.splitlines()[0]}", "exec"), namespace)
