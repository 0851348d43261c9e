"""Parquet and Arrow, as Hugging Face `datasets` loads them: a row of the table for each sequence.

Documents have `input_ids`, and `labels` if the store has a loss. Rows of a packed dataset also
have the columns that trainers of packed data take: `position_ids`, `seq_lengths` (of each segment of a document, and of
padding), and `labels`. Labels are not shifted, and -100 for padding and for tokens that do not train. An EOS that a
strategy inserted belongs to the segment before it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from packtool.errors import DataError
from packtool.exchange.model import Contents, Format, Part, ReadDocuments, ReadOptions, SequenceBlock, damaged
from packtool.exchange.whole_documents import Column, RowReader, beside, id_column
from packtool.planning.plan import I64, offsets_of
from packtool.reading.batch import IGNORED, make_batch
from packtool.text.corpus.records import in_words
from packtool.text.corpus.token_columns import KNOWN

ERRORS = (pa.ArrowException, OSError, ValueError, LookupError, OverflowError, MemoryError)
"""What Arrow raises at a damaged file."""
table_format = partial(
    Format,
    largest_vocab=1 << 31,
    columns=True,
    documents=True,
    boundaries=True,
    labels=True,
    loss=True,
    several_lengths=True,
)
"""Make a format with these columns."""
_LIST = pa.list_(pa.int32())
_BATCH = 1000  # rows of a record batch, as `datasets` writes them itself


def schema(contents: Contents) -> pa.Schema:
    """Return the columns to export."""
    names = ["input_ids"]
    if contents.kind == "rows" and contents.bounded:
        names += ["position_ids", "seq_lengths", "labels"]
    elif contents.masked is not None:
        names.append("labels")
    return pa.schema([pa.field(name, _LIST, nullable=False) for name in names])


def write(put: Callable[[pa.RecordBatch], object], contents: Contents, part: Part) -> tuple[int, int]:
    """Write the sequences of one part, some rows at a time; returns the sequences and tokens that were written."""
    sequences = tokens = 0
    for block in contents.blocks(part):
        batch = pa.record_batch(_columns(block), schema=schema(contents))
        for first in range(0, batch.num_rows, _BATCH):
            records = batch.slice(first, _BATCH)
            put(records)
            sequences += records.num_rows
            tokens += len(records.column(0).flatten())
    return sequences, tokens


def _columns(block: SequenceBlock) -> list[pa.Array]:
    ids = lists(block.tokens, block.lengths)
    if block.segments is not None:
        positions, labels, lengths, counts = described(block)
        return [ids, lists(positions, block.lengths), lists(lengths, counts), lists(labels, block.lengths)]
    if block.loss is None:
        return [ids]
    return [ids, lists(np.where(block.loss == 1, block.tokens.astype(np.int64), IGNORED), block.lengths)]


def described(block: SequenceBlock) -> tuple[npt.NDArray[Any], ...]:
    """Describe rows with segments: positions and labels of tokens, lengths and number of the sequences of each row."""
    assert block.segments is not None
    parts = []
    ends = offsets_of(block.lengths)
    changes = np.flatnonzero(np.diff(block.lengths)) + 1
    for first, last in pairwise([0, *changes.tolist(), len(block.lengths)]):  # rows of one length
        inside = slice(ends[first], ends[last])
        tokens = block.tokens[inside].reshape(last - first, -1)
        batch = make_batch(tokens, block.segments[first:last], labels="same")
        starts = batch["cu_seqlens"][:-1].astype(np.int64)
        counts = np.bincount(starts // tokens.shape[1], minlength=len(tokens))
        # Every token but padding is a label, even the first of a row: models shift labels, and never use that one.
        labels = np.where(batch["document_ids"] < 0, IGNORED, batch["input_ids"]).reshape(-1)
        if block.loss is not None:
            labels[block.loss[inside] == 0] = IGNORED
        parts.append((batch["position_ids"].reshape(-1), labels, np.diff(batch["cu_seqlens"]), counts))
    return tuple(map(np.concatenate, zip(*parts, strict=True)))


def lists(values: npt.NDArray[Any], lengths: I64, dtype: type[Any] = np.int32) -> pa.Array:
    """Make an Arrow array of lists of these lengths.

    >>> lists(np.array([1, 2, 3]), np.array([2, 1])).to_pylist()
    [[1, 2], [3]]
    """
    return pa.ListArray.from_arrays(pa.array(offsets_of(lengths).astype(np.int32)), pa.array(values.astype(dtype)))


def documents(batches: Iterable[pa.RecordBatch], options: ReadOptions, path: Path) -> Iterator[ReadDocuments]:
    """Yield the documents of record batches, and which of their tokens train.

    Raises:
        DataError: something in them that is not a list of ids, or does not fit them.
    """
    rows, before = RowReader(), 0
    for batch in batches:
        name, *others = columns_to_read(batch.schema, options, path)
        ids = _list_column(batch, before, name, path)
        columns = {other: _list_column(batch, before, other, path) for other in others}
        yield rows.documents(ids, columns, partial(_row, path, before))
        before += batch.num_rows


def _row(path: Path, before: int, row: int) -> str:
    return f"{path}, row {before + row}"


def columns_to_read(schema: pa.Schema, options: ReadOptions, path: Path) -> list[str]:
    """List the columns to read: the column of ids, then the columns that may describe them.

    Raises:
        DataError: there are no ids, or several columns with one of these names.
    """
    try:
        called = schema.names
    except UnicodeDecodeError as error:
        raise damaged(path, f"the name of a column is not UTF-8 ({error})") from None
    ids = id_column(called, options, str(path))
    names = [ids]
    for field in schema:
        is_list = _value_type(field.type) is not None
        known = field.name in KNOWN or _is_number(_value_type(field.type))
        if field.name != ids and not options.ids_only and known and beside(field.name, is_list=is_list):
            names.append(field.name)
    for name in names:
        if called.count(name) > 1:
            what = f"{called.count(name)} columns are called {name}"
            raise DataError("bad-ids", what, remedy="rename all but one", where=str(path))
    return names


def _value_type(kind: pa.DataType) -> pa.DataType | None:
    """Return the type of the values of a type of lists; None for other types."""
    is_list = pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    return kind.value_type if is_list else None


def _is_number(kind: pa.DataType | None) -> bool:
    if kind is None:
        return False
    return bool(pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_floating(kind))


def _list_column(batch: pa.RecordBatch, before: int, name: str, path: Path) -> Column:
    """Return a column of lists: integers, or for a mask also booleans or floats."""

    def bad(what: str, where: str = str(path)) -> DataError:
        return DataError("bad-ids", what, remedy="check the file and --field, or give --ids-only=True", where=where)

    column = batch.column(name)
    kind = _value_type(column.type)
    fits = _is_number(kind) if name in KNOWN else kind is not None and pa.types.is_integer(kind)
    if not fits:
        raise bad(f"column {name} holds {column.type}, not lists of {'numbers' if name in KNOWN else 'integers'}")
    try:
        column.validate(full=True)  # else offsets may point anywhere in memory
    except ERRORS as error:
        raise damaged(path, f"column {name} is damaged: {in_words(error)}") from None
    if column.null_count:
        missing = column.is_null().to_pylist().index(True)
        raise bad(f"no list in column {name}", _row(path, before, missing))
    values = column.flatten()
    if values.null_count:
        raise bad(f"a value is missing in column {name}", f"{path}, from row {before} on")
    lengths = column.value_lengths().to_numpy(zero_copy_only=False).astype(np.int64)
    return Column(values.to_numpy(zero_copy_only=False), lengths)
