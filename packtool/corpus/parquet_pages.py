"""Headers of Parquet pages, looked at before anything is read by them: they say how much memory a page takes.

A header is a struct in Thrift's compact protocol; of its fields only numbers and what leads to them are of interest.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import IO, Any

from packtool.corpus.records import UnusableFileError

_SIZES = (1 << 10, 1 << 16, 1 << 24)
"""Bytes read to find a header; the last is the most that Arrow takes."""
_DEEPEST = 8
_MOST_TIMES = {"UNCOMPRESSED": 1, "SNAPPY": 24, "GZIP": 1040, "LZ4": 256, "LZ4_RAW": 256, "LZ4_HADOOP": 256}
"""How many times its size data can grow; with other codecs there is no bound that tells."""
_SLACK = 1 << 10
_DATA, _DICTIONARY, _DATA_2 = 5, 7, 8  # fields of a header that hold the number of values, as their field 1


def require_plausible(file: IO[bytes], meta: Any, group: int, column: str) -> None:
    """Refuse a column whose pages claim sizes that can't be: Arrow would allocate them before it looks further.

    Args:
        file: the Parquet file.
        meta: its `pyarrow.parquet.FileMetaData`.
        group: number of the row group.
        column: name of the column; dots go down into structs.

    Raises:
        UnusableFileError: naming the page.
    """
    row_group = meta.row_group(group)
    for number in range(row_group.num_columns):
        chunk = row_group.column(number)
        if chunk.path_in_schema == column or chunk.path_in_schema.startswith(f"{column}."):
            _require_chunk(file, chunk, group)


def _require_chunk(file: IO[bytes], chunk: Any, group: int) -> None:
    at = chunk.data_page_offset
    if chunk.has_dictionary_page and chunk.dictionary_page_offset is not None:
        at = min(at, chunk.dictionary_page_offset) if chunk.dictionary_page_offset > 0 else at
    end = at + chunk.total_compressed_size
    values = page = 0
    while at < end and values < chunk.num_values:
        found = _header(file, at)
        if found is None:
            return  # Arrow will say what is wrong
        header, size = found
        held, packed = header.get(2, 0), header.get(3, 0)
        kinds = [header[field] for field in (_DATA, _DICTIONARY, _DATA_2) if field in header]
        count = kinds[0].get(1, 0) if kinds and isinstance(kinds[0], dict) else 0
        if not all(isinstance(number, int) for number in (held, packed, count)):
            return  # fields of another type, which Arrow does not take either
        most = min(chunk.total_uncompressed_size, packed * _MOST_TIMES.get(chunk.compression, held) + _SLACK)
        dictionary = _DICTIONARY in header
        if (
            not 0 <= packed <= end - at
            or not 0 <= held <= most
            or not 0 <= count <= (held // 4 if dictionary else chunk.num_values)
        ):
            what = (
                f"page {page} of row group {group} claims {count:,} values in {held:,} bytes, {packed:,} of them packed"
            )
            raise UnusableFileError("damaged-file", f"not a whole Parquet file: {what}")
        values += 0 if dictionary else count
        at += size + packed
        page += 1


def _header(file: IO[bytes], at: int) -> tuple[Mapping[int, Any], int] | None:
    """The page header at this place, and its bytes; None where there is none."""
    for size in _SIZES:
        file.seek(at)
        data = file.read(size)
        try:
            return _struct(data, 0, 0)
        except IndexError:
            if len(data) < size:
                return None
        except ValueError:
            return None
    return None


def _struct(data: bytes, at: int, depth: int) -> tuple[dict[int, Any], int]:
    """The fields of a struct, and where it ends.

    Raises:
        IndexError: the data ends before.
        ValueError: this is no struct.

    >>> _struct(bytes([0x15, 4, 0x25, 2, 0]), 0, 0)
    ({1: 2, 3: 1}, 5)
    """
    if depth > _DEEPEST:
        raise ValueError
    fields: dict[int, Any] = {}
    field = 0
    while kind := data[at]:
        at += 1
        if kind >> 4:
            field += kind >> 4
        else:
            number, at = _varint(data, at)
            field = _signed(number)
        fields[field], at = _value(data, at, kind & 15, depth)
    return fields, at + 1


def _value(data: bytes, at: int, kind: int, depth: int) -> tuple[Any, int]:
    if kind in (1, 2):  # a boolean is its own type
        return kind == 1, at
    if kind == 3:
        return data[at], at + 1
    if kind in (4, 5, 6):
        number, at = _varint(data, at)
        return _signed(number), at
    if kind == 7:
        return None, at + 8
    if kind == 8:
        size, at = _varint(data, at)
        return None, at + size
    if kind == 12:
        return _struct(data, at, depth + 1)
    raise ValueError  # headers have neither lists nor maps


def _varint(data: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = data[at]
        number |= (byte & 127) << shift
        at += 1
        if byte < 128:
            return number, at
        shift += 7
        if shift > 63:
            raise ValueError


def _signed(number: int) -> int:
    return (number >> 1) ^ -(number & 1)
