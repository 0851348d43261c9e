"""Reads and writes token files with the libraries they belong to. Runs in the environment that has them.

    python peer_formats.py read FORMAT DIRECTORY OUT.npz [LENGTH]
    python peer_formats.py write FORMAT TOKENS.npz DIRECTORY

What is read: `tokens`, all of them, and `lengths` where the library gives sequences.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

Sequences = Iterable[Any]


def read_megatron(path: Path, _: int) -> Sequences:
    from megatron.core.datasets.indexed_dataset import IndexedDataset

    dataset = IndexedDataset(str(path / "tokens"))
    bounds = dataset.document_indices
    return (np.concatenate(dataset[int(a) : int(b)]) for a, b in pairwise(bounds))


def write_megatron(documents: list[np.ndarray], path: Path) -> None:
    import torch
    from megatron.core.datasets.indexed_dataset import IndexedDatasetBuilder

    builder = IndexedDatasetBuilder(str(path / "tokens.bin"), dtype=np.uint16)
    for document in documents:
        builder.add_document(torch.from_numpy(document.astype(np.int64)), [len(document)])
    builder.finalize(str(path / "tokens.idx"))


def read_nanogpt(path: Path, _: int) -> Sequences:
    """As nanoGPT's train.py does."""
    return [np.memmap(path / "train.bin", dtype=np.uint16, mode="r")]


def write_nanogpt(documents: list[np.ndarray], path: Path) -> None:
    np.concatenate(documents).astype(np.uint16).tofile(path / "train.bin")


def read_llmc(path: Path, _: int) -> Sequences:
    """As llm.c's dataloader does."""
    for file in sorted(path.glob("*.bin")):
        data = file.read_bytes()
        header = np.frombuffer(data[: 256 * 4], dtype=np.int32)
        assert (header[0], header[1]) in ((20240520, 1), (20240801, 7))
        dtype = np.uint16 if header[1] == 1 else np.uint32
        tokens = np.frombuffer(data[256 * 4 :], dtype=dtype)
        assert len(tokens) == header[2]
        yield tokens


def write_llmc(documents: list[np.ndarray], path: Path) -> None:
    header = np.zeros(256, dtype=np.int32)
    tokens = np.concatenate(documents)
    header[:3] = 20240520, 1, len(tokens)
    (path / "train.bin").write_bytes(header.tobytes() + tokens.astype(np.uint16).tobytes())


def read_olmo(path: Path, length: int) -> Sequences:
    from olmo_core.data import NumpyFSLDataset

    files = sorted(path.glob("*.npy"))
    dataset = NumpyFSLDataset(*files, sequence_length=length, pad_token_id=0, eos_token_id=0, vocab_size=1 << 16)
    return (dataset[index]["input_ids"].numpy() for index in range(len(dataset)))


def write_olmo(documents: list[np.ndarray], path: Path) -> None:
    """As OLMo-core's own scripts do: a NumPy memory map."""
    tokens = np.concatenate(documents)
    out = np.memmap(path / "tokens.npy", dtype=np.uint16, mode="w+", shape=tokens.shape)
    out[:] = tokens
    out.flush()


def read_datatrove(path: Path, length: int) -> Sequences:
    from datatrove.utils.dataset import DatatroveFileDataset

    for file in sorted(path.glob("*.ds")):
        dataset = DatatroveFileDataset(str(file), seq_len=length - 1, token_size=2, return_positions=True)
        for index in range(len(dataset)):
            sample = dataset[index]
            ids, positions = sample["input_ids"].numpy(), sample["positions"].numpy()
            yield from np.split(ids, np.flatnonzero(positions == 0)[1:])


def write_datatrove(documents: list[np.ndarray], path: Path) -> None:
    from datatrove.io import get_datafolder
    from datatrove.pipeline.tokens.tokenizer import TokenizedFile

    out = TokenizedFile(get_datafolder(str(path)), "tokens.ds", token_size=2)
    for document in documents:
        out.write(document.tolist(), None)
    out.close()


def read_parquet(path: Path, _: int) -> Sequences:
    from datasets import load_dataset

    dataset = load_dataset(
        "parquet", data_files=str(path / "data" / "*.parquet"), split="train", cache_dir=str(path / "cache")
    )
    return (np.array(row) for row in dataset["input_ids"])


def write_parquet(documents: list[np.ndarray], path: Path) -> None:
    from datasets import Dataset

    Dataset.from_dict({"input_ids": [document.tolist() for document in documents]}).to_parquet(path / "a.parquet")


def read_arrow(path: Path, _: int) -> Sequences:
    from datasets import Dataset, concatenate_datasets

    dataset = concatenate_datasets([Dataset.from_file(str(file)) for file in sorted(path.glob("*.arrow"))])
    return (np.array(row) for row in dataset["input_ids"])


def write_arrow(documents: list[np.ndarray], path: Path) -> None:
    from datasets import Dataset

    dataset = Dataset.from_dict({"input_ids": [document.tolist() for document in documents]})
    dataset.save_to_disk(str(path))


