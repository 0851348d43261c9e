"""Parquet and Arrow, as Hugging Face `datasets` loads them: a row of the table for each sequence.

Documents have `input_ids`, and `labels` where the store says which tokens train. Rows of a packed dataset also
have the columns that trainers of packed data take: `position_ids`, `seq_lengths` (of each segment of a document, and of
padding), and `labels`. Labels are not shifted, and -100 for padding and for tokens that do not train. An EOS that a
strategy inserted belongs to the segment before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from packtool.errors import DataError
from packtool.exchange.columns import MASKS, bad_mask, trained
from packtool.exchange.model import Block, Contents, Found, Part
from packtool.planning.plan import I64, offsets_of
from packtool.reading.batch import IGNORED, make_batch

_LIST = pa.list_(pa.int32())
_BATCH = 1000
"""Rows of a record batch, as `datasets` writes them itself."""


def schema(contents: Contents) -> pa.Schema:
    """Return the columns to export."""
    names = ["input_ids"]
    if contents.kind == "rows" and contents.bounded:
        names += ["position_ids", "seq_lengths", "labels"]
    elif contents.masked is not None:
        names.append("labels")
    return pa.schema([pa.field(name, _LIST, nullable=False) for name in names])


def columns_of_tokens(contents: Contents) -> int:
    """Count the columns that have an entry for each token."""
    return len(schema(contents)) - ("seq_lengths" in schema(contents).names)


def write(writer: Any, contents: Contents, part: Part) -> tuple[int, int]:
    """Write the sequences of one part; returns the sequences and tokens that were written.

    Args:
        writer: has a `write_batch`, as Parquet's and Arrow's.
    """
    sequences = tokens = 0
    for block in contents.blocks(part):
        batch = pa.record_batch(_columns(block), schema=schema(contents))
        for first in range(0, batch.num_rows, _BATCH):
            records = batch.slice(first, _BATCH)
            writer.write_batch(records)
            sequences += records.num_rows
            tokens += len(records.column(0).flatten())
    return sequences, tokens


def _columns(block: Block) -> list[pa.Array]:
    ids = lists(block.tokens, block.lengths)
    if block.segments is not None:
        positions, labels, lengths, counts = described(block)
        return [ids, lists(positions, block.lengths), lists(lengths, counts), lists(labels, block.lengths)]
    if block.loss is None:
        return [ids]
    return [ids, lists(np.where(block.loss == 1, block.tokens.astype(np.int64), IGNORED), block.lengths)]


def described(block: Block) -> tuple[npt.NDArray[Any], ...]:
    """Describe rows with segments: positions and labels of tokens, lengths and number of the sequences of each row."""
    assert block.segments is not None
    parts = []
    ends = offsets_of(block.lengths)
    changes = np.flatnonzero(np.diff(block.lengths)) + 1
    for first, last in pairwise([0, *changes.tolist(), len(block.lengths)]):  # rows of one length
        inside = slice(ends[first], ends[last])
        tokens = block.tokens[inside].reshape(last - first, -1)
        batch = make_batch(tokens, block.segments[first:last], labels="same")
        begins = batch["cu_seqlens"][:-1].astype(np.int64)
        counts = np.bincount(begins // tokens.shape[1], minlength=len(tokens))
        # Nothing comes before the first token of a row, so no model shifts a label there; padding is what has none.
        labels = np.where(batch["document_ids"] < 0, IGNORED, batch["input_ids"]).reshape(-1)
        if block.loss is not None:
            labels[block.loss[inside] == 0] = IGNORED
        parts.append((batch["position_ids"].reshape(-1), labels, np.diff(batch["cu_seqlens"]), counts))
    return tuple(np.concatenate(column) for column in zip(*parts, strict=True))


def lists(values: npt.NDArray[Any], lengths: I64, dtype: type[Any] = np.int32) -> pa.Array:
    """Make an Arrow array of lists of these lengths.

    >>> lists(np.array([1, 2, 3]), np.array([2, 1])).to_pylist()
    [[1, 2], [3]]
    """
    return pa.ListArray.from_arrays(pa.array(offsets_of(lengths).astype(np.int32)), pa.array(values.astype(dtype)))


def found(batch: pa.RecordBatch, before: int, columns: Sequence[str], where: str) -> Found:
    """Return the documents of a record batch, and which of their tokens train.

    Args:
        before: rows of the file before it.
        columns: that of the ids, then those that say which tokens train.

    Raises:
        DataError: something in it that is not a list of ids, or does not fit them.
    """
    name, *names = columns
    ids, lengths = _listed(batch, before, name, where)
    masks = {}
    for mask in names:
        masks[mask], sizes = _listed(batch, before, mask, where)
        if (wrong := np.flatnonzero(sizes != lengths)).size:
            row = int(wrong[0])
            what = f"row {before + row}: {sizes[row]} values in column {mask}, but {lengths[row]} ids"
            raise bad_mask(what, where)
    return Found(ids, lengths, trained(ids, masks, f"{where}, from row {before} on") if masks else None)


def _listed(batch: pa.RecordBatch, before: int, name: str, where: str) -> tuple[npt.NDArray[Any], I64]:
    """Return the values of a column of lists of integers, booleans or floats of masks, and the length of each list."""

    def bad(what: str) -> DataError:
        return DataError("bad-ids", what, remedy="check the file and --field", where=where)

    column, kind = batch.column(name), None
    if pa.types.is_list(column.type) or pa.types.is_large_list(column.type) or pa.types.is_fixed_size_list(column.type):
        kind = column.type.value_type
    is_mask = name in MASKS
    if kind is None or not (
        pa.types.is_integer(kind) or (is_mask and (pa.types.is_boolean(kind) or pa.types.is_floating(kind)))
    ):
        raise bad(f"column {name} holds {column.type}, not lists of integers")
    if column.null_count:
        missing = column.is_null().to_pylist().index(True)
        raise bad(f"row {before + missing}: no list of {'values' if is_mask else 'ids'} in column {name}")
    values = column.flatten()
    if values.null_count:
        raise bad(f"a value is missing in column {name}, after row {before}")
    lengths = column.value_lengths().to_numpy(zero_copy_only=False).astype(np.int64)
    return values.to_numpy(zero_copy_only=False), lengths
