"""A span of a file: what comes before damage is kept, what is lost is said, a change is an error."""

import bz2
import random
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from packtool.errors import DataError
from packtool.text.corpus.read import SpanReader
from packtool.text.corpus.records import Fields, Span
from tests.text.corpus.archives import COMPRESS
from tests.text.corpus.reading import LINES, find, salvage


def test_what_is_lost_of_an_archive_is_what_was_not_read(tmp_path: Path) -> None:
    draw = random.Random(0)
    lines = [b'{"text": "%s"}\n' % draw.randbytes(500).hex().encode() for _ in range(5000)]
    damaged = bytearray(bz2.compress(b"".join(lines), 1))
    at = len(damaged) // 2
    damaged[at : at + 100] = bytes(100)
    (tmp_path / "x.jsonl.bz2").write_bytes(damaged)
    texts, rejects, _ = salvage(tmp_path / "x.jsonl.bz2")
    assert 2000 < len(texts) < 3000
    assert rejects[-1].fault.code == "damaged-file"
    assert 0.4 * len(damaged) < rejects[-1].lost < 0.6 * len(damaged)


@pytest.mark.parametrize("name", ["x.jsonl", "x.jsonl.gz", "x.txt", "x.parquet"])
@pytest.mark.parametrize("how", ["grown", "shrunk", "rewritten", "replaced", "gone"])
def test_a_file_that_changes_is_an_error(tmp_path: Path, name: str, how: str) -> None:
    path = tmp_path / name
    raw = LINES
    if name.endswith("parquet"):
        parquet.write_table(pa.table({"text": ["some text"] * 9000}), path, row_group_size=1000)
        raw = path.read_bytes()
    path.write_bytes(COMPRESS["gzip"](raw) if name.endswith("gz") else raw)
    [file] = find(path)
    data = path.read_bytes()
    now = {"grown": data + b"x", "shrunk": data[:-1]}.get(how, data)
    said = {"rewritten": "it was written to", "replaced": "another file is in its place", "gone": "it is gone"}
    counted = f"it had {len(data):,} bytes and has {len(now):,}"
    changed = f"changed while the command was at work: {said.get(how, counted)}"
    reader = SpanReader(file, Span(0), Fields())
    batches = iter(reader)
    next(batches)
    if how in ("gone", "replaced"):  # a file that is open stays what it is when its name goes to another
        list(batches)
        path.rename(tmp_path / "old")
    if how != "gone":
        path.write_bytes(now)
    if how in ("grown", "shrunk", "rewritten"):
        for found in (reader.require_unchanged, lambda: list(batches)):
            with pytest.raises(DataError, match=changed):
                found()
    with pytest.raises(DataError, match=changed) as caught:
        list(SpanReader(file, Span(0), Fields()))
    assert (caught.value.code, caught.value.where) == ("input-changed", str(path))