def read_jsonl(path: Path, _: int) -> Sequences:
    from datasets import load_dataset

    dataset = load_dataset("json", data_files=str(path / "*.jsonl"), split="train", cache_dir=str(path / "cache"))
    return (np.array(row) for row in dataset["input_ids"])


def write_jsonl(documents: list[np.ndarray], path: Path) -> None:
    from datasets import Dataset

    Dataset.from_dict({"input_ids": [document.tolist() for document in documents]}).to_json(path / "a.jsonl")


def read_mds(path: Path, _: int) -> Sequences:
    _torchvision()
    from streaming import StreamingDataset

    dataset = StreamingDataset(local=str(path), shuffle=False, batch_size=1)
    return (dataset[index]["tokens"] for index in range(len(dataset)))


def write_mds(documents: list[np.ndarray], path: Path) -> None:
    """As llm-foundry's newer scripts do, and compressed, with hashes."""
    _torchvision()
    from streaming import MDSWriter

    options = {"compression": "zstd", "hashes": ["sha1", "xxh64"], "size_limit": 1 << 12}
    with MDSWriter(out=str(path), columns={"tokens": "ndarray:int32"}, **options) as out:
        for document in documents:
            out.write({"tokens": document.astype(np.int32)})


def write_mds_bytes(documents: list[np.ndarray], path: Path) -> None:
    """As llm-foundry's older scripts do."""
    _torchvision()
    from streaming import MDSWriter

    kinds = ("br:3", "snappy", "gz:1", "bz2:1", None)
    share = -(-len(documents) // len(kinds))
    for number, compression in enumerate(kinds):
        with MDSWriter(out=str(path / str(number)), columns={"tokens": "bytes"}, compression=compression) as out:
            for document in documents[number * share : (number + 1) * share]:
                out.write({"tokens": document.astype(np.int64).tobytes()})


def _torchvision() -> None:
    """Make it importable: `streaming` imports it for images, whose operators need a build that fits that of PyTorch."""
    import torch

    try:
        import torchvision  # noqa: F401
    except RuntimeError:
        for name in [each for each in sys.modules if each.partition(".")[0] == "torchvision"]:
            del sys.modules[name]
        for operator in ("nms", "qnms"):
            torch.library.define(f"torchvision::{operator}", "(Tensor boxes, Tensor scores, float most) -> Tensor")


def read_litdata(path: Path, length: int) -> Sequences:
    from litdata import StreamingDataset, TokensLoader

    dataset = StreamingDataset(str(path), item_loader=TokensLoader(block_size=length), shuffle=False, drop_last=False)
    return (np.asarray(dataset[index]) for index in range(len(dataset)))


def write_litdata(documents: list[np.ndarray], path: Path) -> None:
    """As LitGPT does, in chunks of some documents."""
    _write_litdata(path, documents, item_loader=True, compression=None)


def write_litdata_zstd(documents: list[np.ndarray], path: Path) -> None:
    _write_litdata(path, documents, item_loader=True, compression="zstd")


def write_litdata_trees(documents: list[np.ndarray], path: Path) -> None:
    """As dictionaries of arrays, one of which says that all train."""
    _write_litdata(path, _trees(documents), item_loader=False, compression=None)


def write_litdata_batch(documents: list[np.ndarray], path: Path) -> None:
    """Compressed as it does by itself: some items to a frame."""
    _write_litdata(path, _trees(documents), item_loader=False, compression="zstd")


def _trees(documents: list[np.ndarray]) -> list[Any]:
    return [{"text": "a", "input_ids": ids.astype(np.int32), "labels": ids.astype(np.int64)} for ids in documents]


def _write_litdata(path: Path, items: list[Any], *, item_loader: bool, compression: str | None) -> None:
    import torch
    from litdata.streaming.item_loader import TokensLoader
    from litdata.streaming.writer import BinaryWriter

    loader = TokensLoader() if item_loader else None
    level = "chunk" if item_loader and compression else None
    out = BinaryWriter(
        str(path), chunk_bytes=1 << 12, compression=compression, compression_level=level, item_loader=loader
    )
    for number, item in enumerate(items):
        out.add_item(number, torch.from_numpy(item.astype(np.int64)) if item_loader else item)
    out.done()
    out.merge()


def main(direction: str, name: str, source: str, target: str, length: str = "0") -> None:
    if direction == "read":
        found = [np.asarray(each).astype(np.int64) for each in globals()[f"read_{name}"](Path(source), int(length))]
        np.savez(target, tokens=np.concatenate(found), lengths=[len(each) for each in found])
    else:
        given = np.load(source)
        Path(target).mkdir()
        globals()[f"write_{name}"](np.split(given["tokens"], np.cumsum(given["lengths"])[:-1]), Path(target))


if __name__ == "__main__":
    main(*sys.argv[1:])
