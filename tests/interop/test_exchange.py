"""Exports read, and imports written, by the libraries that the formats belong to, in an environment of their own."""

from pathlib import Path

import numpy as np
import pytest

import packtool
from packtool.exchange import FORMATS
from packtool.formats.token_store import TokenStore
from packtool.options.names import EXPORTS, IMPORTS
from tests.exchange.streams import rows_in_order, words
from tests.interop.peers import HERE, ROOT, in_peer
from tests.stores import EOS, write_store

LENGTH = 32
READ = [name for name in EXPORTS if name != "megatron-bridge"]
"""test_trainers.py reads the other one."""

pytestmark = pytest.mark.interop


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    lengths = np.random.default_rng(0).integers(2, 90, 200).tolist()
    return write_store(tmp_path_factory.mktemp("formats") / "store", lengths, per_shard=60)


def run(*arguments: object) -> None:
    in_peer("formats", ROOT, HERE / "peer_formats.py", *arguments)


def documents(store: Path) -> tuple[np.ndarray, np.ndarray]:
    opened = TokenStore(store)
    return np.concatenate([*opened.shards]).astype(np.int64), opened.lengths().astype(np.int64)


@pytest.mark.parametrize("name", ["megatron", "nanogpt", "llmc", "parquet", "arrow", "mds", "jsonl"])
def test_they_read_documents(store: Path, tmp_path: Path, name: str) -> None:
    packtool.export(store, tmp_path / "out", format=name)
    run("read", name, tmp_path / "out", tmp_path / "found.npz")
    found = np.load(tmp_path / "found.npz")
    tokens, lengths = documents(store)
    np.testing.assert_array_equal(found["tokens"], tokens)
    if name not in ("nanogpt", "llmc"):
        np.testing.assert_array_equal(found["lengths"], lengths)


@pytest.mark.parametrize("name", READ)
def test_they_read_rows(store: Path, tmp_path: Path, name: str) -> None:
    packtool.pack(store, tmp_path / "rows", strategy="bfd", sequence_length=LENGTH, shard_tokens=1024)
    packtool.export(tmp_path / "rows", tmp_path / "out", format=name)
    run("read", name, tmp_path / "out", tmp_path / "found.npz", LENGTH)
    found = np.load(tmp_path / "found.npz")
    dataset = packtool.open(tmp_path / "rows")
    np.testing.assert_array_equal(found["tokens"], dataset[:].reshape(-1))
    if name == "datatrove":
        segments = np.concatenate([dataset.segments(row)["length"] for row in range(len(dataset))])
        np.testing.assert_array_equal(found["lengths"], segments)
    elif name not in ("nanogpt", "llmc"):
        assert found["lengths"].tolist() == [LENGTH] * len(dataset)


@pytest.mark.parametrize("name", [name for name in READ if FORMATS[name].several_lengths])
def test_they_read_rows_of_several_lengths_batch_by_batch(store: Path, tmp_path: Path, name: str) -> None:
    packtool.pack(store, tmp_path / "rows", strategy="buckets", buckets=(16, LENGTH, 2 * LENGTH), shard_tokens=1024)
    packtool.shuffle(tmp_path / "rows", tmp_path / "batches", method="bucket", batch_tokens=256)
    packtool.export(tmp_path / "batches", tmp_path / "out", format=name)
    run("read", name, tmp_path / "out", tmp_path / "found.npz")
    found = np.load(tmp_path / "found.npz")
    rows = rows_in_order(tmp_path / "batches")
    assert found["lengths"].tolist() == [len(row) for row in rows]
    np.testing.assert_array_equal(found["tokens"], np.concatenate(rows))


@pytest.mark.parametrize("name", [*IMPORTS, "mds_bytes", "litdata_zstd", "litdata_trees", "litdata_batch"])
def test_what_they_write_is_read(store: Path, tmp_path: Path, name: str) -> None:
    tokens, lengths = documents(store)
    np.savez(tmp_path / "given.npz", tokens=tokens, lengths=lengths)
    run("write", name, tmp_path / "given.npz", tmp_path / "files")
    source = TokenStore(store).manifest.tokenizer
    assert source.eos_id == EOS
    tokenizer = tmp_path / "tokenizer.json"
    words(source.vocab_size).save(str(tokenizer))
    files = sorted((tmp_path / "files").iterdir()) if name == "mds_bytes" else tmp_path / "files"
    packtool.import_(files, tmp_path / "back", format=name.partition("_")[0], tokenizer=tokenizer)
    again, sizes = documents(tmp_path / "back")
    np.testing.assert_array_equal(again, tokens)
    np.testing.assert_array_equal(sizes, lengths)
    assert packtool.verify(tmp_path / "back").problems == []
