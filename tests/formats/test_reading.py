"""Nothing that is read is believed: every array and every file of JSON is what it should be, or one clear error."""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import packtool
from packtool.errors import DataError
from packtool.formats.files import write_array
from packtool.places.local import LocalPlace
from packtool.places.npy import FileEntry, npy_header
from tests.interrupting import cut
from tests.stores import contents, write_store

DTYPE = np.dtype("<u2")
ARRAY = np.arange(6, dtype=DTYPE).reshape(2, 3)


@pytest.fixture
def entry(tmp_path: Path) -> FileEntry:
    (tmp_path / "inside").mkdir()
    return write_array(tmp_path / "inside" / "tokens-00000.npy", ARRAY)


def resaved(file: Path, array: np.ndarray) -> None:
    np.save(file, array)


def patched(file: Path, array: np.ndarray) -> None:
    """The same bytes under the header of another array."""
    file.write_bytes(npy_header(array.dtype, array.shape) + ARRAY.tobytes())


DAMAGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "empty": (lambda f: f.write_bytes(b""), "not a readable array: its header is damaged"),
    "text": (lambda f: f.write_bytes(b"not an array"), "not a readable array: its header is damaged"),
    "pickle": (lambda f: resaved(f, np.array([["a", 1]], object)), "holds object, but the manifest says uint16"),
    "bytes": (lambda f: resaved(f, ARRAY.astype("u1")), "holds uint8, but the manifest says uint16"),
    "wide": (lambda f: patched(f, np.zeros(3, "<u4")), "holds uint32, but the manifest says uint16"),
    "big-endian": (lambda f: resaved(f, ARRAY.astype(">u2")), "holds >u2, but the manifest says uint16"),
    "flat": (lambda f: patched(f, np.zeros(6, DTYPE)), "has shape (6,), but the manifest says (2, 3)"),
    "larger": (lambda f: patched(f, np.zeros((2, 300), DTYPE)), "has shape (2, 300), but the manifest says (2, 3)"),
    "fortran": (lambda f: resaved(f, np.asfortranarray(ARRAY)), "in Fortran order"),
    "short header": (lambda f: resaved(f, ARRAY), "its header is not one that packtool writes"),
    "cut short": (cut, "has 4107 bytes, but an array of shape (2, 3) has 4108"),
    "too long": (
        lambda f: f.write_bytes(f.read_bytes() + b"x"),
        "has 4109 bytes, but an array of shape (2, 3) has 4108",
    ),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_array_is_refused(tmp_path: Path, entry: FileEntry, damage: str) -> None:
    change, message = DAMAGES[damage]
    change(tmp_path / "inside" / entry.name)
    with pytest.raises(DataError) as caught:
        LocalPlace(tmp_path / "inside").array(entry, DTYPE)
    assert (caught.value.code, caught.value.what) == ("damaged-shard", message)
    assert caught.value.where == str(tmp_path / "inside" / entry.name)


def test_a_header_with_every_byte_changed(tmp_path: Path, entry: FileEntry) -> None:
    file = tmp_path / "inside" / entry.name
    whole = file.read_bytes()
    for place in [*range(160), 4094, 4095]:
        file.write_bytes(whole[:place] + bytes([whole[place] ^ 0x10]) + whole[place + 1 :])
        with pytest.raises(DataError):
            LocalPlace(tmp_path / "inside").array(entry, DTYPE)


SHARDS = 200
PROGRAM = """
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))
import packtool

packtool.pack("store", "packed", strategy="concat", sequence_length=16, shard_tokens=32, seed=3)
packtool.pack("store", "twice", strategy="concat", sequence_length=16, shard_tokens=32, seed=3, memory=20_000)
packtool.shuffle("packed", "again", seed=4)
packtool.shuffle("again", "back", seed=3, memory=20_000)
assert packtool.verify("store").problems == packtool.verify("back").problems == []
assert sum(len(row) for row in packtool.open("back")) == packtool.stats("packed").ledger.output
"""


def test_two_hundred_shards_with_a_hundred_open_files(tmp_path: Path) -> None:
    assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] >= 100
    write_store(tmp_path / "store", [30] * SHARDS, per_shard=1)
    subprocess.run([sys.executable, "-c", PROGRAM], check=True, cwd=tmp_path)
    assert len(list((tmp_path / "packed").glob("tokens-*.npy"))) > SHARDS / 2
    options = {"strategy": "concat", "sequence_length": 16, "shard_tokens": 32, "seed": 3}
    packtool.pack(tmp_path / "store", tmp_path / "expected", **options)
    for name in ("packed", "twice", "back"):
        assert contents(tmp_path / name) == contents(tmp_path / "expected"), name
