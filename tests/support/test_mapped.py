"""Maps keep no file open, and go when nothing needs them."""

import re
import subprocess
import sys
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


@pytest.mark.skipif(sys.platform != "linux", reason="macOS does not say how many maps a process has")
def test_more_maps_than_the_system_allows(tmp_path: Path) -> None:
    """In a process that may have no more memory, which the system refuses in the same way."""
    with (tmp_path / "large").open("wb") as file:
        file.truncate(1 << 33)
    code = f"""
import os, resource
from packtool.support.mapped import mapped
resource.setrlimit(resource.RLIMIT_AS, (1 << 32, 1 << 32))
mapped(os.open({str(tmp_path / "large")!r}, os.O_RDONLY), 1 << 33)
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    message = r"maps no more files for this process: it has \d+ maps, and vm\.max_map_count allows [\d,]+\. Raise that "
    assert re.search(message + "limit, or read datasets of fewer, larger shards", ended.stderr), ended.stderr


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
