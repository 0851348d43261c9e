"""Arrays in files: what is damaged of one is said, and pairs of items are read from several as from each."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from packtool.errors import DataError
from packtool.formats.files import write_array
from packtool.places.local import LocalPlace
from packtool.places.npy import FileEntry, Scattered, npy_header
from tests.interrupting import cut

DTYPE = np.dtype("<u2")
ARRAY = np.arange(6, dtype=DTYPE).reshape(2, 3)


@pytest.fixture
def entry(tmp_path: Path) -> FileEntry:
    return write_array(tmp_path / "a.npy", ARRAY)


def patched(file: Path, array: np.ndarray) -> None:
    """The same bytes under the header of another array."""
    file.write_bytes(npy_header(array.dtype, array.shape) + ARRAY.tobytes())


DAMAGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "empty": (lambda f: f.write_bytes(b""), "not a readable array: its header is damaged"),
    "text": (lambda f: f.write_bytes(b"not an array"), "not a readable array: its header is damaged"),
    "pickle": (lambda f: np.save(f, np.array([["a", 1]], object)), "holds object, but the manifest says uint16"),
    "bytes": (lambda f: np.save(f, ARRAY.astype("u1")), "holds uint8, but the manifest says uint16"),
    "wide": (lambda f: patched(f, np.zeros(3, "<u4")), "holds uint32, but the manifest says uint16"),
    "big-endian": (lambda f: np.save(f, ARRAY.astype(">u2")), "holds >u2, but the manifest says uint16"),
    "flat": (lambda f: patched(f, np.zeros(6, DTYPE)), "has shape (6,), but the manifest says (2, 3)"),
    "larger": (lambda f: patched(f, np.zeros((2, 300), DTYPE)), "has shape (2, 300), but the manifest says (2, 3)"),
    "fortran": (lambda f: np.save(f, np.asfortranarray(ARRAY)), "in Fortran order"),
    "short header": (lambda f: np.save(f, ARRAY), "its header is not one that packtool writes"),
    "cut short": (cut, "has 4107 bytes, but an array of shape (2, 3) has 4108"),
    "too long": (
        lambda f: f.write_bytes(f.read_bytes() + b"x"),
        "has 4109 bytes, but an array of shape (2, 3) has 4108",
    ),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_array_is_refused(tmp_path: Path, entry: FileEntry, damage: str) -> None:
    change, message = DAMAGES[damage]
    change(tmp_path / "a.npy")
    with pytest.raises(DataError) as caught:
        LocalPlace(tmp_path).array(entry, DTYPE)
    assert (caught.value.code, caught.value.what) == ("damaged-shard", message)
    assert caught.value.where == str(tmp_path / "a.npy")


def test_a_header_with_every_byte_changed(tmp_path: Path, entry: FileEntry) -> None:
    whole = (tmp_path / "a.npy").read_bytes()
    for place in [*range(160), 4094, 4095]:
        (tmp_path / "a.npy").write_bytes(whole[:place] + bytes([whole[place] ^ 0x10]) + whole[place + 1 :])
        with pytest.raises(DataError):
            LocalPlace(tmp_path).array(entry, DTYPE)


@given(sizes=st.lists(st.integers(0, 9), min_size=1, max_size=6).filter(lambda sizes: max(sizes) > 1), data=st.data())
def test_pairs_of_arrays_anywhere_are_read_as_from_each(sizes: list[int], data: st.DataObject) -> None:
    arrays = [np.arange(size) + 100 * number for number, size in enumerate(sizes)]
    there = st.sampled_from([(number, place) for number, size in enumerate(sizes) for place in range(size - 1)])
    wanted = np.array(data.draw(st.lists(there)), np.int64).reshape(-1, 2)
    first, second = Scattered(arrays)(wanted[:, 0], wanted[:, 1])
    assert first.tolist() == [arrays[number][place] for number, place in wanted.tolist()]
    assert second.tolist() == [arrays[number][place + 1] for number, place in wanted.tolist()]


def test_items_that_do_not_lie_at_multiples_of_their_size_are_refused() -> None:
    odd = np.zeros(17, np.uint8)[1:].view(np.int64)
    with pytest.raises(ValueError, match="aligned"):
        Scattered([np.zeros(1, np.int64), odd])
    with pytest.raises(ValueError, match="contiguous"):
        Scattered([np.zeros(6, np.int64)[::2]])
