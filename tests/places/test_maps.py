"""Maps keep no file open, and go when nothing needs them."""

from __future__ import annotations

from pathlib import Path

import pytest

from packtool.places.maps import mapped, release


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
