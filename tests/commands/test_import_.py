"""`import`: resumed to the same bytes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import packtool
from tests.interrupting import interrupted_everywhere
from tests.stores import write_store


@pytest.mark.parametrize("name", ["parquet", "megatron"])
def test_an_import_resumes_to_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    store = write_store(tmp_path / "store", [5, 1, 9, 33, 2, 2, 64, 1, 100, 17], per_shard=4)
    packtool.export(store, tmp_path / "files", format=name)

    def make(output: Path, **options: Any) -> Any:
        return packtool.import_(tmp_path / "files", output, format=name, **options)

    assert interrupted_everywhere(monkeypatch, tmp_path, make) > 3
