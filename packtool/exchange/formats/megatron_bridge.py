"""Megatron-Bridge's packed Parquet: `input_ids`, `seq_start_id` and `loss_mask`.

`seq_start_id` says where each piece of a document begins in its row, and padding likewise; `loss_mask` is 0 for padding
and 1 for all other tokens. Its reader applies the mask of a token to the label after it, so a mask of labels is shifted
by one to the left within each piece. Of a token store each document is a row.

Its reader also leaves out the last token of each piece, which it takes as a label alone. Where documents begin at
multiples, for context parallelism, each piece is written with the padding after it and one token of padding more, so
that what the reader leaves is the row as it was packed. It finds the own length of a piece by looking for a second EOS,
which a text may hold; `seq_lengths` has the true ones.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from packtool.exchange.files import FileWriter, write_json
from packtool.exchange.formats.tables import described, lists
from packtool.exchange.model import Contents, Format, Part, SequenceBlock, pieces
from packtool.formats.schema import ExportedFile
from packtool.planning.plan import I64, PADDING, Segments, offsets_of, ranges
from packtool.reading.batch import IGNORED

METADATA = "packed_metadata.jsonl"
_IDS, _MASK = pa.list_(pa.int32()), pa.list_(pa.int8())
_SCHEMA = pa.schema([("input_ids", _IDS), ("seq_start_id", _IDS), ("loss_mask", _MASK)])
_LENGTHS = pa.field("seq_lengths", _IDS)
_GROUP = 500  # rows of a row group: its reader loads one for each row that it takes


def part(directory: Path, contents: Contents, part: Part) -> list[ExportedFile]:
    sequences = tokens = 0
    several = contents.multiple > 1
    schema, columns = (_SCHEMA.append(_LENGTHS), _padded_columns) if several else (_SCHEMA, _columns)
    with FileWriter(directory / f"train-{part.number:05d}.idx.parquet") as out:
        with pq.ParquetWriter(out, schema, compression="zstd") as writer:
            for block in contents.blocks(part):
                table = pa.table(columns(block), schema=schema)
                writer.write_table(table, row_group_size=_GROUP)
                sequences, tokens = sequences + table.num_rows, tokens + len(block.tokens)
        return [out.finish(sequences, tokens)]


def _columns(block: SequenceBlock) -> list[pa.Array]:
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


def _padded_columns(block: SequenceBlock) -> list[pa.Array]:
    """Return the columns of rows whose documents begin at multiples: a piece is part of a document, and its padding.

    Each piece gets one token more at its end, the one that the reader leaves out. The last column has the pieces' own
    lengths, without padding.
    """
    assert block.segments is not None
    row_offsets = offsets_of(block.lengths)
    begins = _piece_begins(block.segments)
    ends = np.append(begins[1:], row_offsets[-1])  # padding goes with the piece before it
    counts = np.diff(np.searchsorted(begins, row_offsets))
    own = _own_lengths(block.segments)
    # Within a row, every piece before another one moves it by its additional token.
    number_in_row = ranges(np.zeros_like(counts), counts, offsets_of(counts))
    starts = begins - np.repeat(row_offsets[:-1], counts) + number_in_row
    lengths = block.lengths + counts
    mask = _mask_of_labels(block, begins, own)
    return [
        # What the additional token is does not matter, as long as the vocabulary has it: the one before it again.
        lists(np.insert(block.tokens, ends, block.tokens[ends - 1]), lengths),
        lists(starts, counts),
        lists(np.insert(mask, ends, 0), lengths, np.int8),
        lists(own, counts),
    ]


def _piece_begins(segments: Segments) -> I64:
    """Return the places at which documents, or parts of them, begin in rows laid end to end: (pieces)."""
    return offsets_of(segments.length)[:-1][segments.document >= 0]


def _own_lengths(segments: Segments) -> I64:
    """Return the tokens of each piece without its padding, but with an EOS that the strategy inserted: (pieces)."""
    not_padding = np.where(segments.document == PADDING, 0, segments.length)
    own: I64 = np.add.reduceat(not_padding, np.flatnonzero(segments.document >= 0))
    return own


def _mask_of_labels(block: SequenceBlock, begins: I64, own: I64) -> I64:
    """Return 1 for each token whose label trains, the token after it in the same piece; else 0: (tokens).

    Args:
        begins, own: of pieces, as `_piece_begins` and `_own_lengths` return them.
    """
    mask = np.zeros(len(block.tokens), np.int64)
    labeled = ranges(begins, own - 1, offsets_of(own - 1))  # the last token of a piece has no label
    mask[labeled] = 1 if block.loss is None else block.loss[labeled + 1]
    return mask


def finish(directory: Path, contents: Contents, _: list[ExportedFile]) -> list[ExportedFile]:
    """Write the file of `packed_metadata_path`, which `pad_cu_seqlens` needs: how many pieces rows have, and how long.

    The reader drops the last token of every piece, so the lengths are without it.
    """
    rows = most = longest = tokens = total = 0
    shortest: int | None = None
    for part in contents.parts:
        for lengths, segments in contents.bounds(part):
            if not len(lengths):
                continue
            sizes, counts = _read_sizes(lengths, segments, padded=contents.multiple > 1)
            packed = np.add.reduceat(sizes, offsets_of(counts)[:-1])
            rows, tokens, total = rows + len(counts), tokens + int(packed.sum()), total + len(sizes)
            most, longest = max(most, int(counts.max())), max(longest, int(sizes.max()))
            least = int(packed.min())
            shortest = least if shortest is None else min(shortest, least)
    if shortest is None:
        return []
    size = max(contents.row_lengths, default=longest)
    about = {
        "max_samples_per_bin": most,
        "dataset_max_seqlen": longest,
        "min_packed_seqlen": shortest,
        "pack_size": size,
        "packing_factor": round(total / rows, 2),
        "packing_efficiency": round(100 * tokens / rows / size, 2),
    }
    return [write_json(directory / METADATA, [about])]


def _read_sizes(lengths: I64, segments: Segments | None, *, padded: bool) -> tuple[I64, I64]:
    """Return the lengths of pieces as the reader leaves them, and how many each row has.

    Args:
        padded: a piece includes the padding after it, and one more token, the one that the reader leaves out.
    """
    if segments is None:
        return lengths - 1, np.ones(len(lengths), np.int64)
    if not padded:
        sizes, counts = pieces(segments)
        return sizes - 1, counts
    row_offsets = offsets_of(lengths)
    begins = _piece_begins(segments)
    return np.diff(np.append(begins, row_offsets[-1])), np.diff(np.searchsorted(begins, row_offsets))


FORMAT = Format(
    name="megatron-bridge",
    largest_vocab=1 << 31,
    readers="Megatron-Bridge",
    summary="Parquet: `input_ids`, `seq_start_id` and `loss_mask`",
    files="*.idx.parquet",
    documents=True,
    boundaries=True,
    multiples=True,
    labels=True,
    loss=True,
    several_lengths=True,
    part=part,
    finish=finish,
)
