"""Arrays in `.npy` files: their headers, and pairs of items of several of them."""

from __future__ import annotations

import ast
import io
from collections.abc import Sequence
from typing import Annotated, Any

import msgspec
import numpy as np
import numpy.typing as npt

HEADER_BYTES = 4096
"""Size of every `.npy` header packtool writes: a page, so that the array begins on the next one."""

NonNegative = Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]
Digest = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{32}\Z")]
ArrayName = Annotated[str, msgspec.Meta(pattern=r"^[a-z_]+(-[0-9]{5,}(-[0-9]{3,})?)?\.npy\Z")]


class FileEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One array file as a manifest lists it.

    Attributes:
        name: relative to its directory.
        shape: of the array.
        bytes: size of the file, header included.
        xxh3_128: of the whole file, as `xxhsum -H2` prints it.
    """

    name: ArrayName
    shape: tuple[NonNegative, ...]
    bytes: NonNegative
    xxh3_128: Digest


def npy_header(dtype: np.dtype[Any], shape: Sequence[int]) -> bytes:
    """Return a version 1.0 `.npy` header, padded with spaces to `HEADER_BYTES`."""
    buffer = io.BytesIO()
    description = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": tuple(shape)}
    text = repr(description).encode("latin1")
    buffer.write(np.lib.format.magic(1, 0))
    length = HEADER_BYTES - buffer.tell() - 2
    buffer.write(length.to_bytes(2, "little"))
    buffer.write(text.ljust(length - 1) + b"\n")
    return buffer.getvalue()


def header_problem(header: bytes, size: int, dtype: np.dtype[Any], shape: tuple[int, ...]) -> str | None:
    """Describe how a file of `size` bytes, by its header, differs from an array of this type and shape, if it does."""
    if header != npy_header(dtype, shape):
        return _difference(header, dtype, shape)
    expected = HEADER_BYTES + dtype.itemsize * int(np.prod(shape, dtype=object))
    return None if size == expected else f"has {size} bytes, but an array of shape {shape} has {expected}"


def _difference(header: bytes, dtype: np.dtype[Any], shape: tuple[int, ...]) -> str:
    """Explain how a header differs from the expected one, as far as it can be read.

    NumPy's own reader would search a damaged header for integers of Python 2, which takes a quarter of a second.
    """
    try:
        stream = io.BytesIO(header)
        width = {(1, 0): 2, (2, 0): 4}[np.lib.format.read_magic(stream)]
        length = int.from_bytes(stream.read(width), "little")
        described = ast.literal_eval(stream.read(length).decode("latin1"))
        found_shape, fortran = tuple(described["shape"]), described["fortran_order"]
        written = np.lib.format.descr_to_dtype(described["descr"])
    except Exception:  # these bytes may say anything
        return "not a readable array: its header is damaged"
    if written != dtype:
        return f"holds {written}, but the manifest says {dtype}"
    if found_shape != shape:
        return f"has shape {found_shape}, but the manifest says {shape}"
    return "in Fortran order" if fortran else "its header is not one that packtool writes"


class Scattered:
    """Pairs of neighbours in several arrays, read in any order by two calls of NumPy.

    NumPy reads from a view that begins with the array lowest in memory, and ends with the highest. Memory
    between them is not ours, and places outside the arrays are not noticed.

    Args:
        arrays: one or more, 1-D, of one dtype.

    >>> read = Scattered([np.array([1, 2, 3]), np.array([4, 5])])
    >>> read(np.array([1, 0]), np.array([0, 1]))
    (array([4, 2]), array([5, 3]))
    """

    def __init__(self, arrays: Sequence[npt.NDArray[Any]]) -> None:
        address = np.array([array.__array_interface__["data"][0] for array in arrays], np.int64)
        lowest = arrays[int(address.argmin())]
        self._arrays = arrays  # they own the memory
        self._begins, odd = np.divmod(address - address.min(), lowest.itemsize)
        if odd.any() or not all(array.flags.c_contiguous and array.flags.aligned for array in arrays):
            raise ValueError("arrays have to be aligned and contiguous")
        end = int((self._begins + list(map(len, arrays))).max())
        self._all = np.lib.stride_tricks.as_strided(lowest, (end,), (lowest.itemsize,), writeable=False)

    def __call__(
        self, number: npt.NDArray[np.int64], place: npt.NDArray[np.int64]
    ) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """Read an item of the array of each number, and the item after it."""
        at = self._begins.take(number) + place
        return self._all.take(at), self._all.take(at + 1)
