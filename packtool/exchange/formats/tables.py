"""Parquet and Arrow, as Hugging Face `datasets` loads them: a row of the table for each sequence.

Documents have `input_ids`, and `labels` where the store says which tokens train. Rows of a packed dataset have beside
it what trainers of packed data take: `position_ids`, `seq_lengths` (of each segment of a document, and of padding), and
`labels`. Labels are not shifted, and -100 for padding and for tokens that do not train. An EOS that a strategy inserted
belongs to the segment before it.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from packtool.errors import DataError
from packtool.exchange.documents import rows_not_documents
from packtool.exchange.masks import IGNORED, MASKS, bad_mask, masks_of, trained
from packtool.exchange.model import Block, Contents, Found, Part, ReadOptions
from packtool.plan import I64, Segments, offsets_of
from packtool.reading.batch import make_batch

_LIST = pa.list_(pa.int32())
COLUMNS = ("input_ids", "tokens", "token_ids", "ids")
"""Where a reader looks for ids, in this order, unless it is told."""
_ROWS = ("seq_lengths", "seq_start_id", "position_ids", "cu_seqlens")
"""Columns that only rows of several documents have."""


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
        for batch in _cut(pa.record_batch(_columns(block), schema=schema(contents))):
            writer.write_batch(batch)
            sequences += batch.num_rows
            tokens += len(batch.column(0).flatten())
    return sequences, tokens


def _columns(block: Block) -> list[pa.Array]:
    if block.segments is None:
        ids = lists(block.tokens, block.lengths)
        if block.loss is None:
            return [ids]
        return [ids, lists(np.where(block.loss == 1, block.tokens.astype(np.int64), IGNORED), block.lengths)]
    positions, labels, lengths, counts = described(block)
    return [
        lists(block.tokens, block.lengths),
        lists(positions, block.lengths),
        lists(lengths, counts),
        lists(labels, block.lengths),
    ]


def described(block: Block) -> tuple[npt.NDArray[Any], ...]:
    """Describe rows with segments: positions and labels of tokens, lengths and number of the sequences of each row."""
    parts = [_made(*part) for part in _of_one_length(block)]
    return tuple(np.concatenate(each) for each in zip(*parts, strict=True))


def _of_one_length(block: Block) -> Iterator[tuple[npt.NDArray[Any], Segments, npt.NDArray[Any] | None]]:
    """Yield runs of rows of one length, (rows, length), with their segments, and whether their tokens train."""
    assert block.segments is not None
    ends = offsets_of(block.lengths)
    changes = np.flatnonzero(np.diff(block.lengths)) + 1
    for first, last in pairwise([0, *changes.tolist(), len(block.lengths)]):
        tokens = block.tokens[ends[first] : ends[last]].reshape(last - first, -1)
        loss = None if block.loss is None else block.loss[ends[first] : ends[last]]
        yield tokens, block.segments[first:last], loss


def _made(tokens: npt.NDArray[Any], segments: Segments, loss: npt.NDArray[Any] | None) -> tuple[npt.NDArray[Any], ...]:
    """Compute positions and labels of some rows, the lengths of their sequences, and their number in each row."""
    batch = make_batch(tokens, segments, labels="same")
    begins = batch["cu_seqlens"][:-1].astype(np.int64)
    counts = np.bincount(begins // tokens.shape[1], minlength=len(tokens))
    # Nothing comes before the first token of a row, so no model shifts a label there; padding is what has none.
    labels = np.where(batch["document_ids"] < 0, IGNORED, batch["input_ids"]).reshape(-1)
    if loss is not None:
        labels[loss == 0] = IGNORED
    return batch["position_ids"].reshape(-1), labels, np.diff(batch["cu_seqlens"]), counts


def lists(values: npt.NDArray[Any], lengths: I64, dtype: type[Any] = np.int32) -> pa.Array:
    """Make an Arrow array of lists of these lengths.

    >>> lists(np.array([1, 2, 3]), np.array([2, 1])).to_pylist()
    [[1, 2], [3]]
    """
    return pa.ListArray.from_arrays(pa.array(offsets_of(lengths).astype(np.int32)), pa.array(values.astype(dtype)))


def _cut(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Record batches of at most a thousand rows, the size that `datasets` writes itself."""
    for first in range(0, batch.num_rows, 1000):
        yield batch.slice(first, 1000)


