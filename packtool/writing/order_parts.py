"""Order very many atoms part by part: keys are drawn once, and wait on disk for the part that needs them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from packtool.plan import I64, offsets_of
from packtool.shuffling.atom import AtomShuffle
from packtool.shuffling.permutation import order_by

_SORT_BYTES = 64  # for each atom that is sorted: its key and index, twice over
_KEYS_AT_ONCE = 1 << 20
_MOST_BITS = 12
_DRAWN = np.dtype([("key", "<u8"), ("atom", "<i8")])


def order_parts(shuffle: AtomShuffle, memory: int, scratch: Path) -> Iterator[I64]:
    """Yield the stored atom at each place of the new order, part by part, each computed in about this many bytes.

    What lies in an earlier shuffle's order needs that order, and so comes in one piece.

    Args:
        shuffle: whose order it is.
        memory: in bytes.
        scratch: directory for keys, 16 bytes an atom; none are left there.
    """
    bits = min((_SORT_BYTES * shuffle.atoms // memory).bit_length(), _MOST_BITS)
    if shuffle.stored is not None or not bits:
        yield shuffle.order()
        return
    files = [scratch / f"order-{part:05d}.keys" for part in range(1 << bits)]
    for file in files:
        file.unlink(missing_ok=True)
    for first in range(0, shuffle.atoms, _KEYS_AT_ONCE):
        _scatter(shuffle, first, min(_KEYS_AT_ONCE, shuffle.atoms - first), bits, files)
    for file in files:
        drawn = np.fromfile(file, _DRAWN) if file.exists() else np.empty(0, _DRAWN)
        file.unlink(missing_ok=True)
        yield drawn["atom"][order_by(np.ascontiguousarray(drawn["key"]))]


def _scatter(shuffle: AtomShuffle, first: int, count: int, bits: int, files: list[Path]) -> None:
    """Append some atoms to the parts that the top bits of their keys name."""
    drawn = np.empty(count, _DRAWN)
    drawn["key"] = shuffle.keys()(first, count)
    drawn["atom"] = np.arange(first, first + count)
    part = (drawn["key"] >> np.uint64(64 - bits)).astype(np.int64)
    drawn = drawn[np.argsort(part, kind="stable")]
    offsets = offsets_of(np.bincount(part, minlength=1 << bits)).tolist()
    for number, file in enumerate(files):
        if offsets[number] < offsets[number + 1]:
            with file.open("ab") as out:
                out.write(drawn[offsets[number] : offsets[number + 1]].tobytes())
