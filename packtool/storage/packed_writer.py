"""Write one shard of a packed dataset: its tokens, segment table and atoms."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import UNSET

from packtool.plan import I64, Segments, offsets_of
from packtool.storage.files import NpyWriter, write_array
from packtool.storage.names import SEGMENT, shard_file
from packtool.storage.schema import PackedShard
from packtool.storage.segment_table import to_table

_SPOOL_BYTES = 1 << 25


class PackedShardWriter:
    """Writes one shard of rows, batch by batch.

    Args:
        directory: of the bucket.
        number: of the shard.
        dtype: of the tokens, or of records of `token` and `loss`.
        rows, sequence_length: shape of the shard.
        with_segments: also write the segment table.
        with_tokens: also write the tokens, and their loss.
    """

    def __init__(
        self,
        directory: Path,
        number: int,
        *,
        dtype: np.dtype[Any],
        rows: int,
        sequence_length: int,
        with_segments: bool = True,
        with_tokens: bool = True,
    ) -> None:
        self._directory = directory
        self._number = number
        columns = dtype.fields or {"token": (dtype,)}
        kinds = {"tokens": "token", "loss": "loss"} if with_tokens else {}
        self._columns = {
            kind: NpyWriter(self._path(kind), columns[name][0], (rows, sequence_length))
            for kind, name in kinds.items()
            if name in columns
        }
        self._with_segments = with_segments
        self._segments = 0
        # Where atoms are small, the segments of a shard can take more memory than its tokens.
        self._table = tempfile.SpooledTemporaryFile(_SPOOL_BYTES, dir=str(directory))  # noqa: SIM115
        self._counts: list[npt.NDArray[np.uint32]] = []

    def _path(self, kind: str) -> Path:
        return self._directory / shard_file(kind, self._number)

    def __enter__(self) -> PackedShardWriter:
        return self

    def __exit__(self, *failure: Any) -> None:
        self._table.close()
        for column in self._columns.values():
            column.__exit__(*failure)

    def add(self, tokens: npt.NDArray[Any] | None, rows: Segments | None, loss: npt.NDArray[Any] | None = None) -> None:
        """Append the tokens of whole rows (any shape, row after row), their segments, and whether they train."""
        for kind, values in (("tokens", tokens), ("loss", loss)):
            if kind in self._columns and values is not None:
                self._columns[kind].write(values)
        if self._with_segments and rows is not None:
            self._table.write(to_table(rows).data)
            self._segments += len(rows)
            self._counts.append(np.diff(rows.offsets).astype(np.uint32))

    def close(self, atoms: I64 | None = None) -> PackedShard:
        """Finish the shard's files; `atoms` are the rows of this shard at which an atom begins."""
        segments = segment_offsets = None
        if self._with_segments:
            self._table.seek(0)
            with NpyWriter(self._path("segments"), SEGMENT, (self._segments,)) as out:
                while block := self._table.read(_SPOOL_BYTES):
                    out.write(block)
                segments = out.close()
            counts = np.concatenate([np.empty(0, np.uint32), *self._counts])
            segment_offsets = write_array(self._path("segment_offsets"), offsets_of(counts))
        entry = None if atoms is None else write_array(self._path("atoms"), atoms)
        written = {kind: column.close() for kind, column in self._columns.items()}
        return PackedShard(written.get("tokens"), segments, segment_offsets, entry, written.get("loss", UNSET))
