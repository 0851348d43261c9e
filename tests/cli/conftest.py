"""A directory to run commands in."""

from pathlib import Path

import pytest

from tests.making import Make


@pytest.fixture
def place(here: Path, make: Make) -> Path:
    return make([5, 9, 70], at=here)
