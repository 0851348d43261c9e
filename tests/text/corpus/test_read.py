"""A span of a file: what comes before damage is kept, what is lost is said, a change is an error."""

from __future__ import annotations

import bz2
import random
import re
from pathlib import Path

import pyarrow as pa
import pytest
import xxhash
from pyarrow import parquet

from packtool.errors import DataError
from packtool.text.corpus.read import SpanReader
from packtool.text.corpus.records import Fields, Span
from tests.text.corpus.archives import COMPRESS
from tests.text.corpus.reading import find, salvage

LINES = [f'{{"text": "document number {n}"}}\n'.encode() for n in range(3000)]


def numbers(texts: list[str]) -> list[int]:
    assert all(text.startswith("document number ") for text in texts)
    return [int(text.rpartition(" ")[2]) for text in texts]


@pytest.mark.parametrize("kind", COMPRESS)
def test_damage_stops_an_archive_there(tmp_path: Path, kind: str) -> None:
    first, second = b"".join(LINES[:1000]) + LINES[1000][:7], LINES[1000][7:] + b"".join(LINES[1001:])
    members = [COMPRESS[kind](first), COMPRESS[kind](second)]
    whole = b"".join(members)
    for data, least in (
        (whole, 3000),
        (whole[: len(members[0]) + 2], 1000),
        (members[0][:-1], 0),
        (whole + b"x", 3000),
        (whole + members[0][:20], 3000),
        (whole * 8 + whole[:-4], 24_000),
    ):
        (tmp_path / "x.jsonl").write_bytes(data)
        texts, rejects, digest = salvage(tmp_path / "x.jsonl")
        assert numbers(texts) == [number % 3000 for number in range(len(texts))]
        assert len(texts) >= least
        assert digest == xxhash.xxh3_128_hexdigest(data)
        assert [(each.record, each.fault.code) for each in rejects] == [(0, "damaged-file")] * (data != whole)
        for reject in rejects:
            assert re.fullmatch(f"damaged {kind} stream: .*; what follows is lost", reject.fault.what)


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
    raw = b"".join(LINES)
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
