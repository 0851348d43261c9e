"""Parquet pages that claim sizes that can't be are refused before Arrow allocates them."""

from __future__ import annotations

import io
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from packtool.corpus.parquet import open_parquet, read_parquet
from packtool.corpus.parquet_pages import _header, require_plausible
from packtool.corpus.records import UnusableFileError

TEXTS = [f"text {number} " * (number % 50) for number in range(2000)]


def made(**options: Any) -> bytes:
    sink = io.BytesIO()
    table = pa.table({"id": range(len(TEXTS)), "text": TEXTS, "in": [{"text": text, "n": 1} for text in TEXTS]})
    parquet.write_table(table, sink, **options)
    return sink.getvalue()


def varint(number: int) -> bytes:
    out = bytearray()
    number <<= 1
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number])


@pytest.mark.parametrize("compression", ["none", "snappy", "gzip", "brotli", "zstd", "lz4"])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("column", ["text", "in.text"])
def test_every_page_of_a_whole_file_is_plausible(compression: str, version: str, column: str) -> None:
    for dictionary in (True, False):
        data = made(
            compression=compression,
            data_page_version=version,
            use_dictionary=dictionary,
            data_page_size=1000,
            write_batch_size=50,
            row_group_size=700,
            write_page_checksum=True,
        )
        found = [text for batch in read_parquet(io.BytesIO(data), column) for text in batch.documents]
        assert found == TEXTS
        meta = open_parquet(io.BytesIO(data)).metadata
        read: list[int] = []

        class Watched(io.BytesIO):
            def seek(self, offset: int, whence: int = 0, /, read: list[int] = read) -> int:
                read.append(offset)
                return super().seek(offset, whence)

        require_plausible(Watched(data), meta, 1, column)
        assert len(read) > 3, "pages were looked at"


@pytest.mark.parametrize("field", [2, 3])
@pytest.mark.parametrize("claimed", [(1 << 31) - 1, 1 << 28])
@pytest.mark.parametrize("compression", ["snappy", "zstd"])
def test_a_page_that_claims_gigabytes(field: int, claimed: int, compression: str) -> None:
    data = made(compression=compression, use_dictionary=False)
    meta = open_parquet(io.BytesIO(data)).metadata
    at = meta.row_group(0).column(1).data_page_offset
    found = _header(io.BytesIO(data), at)
    assert found is not None
    header = found[0]
    old = varint(header[2]) + b"\x15" + varint(header[3])
    sizes = [claimed if field == 2 else header[2], claimed if field == 3 else header[3]]
    new = varint(sizes[0]) + b"\x15" + varint(sizes[1])
    place = data.index(old, at)
    damaged = data[:place] + new + data[place + len(old) :]
    before = pa.total_allocated_bytes()
    with pytest.raises(UnusableFileError, match="page 0 of row group 0 claims 2,000 values in") as caught:
        # The footer lies where it did, counted from the end; what it points to before the damage does, too.
        list(read_parquet(io.BytesIO(damaged), "text"))
    assert f"{claimed:,}" in caught.value.reason
    assert pa.total_allocated_bytes() - before < 1 << 20


def test_a_header_that_is_no_struct_is_left_to_arrow() -> None:
    for junk in (b"", b"\x19", bytes(40), b"\xff" * 40, b"\x1c" * 40, b"\x18\x7f"):
        found = _header(io.BytesIO(junk), 0)
        assert found is None or isinstance(found[0], dict)
