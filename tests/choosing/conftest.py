"""Stores that tests of several commands pack, and none changes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.choosing.web_and_wiki import web_and_wiki


@pytest.fixture(scope="session")
def stores(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return web_and_wiki(tmp_path_factory.mktemp("stores"))
