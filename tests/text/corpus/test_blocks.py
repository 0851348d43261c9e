"""Blocks: the same division of the same files, whatever reads them."""

import os
from pathlib import Path

import pyarrow as pa
from pyarrow import parquet

from packtool.text.corpus.blocks import block_bytes, plan
from packtool.text.corpus.records import CorpusFile, Span
from tests.text.corpus.reading import find, read


def test_blocks_do_not_depend_on_anything_but_files() -> None:
    def file(size: int, format: str = "jsonl", compression: str = "") -> CorpusFile:
        return CorpusFile("f", "f", size, format, compression)

    blocks = plan(
        [file(40), file(40), file(40), file(250), file(10), file(300, "text"), file(500, "jsonl", "gzip")], 100
    )
    assert [[(span.file, span.start, span.stop) for span in block] for block in blocks] == [
        [(0, 0, -1), (1, 0, -1)],
        [(2, 0, -1)],
        [(3, 0, 83)],
        [(3, 83, 166)],
        [(3, 166, -1)],
        [(4, 0, -1)],
        [(5, 0, -1)],
        [(6, 0, -1)],
    ]
    assert len(plan([file(1)] * 100_000, 1000)) == 100
    assert [block_bytes([file(total)]) >> 20 for total in (10**6, 8 << 30, 1 << 40)] == [16, 32, 64]


def test_parquet_blocks_are_row_groups(tmp_path: Path) -> None:
    parquet.write_table(
        pa.table({"text": [os.urandom(8).hex() for _ in range(1000)]}), tmp_path / "x", row_group_size=100
    )
    [file] = find(tmp_path / "x")
    blocks = plan([file], 5000)
    spans = [span for block in blocks for span in block]
    assert len(spans) > 2
    assert [span.stop for span in spans] == [*(span.start for span in spans[1:]), -1]
    whole = [t for batch in read(file, Span(0), "text") for t in batch.documents]
    assert [t for span in spans for batch in read(file, span, "text") for t in batch.documents] == whole
