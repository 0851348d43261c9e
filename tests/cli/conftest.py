"""A directory to run commands in."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.stores import write_store


@pytest.fixture
def place(here: Path) -> Path:
    write_store(Path("store"), [5, 9, 70])
    return here
