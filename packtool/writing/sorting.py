"""Sort documents by keys, in bounded memory: deal them to ranges of the order, on disk, and sort range after range.

The order is that of a stable sort in memory, so neither the memory nor the number of ranges has an effect on it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from packtool.formats.columns import mask_of
from packtool.planning.plan import I64, Mask

DOCUMENT = "document"
"""Name of the column that numbers documents; the others are keys, the first of which decides first."""
_ORDERS = {False: "ascending", True: "descending"}
_COPIES = 4  # of a range in memory: as read, as sorted, and as much again, since samples do not divide evenly
_SAMPLED = 256  # documents of which one is in the sample


@dataclass(frozen=True)
class _Piece:
    """Documents of a range, in the file of all ranges."""

    begin: int
    size: int


def sorted_documents(
    tables: Callable[[], Iterator[pa.Table]], descending: Sequence[bool], memory: int, work: Path, leading: int = 1
) -> Iterator[pa.Table]:
    """Sort documents by their keys, ascending or descending, null last; documents with equal keys stay in order.

    Args:
        tables: function that yields the same documents whenever it is called: tables of keys, without NaN, and of
            ascending numbers.
        descending: for each key, whether the largest comes first.
        memory: bytes of keys that may be sorted at a time, with their copies.
        work: directory for keys, which take as much room there as in memory.
        leading: number of keys to return.

    Yields:
        The documents, with their leading keys, range after range.

    >>> table = pa.table({"repo": ["b", "a", None, "b"], DOCUMENT: [0, 1, 2, 3]})
    >>> (only,) = sorted_documents(lambda: iter([table]), [False], memory=1 << 20, work=Path("."))
    >>> only[DOCUMENT].to_pylist()
    [1, 0, 3, 2]
    """
    splitters = _splitters(tables(), descending, memory)
    ranges: list[list[_Piece]] = [[] for _ in range(len(splitters) + 1)]
    schema: pa.Schema | None = None
    with tempfile.TemporaryFile(dir=work) as file:
        for table in tables():
            schema = table.schema
            for number, part in _dealt(table, splitters, descending, 0):
                ranges[number] += _write(part, file)
        file.flush()
        for pieces in ranges:
            if pieces:
                yield _sorted_by(_read(file, pieces, schema), descending, leading)


def _sorted_by(table: pa.Table, descending: Sequence[bool], leading: int) -> pa.Table:
    """Sort a table by its keys; return its leading keys, and its documents."""
    return table.select([*table.column_names[:leading], DOCUMENT]).take(_order(table, descending))


def _order(table: pa.Table, descending: Sequence[bool]) -> pa.Array:
    """Return the place of each document of the sorted table in this one."""
    keys = [(name, _ORDERS[turned]) for name, turned in zip(table.column_names, [*descending, False], strict=True)]
    return pc.sort_indices(table, sort_keys=keys)  # null is last, whichever way keys are turned


def _splitters(tables: Iterator[pa.Table], descending: Sequence[bool], memory: int) -> list[dict[str, Any]]:
    """Choose the documents at which ranges begin, of a sample, so that each range fits the memory; ascending."""
    samples: list[pa.Table] = []
    size = 0
    for table in tables:
        size += table.nbytes
        samples.append(table.take(np.arange(0, len(table), _SAMPLED)))
    ranges = -(-_COPIES * size // memory)
    if ranges < 2:
        return []
    sample = pa.concat_tables(samples)
    order = _order(sample, descending).to_numpy()
    places: I64 = np.unique(np.arange(1, ranges) * len(sample) // ranges)
    splitters: list[dict[str, Any]] = sample.take(order[places]).to_pylist()
    return splitters


def _dealt(
    table: pa.Table, splitters: Sequence[dict[str, Any]], descending: Sequence[bool], first: int
) -> Iterator[tuple[int, pa.Table]]:
    """Divide documents among ranges, counted from `first`, at the splitter in the middle, and so on on both sides."""
    if not len(table):
        return
    if not splitters:
        yield first, table
        return
    middle = len(splitters) // 2
    below = _below(table, splitters[middle], descending)
    yield from _dealt(table.filter(pa.array(below)), splitters[:middle], descending, first)
    yield from _dealt(table.filter(pa.array(~below)), splitters[middle + 1 :], descending, first + middle + 1)


def _below(table: pa.Table, splitter: dict[str, Any], descending: Sequence[bool]) -> Mask:
    """Mark the documents that come before a splitter."""
    below = np.zeros(len(table), np.bool_)
    equal = np.ones(len(table), np.bool_)
    for name, turned in zip(table.column_names, [*descending, False], strict=True):
        values, value = table[name], splitter[name]
        if value is None:  # which is last: all values come before it
            same = mask_of(values.is_null())
            before = ~same
        else:
            compare = {False: pc.less, True: pc.greater}[turned]
            before = mask_of(pc.fill_null(compare(values, value), False))
            same = mask_of(pc.fill_null(pc.equal(values, value), False))
        below |= equal & before
        equal &= same
    return below


def _write(table: pa.Table, file: BinaryIO) -> Iterator[_Piece]:
    """Append a table to the file of all ranges."""
    for batch in table.combine_chunks().to_batches():
        begin = file.tell()
        size = file.write(batch.serialize())
        yield _Piece(begin, size)


def _read(file: BinaryIO, pieces: Sequence[_Piece], schema: pa.Schema | None) -> pa.Table:
    """Read the documents of a range."""
    batches = []
    for piece in pieces:
        file.seek(piece.begin)
        batches.append(pa.ipc.read_record_batch(pa.py_buffer(file.read(piece.size)), schema))
    return pa.Table.from_batches(batches, schema)
