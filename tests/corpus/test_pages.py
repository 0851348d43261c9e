"""Files that are read twice: the digest is of the bytes that were tokenized, and any change is an error."""

from __future__ import annotations

import io
import json
import os
import random
from pathlib import Path

import pyarrow as pa
import pytest
import xxhash
from pyarrow import parquet

import packtool
from packtool.corpus import blocks, pages, read
from packtool.corpus.pages import PagedFile, Pages, agree
from packtool.errors import DataError
from packtool.storage.token_store import TokenStore


def never() -> None:
    raise AssertionError


@pytest.mark.parametrize("size", [0, 1, 63, 64, 65, 1000])
def test_it_reads_as_the_file_itself(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(pages, "PAGE", 64)
    draw = random.Random(size)
    data = draw.randbytes(size)
    plain, seen = io.BytesIO(data), Pages()
    paged = PagedFile(io.BytesIO(data), seen, never)  # type: ignore[arg-type]
    for _ in range(300):
        if draw.random() < 0.5:
            place = draw.choice([(draw.randrange(size + 9), 0), (-draw.randrange(size + 1), 2)])
            assert paged.seek(*place) == plain.seek(*place)
        wanted = draw.choice([-1, 0, 1, 7, 64, 200, 5000])
        assert paged.read(wanted) == plain.read(wanted)
        assert paged.tell() == plain.tell()
    whole = Pages()
    PagedFile(io.BytesIO(data), whole, never).read()  # type: ignore[arg-type]
    assert agree(whole.packed(), seen.packed())
    if size:
        other = Pages()
        PagedFile(io.BytesIO(bytes([data[0] ^ 1]) + data[1:]), other, never).read()  # type: ignore[arg-type]
        assert not agree(other.packed(), whole.packed())
        assert not agree(b"", whole.packed())


def corpus(folder: Path, name: str) -> Path:
    path = folder / name
    texts = [f"document {number} " + "word " * 50 for number in range(4000)]
    if name.endswith("parquet"):
        parquet.write_table(pa.table({"text": texts}), path, row_group_size=500, compression="none")
    elif name.endswith("jsonl"):
        path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    else:
        path.write_text("\n".join(texts * 11))
    return path


@pytest.mark.parametrize(
    ("name", "divided", "workers"),
    [("a.jsonl", True, 1), ("a.jsonl", True, 2), ("a.parquet", True, 1), ("a.parquet", False, 1), ("a.txt", False, 1)],
)
def test_a_change_that_leaves_size_and_time_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, divided: bool, workers: int
) -> None:
    if divided:
        monkeypatch.setattr(blocks, "block_bytes", lambda files: 1 << 18)
    path = corpus(tmp_path, name)
    good = path.read_bytes()
    store = tmp_path / "store"
    packtool.tokenize([path], tmp_path / "expected", workers=1)
    assert TokenStore(tmp_path / "expected").manifest.inputs[0].xxh3_128 == xxhash.xxh3_128_hexdigest(good)
    about = path.stat()
    before = read.SpanReader._batches
    readers, changed = [], []
    looks = 0 if name == "a.txt" else 1  # whether the file holds conversations

    def change(self: read.SpanReader, source: object) -> object:
        readers.append(self)
        for number, batch in enumerate(before(self, source)):  # type: ignore[arg-type]
            if not changed and len(readers) > looks and (number == 0 or divided):
                changed.append(True)
                at = good.rindex(b"document 3")
                with path.open("r+b") as file:
                    file.seek(at)
                    file.write(b"dokument")
                os.utime(path, ns=(about.st_atime_ns, about.st_mtime_ns))
            yield batch

    if workers == 1:
        monkeypatch.setattr(read.SpanReader, "_batches", change)
        with pytest.raises(DataError, match="it was read twice, and held other bytes each time") as caught:
            packtool.tokenize([path], store, workers=1)
        assert caught.value.code == "input-changed"
        assert not (store / "manifest.json").exists()
        monkeypatch.setattr(read.SpanReader, "_batches", before)
        path.write_bytes(good)
        os.utime(path, ns=(about.st_atime_ns, about.st_mtime_ns))
    packtool.tokenize([path], store, workers=workers, resume=store.exists())
    files = {file.name for file in store.iterdir()} - {"run.json"}
    assert files
    assert {n: (store / n).read_bytes() for n in files} == {n: (tmp_path / "expected" / n).read_bytes() for n in files}
