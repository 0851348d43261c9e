"""A tokenizer for ids that come without one."""

import shutil
from importlib import resources
from pathlib import Path

import pytest


@pytest.fixture
def tokenizer(tmp_path: Path) -> Path:
    """The one that comes with packtool, as a file."""
    return Path(
        shutil.copy(str(resources.files("packtool") / "assets" / "tokenizer.json"), tmp_path / "tokenizer.json")
    )
