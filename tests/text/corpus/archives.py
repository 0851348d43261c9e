"""Bytes compressed in every way that is read."""

import bz2
import gzip
import lzma
from collections.abc import Callable

import pyarrow as pa


def zstd(data: bytes) -> bytes:
    """One frame, without a checksum, as Arrow writes it."""
    out = pa.BufferOutputStream()
    with pa.CompressedOutputStream(out, "zstd") as stream:
        stream.write(data)
    compressed: bytes = out.getvalue().to_pybytes()
    return compressed


def zstd_checked(data: bytes) -> bytes:
    """One frame with a checksum, of raw blocks of up to 1000 bytes: nothing here writes checksums otherwise."""
    import xxhash

    blocks = [data[at : at + 1000] for at in range(0, len(data), 1000)] or [b""]
    parts = [b"\x28\xb5\x2f\xfd\x04\x58"]  # a checksum, a window of 2 MiB
    for number, block in enumerate(blocks):
        parts += [(len(block) << 3 | (number == len(blocks) - 1)).to_bytes(3, "little"), block]
    return b"".join(parts) + (xxhash.xxh64_intdigest(data) & 0xFFFFFFFF).to_bytes(4, "little")


COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zstd": zstd,
}
