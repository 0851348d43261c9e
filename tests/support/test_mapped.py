"""Maps keep no file open, and go when nothing needs them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from packtool.support.mapped import mapped, release

PACKAGE = Path(__file__).parents[2] / "packtool"


def test_no_file_stays_open(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"abc")
    before = len(list(Path("/proc/self/fd").iterdir()))
    with (tmp_path / "file").open("rb") as file:
        found = mapped(file.fileno(), 3)
    assert len(list(Path("/proc/self/fd").iterdir())) == before
    assert found.tobytes() == b"abc"
    assert not found.flags.writeable


def test_what_is_written_goes_to_the_file(tmp_path: Path) -> None:
    with (tmp_path / "file").open("w+b") as file:
        file.truncate(3)
        found = mapped(file.fileno(), 3, writable=True)
    found[:] = list(b"xyz")
    release([found[1:]])
    assert (tmp_path / "file").read_bytes() == found.tobytes() == b"xyz"


def test_what_the_system_refuses(tmp_path: Path) -> None:
    with (tmp_path / "file").open("w+b") as file, pytest.raises(OSError, match="Invalid argument"):
        mapped(file.fileno(), 0)


def test_a_file_that_is_shorter_is_not_mapped(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"abc")
    with (tmp_path / "file").open("rb") as file, pytest.raises(OSError, match="the file is shorter than 4 bytes"):
        mapped(file.fileno(), 4)


def test_files_are_mapped_here_alone() -> None:
    """What is cut under a map kills the process; so the size is looked at where a file is mapped, or by NumPy."""
    ways = re.compile(r"np\.memmap|memory_map|mmap\.mmap|_C\.mmap\(|mmap_mode|ACCESS_READ")
    found = {path.relative_to(PACKAGE).as_posix(): ways.findall(path.read_text()) for path in PACKAGE.rglob("*.py")}
    assert {name: each for name, each in found.items() if each} == {
        "reading/costs.py": ["mmap_mode"],  # checked by NumPy; what writes the file gives it a new name first
        "support/mapped.py": ["_C.mmap("],
    }
