"""A small reader for every format that is exported, written from the format's own documentation.

It shares nothing with packtool's readers and writers, so a mistake that both of these make is seen here.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

Ids = np.ndarray[Any, Any]


class Sequence(NamedTuple):
    """What a reader finds of a sequence, or of all of them where the format does not say where each ends.

    Attributes:
        pieces: lengths of the documents, and of the padding, in it; None where the format does not have them.
        trains: which tokens are labels, or the mask of a trainer; None where the format does not say.
    """

    ids: Ids
    pieces: list[int] | None = None
    trains: list[bool] | None = None


def megatron(path: Path, _: str) -> Iterator[Sequence]:
    index = (path / "tokens.idx").read_bytes()
    magic, version, code, sequences, documents = struct.unpack_from("<9sQBQQ", index)
    assert (magic, version) == (b"MMIDIDX\0\0", 1)
    lengths = np.frombuffer(index, "<i4", sequences, 34)
    first_bytes = np.frombuffer(index, "<i8", sequences, 34 + 4 * sequences)
    bounds = np.frombuffer(index, "<i8", documents, 34 + 12 * sequences)
    assert bounds.tolist() == list(range(sequences + 1))
    assert len(index) == 34 + 12 * sequences + 8 * documents
    data = (path / "tokens.bin").read_bytes()
    for length, first in zip(lengths.tolist(), first_bytes.tolist(), strict=True):
        yield Sequence(np.frombuffer(data, {4: "<i4", 8: "<u2"}[code], length, first))


def nanogpt(path: Path, _: str) -> Iterator[Sequence]:
    yield Sequence(np.fromfile(path / "train.bin", "<u2"))


def llmc(path: Path, _: str) -> Iterator[Sequence]:
    for file in sorted(path.glob("*.bin")):
        magic, version, count, *rest = np.fromfile(file, "<i4", 256).tolist()
        ids = np.fromfile(file, {(20240520, 1): "<u2", (20240801, 7): "<u4"}[magic, version], offset=1024)
        assert (len(ids), any(rest)) == (count, False)
        yield Sequence(ids)


def olmo(path: Path, dtype: str) -> Iterator[Sequence]:
    for file in sorted(path.glob("*.npy")):
        yield Sequence(np.fromfile(file, dtype))


def datatrove(path: Path, dtype: str) -> Iterator[Sequence]:
    """Yield what lies between two ends: a document, or a piece of one in rows."""
    for file in sorted(path.glob("*.ds")):
        ids, ends = np.fromfile(file, dtype), np.fromfile(f"{file}.index", "<u8").astype(np.int64)
        assert ends[-1] == len(ids)
        loss = Path(f"{file}.loss")
        mask = np.fromfile(loss, np.bool_).tolist() if loss.exists() else None
        for first, last in pairwise([0, *ends.tolist()]):
            yield Sequence(ids[first:last], [last - first], None if mask is None else mask[first:last])


def _of_table(rows: list[dict[str, Any]]) -> Iterator[Sequence]:
    for row in rows:
        labels = row.get("labels")
        assert labels is None or all(label in (-100, own) for label, own in zip(labels, row["input_ids"], strict=True))
        trains = None if labels is None else [label != -100 for label in labels]
        yield Sequence(np.array(row["input_ids"]), row.get("seq_lengths"), trains)


def parquet(path: Path, _: str) -> Iterator[Sequence]:
    for file in sorted(path.glob("*.parquet")):
        yield from _of_table(pq.read_table(file).to_pylist())


def jsonl(path: Path, _: str) -> Iterator[Sequence]:
    for file in sorted(path.glob("*.jsonl")):
        yield from _of_table(list(map(json.loads, file.read_text().splitlines())))


def arrow(path: Path, _: str) -> Iterator[Sequence]:
    state = json.loads((path / "state.json").read_bytes())
    for file in state["_data_files"]:
        with pa.ipc.open_stream(path / file["filename"]) as stream:
            yield from _of_table(stream.read_all().to_pylist())


def megatron_bridge(path: Path, _: str) -> Iterator[Sequence]:
    for file in sorted(path.glob("*.idx.parquet")):
        for row in pq.read_table(file).to_pylist():
            starts = [*row["seq_start_id"], len(row["input_ids"])]
            yield Sequence(
                np.array(row["input_ids"]), np.diff(starts).tolist(), [mask == 1 for mask in row["loss_mask"]]
            )


def mds(path: Path, _: str) -> Iterator[Sequence]:
    index = json.loads((path / "index.json").read_bytes())
    for shard in index["shards"]:
        data = (path / shard["raw_data"]["basename"]).read_bytes()
        assert len(data) == shard["raw_data"]["bytes"]
        (samples,) = struct.unpack_from("<I", data)
        assert samples == shard["samples"]
        for first, last in pairwise(np.frombuffer(data, "<u4", samples + 1, 4).tolist()):
            columns = dict(_mds_columns(shard, data[first:last]))
            pieces = columns.get("seq_lengths")
            yield Sequence(columns["tokens"], None if pieces is None else pieces.tolist())


def _mds_columns(shard: dict[str, Any], sample: bytes) -> Iterator[tuple[str, Ids]]:
    names, encodings, sizes = (shard[f"column_{each}"] for each in ("names", "encodings", "sizes"))
    given = iter(np.frombuffer(sample, "<u4", sizes.count(None)).tolist())
    at = 4 * sizes.count(None)
    for name, encoding, size in zip(names, encodings, sizes, strict=True):
        _, dtype, *shape = encoding.split(":")
        column = sample[at : at + (next(given) if size is None else size)]
        at += len(column)
        if not shape:  # a byte: one dimension, whose length has 1, 2 or 4 bytes; the length; the elements
            width = 1 << (column[0] & 3)
            assert column[0] >> 2 == 1
            shape, column = [int.from_bytes(column[1 : 1 + width], "little")], column[1 + width :]
        ids = np.frombuffer(column, dtype)
        assert len(ids) == int(shape[0])
        yield name, ids
    assert at == len(sample)


def litdata(path: Path, _: str) -> Iterator[Sequence]:
    index = json.loads((path / "index.json").read_bytes())
    dtype = {"no_header_numpy:5": "<u2", "no_header_numpy:6": "<u4"}[index["config"]["data_format"][0]]
    for chunk in index["chunks"]:
        data = (path / chunk["filename"]).read_bytes()
        (items,) = struct.unpack_from("<I", data)
        offsets = np.frombuffer(data, "<u4", items + 1, 4).tolist()
        assert (offsets[0], offsets[-1], items) == (4 * (items + 2), len(data), chunk["chunk_size"])
        yield Sequence(np.frombuffer(data, dtype, chunk["dim"], offsets[0]))


READERS: dict[str, Callable[[Path, str], Iterator[Sequence]]] = {
    "megatron": megatron,
    "nanogpt": nanogpt,
    "llmc": llmc,
    "olmo": olmo,
    "datatrove": datatrove,
    "parquet": parquet,
    "arrow": arrow,
    "megatron-bridge": megatron_bridge,
    "mds": mds,
    "litdata": litdata,
    "jsonl": jsonl,
}
"""Readers by the name of the format: of a directory, and the type of its ids where no file says it."""
