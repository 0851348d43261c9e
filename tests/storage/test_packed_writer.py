"""One shard, written batch by batch, is the arrays that it holds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from packtool.plan import PADDING, Segments
from packtool.storage import packed_writer
from packtool.storage.packed_writer import PackedShardWriter
from packtool.storage.segment_table import to_table

TOKENS = np.arange(12, dtype="<u2").reshape(3, 4)
ROWS = Segments(
    np.array([0, 1, 2, 2, PADDING]),
    np.array([0, 0, 0, 2, 0]),
    np.array([4, 2, 2, 3, 1]),
    np.zeros(5, np.int64),
    np.array([0, 1, 3, 5]),
)


@pytest.mark.parametrize("cuts", [[], [1], [0, 1, 2, 2]])
@pytest.mark.parametrize("spool", [8, 1 << 20])
def test_batches_do_not_show(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cuts: list[int], spool: int) -> None:
    monkeypatch.setattr(packed_writer, "_SPOOL_BYTES", spool)
    with PackedShardWriter(tmp_path, 7, dtype=TOKENS.dtype, rows=3, sequence_length=4) as writer:
        for first, last in zip([0, *cuts], [*cuts, 3], strict=True):
            writer.add(TOKENS[first:last], ROWS[first:last])
        shard = writer.close(np.array([0, 2]))
    for entry, expected in (
        (shard.tokens, TOKENS),
        (shard.segments, to_table(ROWS)),
        (shard.segment_offsets, ROWS.offsets),
        (shard.atoms, np.array([0, 2])),
    ):
        assert entry is not None
        assert entry.name.endswith("-00007.npy")
        np.testing.assert_array_equal(np.load(tmp_path / entry.name), expected)
    assert len(list(tmp_path.iterdir())) == 4


def test_tokens_alone(tmp_path: Path) -> None:
    with PackedShardWriter(tmp_path, 0, dtype=TOKENS.dtype, rows=3, sequence_length=4, with_segments=False) as writer:
        writer.add(TOKENS, ROWS)
        shard = writer.close()
    assert (shard.segments, shard.segment_offsets, shard.atoms) == (None, None, None)
    assert [file.name for file in tmp_path.iterdir()] == ["tokens-00000.npy"]
