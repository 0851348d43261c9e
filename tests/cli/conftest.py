"""A directory to run commands in."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.stores import write_store


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_store(Path("store"), [5, 9, 70])
    return tmp_path
