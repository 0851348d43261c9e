"""`import`: resumed to the same bytes, refused where it makes no sense."""

from __future__ import annotations

from pathlib import Path

import pytest

import packtool
from packtool.errors import DataError
from packtool.options.names import EXPORTS, IMPORTS
from tests.stores import contents, write_store

BOTH = [name for name in EXPORTS if name in IMPORTS]


LENGTHS = [5, 1, 9, 33, 2, 2, 64, 1, 100, 17, 3, 40, 8, 8, 1]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_store(tmp_path_factory.mktemp("import") / "small", LENGTHS, per_shard=4)


@pytest.mark.parametrize("name", BOTH)
def test_an_import_resumes_to_the_same_bytes(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    packtool.export(store, tmp_path / "files", format=name)
    packtool.import_(tmp_path / "files", tmp_path / "whole", format=name)
    expected = contents(tmp_path / "whole")
    replace = Path.replace
    for fail_at in range(1, 100):
        output, left = tmp_path / f"cut-{fail_at}", fail_at

        def failing(self: Path, target: Path) -> Path:
            nonlocal left
            left -= 1
            if left < 0:
                raise OSError(28, "No space left on device", str(target))
            return replace(self, target)

        monkeypatch.setattr(Path, "replace", failing)
        try:
            packtool.import_(tmp_path / "files", output, format=name)
            monkeypatch.undo()
            break
        except DataError:  # the disk is full
            monkeypatch.undo()
        assert not (output / "manifest.json").exists()
        packtool.import_(tmp_path / "files", output, format=name, resume=True)
        assert contents(output) == expected
