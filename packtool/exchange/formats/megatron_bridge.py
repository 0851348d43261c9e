"""Megatron-Bridge's packed Parquet: `input_ids`, `seq_start_id` and `loss_mask`.

`seq_start_id` says where each piece of a document begins in its row, and padding likewise; `loss_mask` is 0 for padding
and 1 for all other tokens. Its reader takes the mask of a token for that of the label after it, so a mask of labels is
shifted by one to the left within its piece. Of a token store each document is a row.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from packtool.exchange.files import FileWriter
from packtool.exchange.formats.tables import described, lists
from packtool.exchange.model import Block, Contents, Format, Part
from packtool.plan import offsets_of
from packtool.reading.batch import IGNORED
from packtool.storage.schema import ExportedFile

_IDS, _MASK = pa.list_(pa.int32()), pa.list_(pa.int8())
_SCHEMA = pa.schema([("input_ids", _IDS), ("seq_start_id", _IDS), ("loss_mask", _MASK)])
_GROUP = 500
"""Rows of a row group: its reader loads one for each row that it takes."""


def part(directory: Path, contents: Contents, part: Part) -> list[ExportedFile]:
    sequences = tokens = 0
    with FileWriter(directory / f"train-{part.number:05d}.idx.parquet") as out:
        with pq.ParquetWriter(out, _SCHEMA, compression="zstd") as writer:
            for block in contents.blocks(part):
                table = pa.table(_columns(block), schema=_SCHEMA)
                writer.write_table(table, row_group_size=_GROUP)
                sequences, tokens = sequences + table.num_rows, tokens + len(block.tokens)
        return [out.finish(sequences, tokens)]


def _columns(block: Block) -> list[pa.Array]:
    if block.segments is None:
        counts = np.ones(len(block.lengths), np.int64)
        starts, mask = np.zeros(len(block.lengths), np.int64), np.ones(len(block.tokens), np.int64)
    else:
        _, labels, lengths, counts = described(block)
        ends = offsets_of(lengths)
        first = offsets_of(counts)[:-1]
        starts, mask = ends[:-1] - np.repeat(ends[first], counts), labels != IGNORED
    if block.loss is not None:
        lasts = np.cumsum(block.lengths if block.segments is None else lengths) - 1
        mask = np.append(block.loss[1:], 0)
        mask[lasts] = 0
    return [lists(block.tokens, block.lengths), lists(starts, counts), lists(mask, block.lengths, np.int8)]


FORMAT = Format(
    name="megatron-bridge",
    summary="Megatron-Bridge's packed Parquet: input_ids, seq_start_id and loss_mask",
    files="*.idx.parquet",
    documents=True,
    boundaries=True,
    labels=True,
    loss=True,
    several_lengths=True,
    part=part,
)