def found(batch: pa.RecordBatch, before: int, name: str, where: str) -> Found:
    """Return the documents of a record batch, as if it were the last of its file, and which of their tokens train.

    Args:
        batch: with the column of ids, and all that say which tokens train.
        before: rows of the file before it.
        name: the column of ids.

    Raises:
        DataError: something in it that is not a list of ids, or does not fit them.
    """
    ids, lengths = _listed(batch, before, name, where)
    masks = {}
    for mask in masks_of([each for each in batch.schema.names if each != name]):
        masks[mask], sizes = _listed(batch, before, mask, where)
        if (wrong := np.flatnonzero(sizes != lengths)).size:
            row = int(wrong[0])
            what = f"row {before + row}: {sizes[row]} values in column {mask}, but {lengths[row]} ids"
            raise bad_mask(what, where)
    return Found(ids, lengths, 1.0, trained(ids, masks, f"{where}, from row {before} on") if masks else None)


def read_columns(names: list[str], options: ReadOptions, where: str) -> list[str]:
    """List the columns to read, that of ids first.

    Raises:
        DataError: as `column`.
    """
    ids = column(names, options, where)
    return [ids, *([] if options.ids_only else masks_of([name for name in names if name != ids]))]


def _listed(batch: pa.RecordBatch, before: int, name: str, where: str) -> tuple[npt.NDArray[Any], I64]:
    """Return the values of a column of lists of integers, booleans or floats of masks, and the length of each list."""
    lists = batch.column(name)
    if not (
        pa.types.is_list(lists.type) or pa.types.is_large_list(lists.type) or pa.types.is_fixed_size_list(lists.type)
    ):
        raise _bad(f"column {name} holds {lists.type}, not lists of integers", where)
    kind = lists.type.value_type
    if not pa.types.is_integer(kind) and (
        name not in MASKS or not (pa.types.is_boolean(kind) or pa.types.is_floating(kind))
    ):
        raise _bad(f"column {name} holds {lists.type}, not lists of integers", where)
    for number, missing in enumerate(lists.is_null().to_pylist() if lists.null_count else []):
        if missing:
            raise _bad(
                f"row {before + number}: no list of {'values' if name in MASKS else 'ids'} in column {name}", where
            )
    values = lists.flatten()
    if values.null_count:
        raise _bad(f"a value is missing in column {name}, after row {before}", where)
    lengths = lists.value_lengths().to_numpy(zero_copy_only=False).astype(np.int64)
    return values.to_numpy(zero_copy_only=False), lengths


def column(names: list[str], options: ReadOptions, where: str) -> str:
    """Find the column of ids.

    Raises:
        DataError: there is none, or not the one that was asked for; or others say that these are packed rows.
    """
    field = options.field
    for name in (field,) if field else COLUMNS:
        if name in names:
            if not options.ids_only:
                _require_documents([each for each in names if each != name], where)
            return name
    wanted = f"no column {field}" if field else f"no column called {', '.join(COLUMNS[:-1])} or {COLUMNS[-1]}"
    raise DataError(
        "missing-ids",
        f"{wanted}; there are {', '.join(names)}",
        remedy="name the column of ids with --field",
        where=where,
    )


def _require_documents(others: list[str], where: str) -> None:
    for name in others:
        if name in _ROWS:
            raise rows_not_documents(f"column {name} says that these are packed rows", where)


def _bad(what: str, where: str) -> DataError:
    return DataError("bad-ids", what, remedy="check the file and --field", where=where)
