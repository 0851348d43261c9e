"""A naive reader for every format, in plain Python, written from the format's own documentation.

It shares nothing with packtool's readers and writers, so a mistake that both of these make is seen here. What it can't
read, nobody should take for ids.
"""

import json
import struct
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

Ids = list[int]
Row = dict[str, Any]


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
    for file in sorted(path.glob("*.idx")):
        index, data = file.read_bytes(), file.with_suffix(".bin").read_bytes()
        magic, version, code, sequences, bounds = struct.unpack_from("<9sQBQQ", index)
        assert (magic, version) == (b"MMIDIDX\0\0", 1)
        assert len(index) == 34 + 12 * sequences + 8 * bounds
        kind = {1: "B", 2: "b", 3: "h", 4: "i", 5: "q", 8: "H"}[code]
        lengths = struct.unpack_from(f"<{sequences}i", index, 34)
        first = struct.unpack_from(f"<{sequences}q", index, 34 + 4 * sequences)
        ends = struct.unpack_from(f"<{bounds}q", index, 34 + 12 * sequences)
        read = []
        for length, at in zip(lengths, first, strict=True):
            assert length >= 0
            assert at >= 0
            read.append(list(struct.unpack_from(f"<{length}{kind}", data, at)))
        assert sum(lengths) * struct.calcsize(f"<{kind}") == len(data)
        assert (ends[0], ends[-1]) == (0, sequences)
        for begin, end in pairwise(ends):
            assert begin <= end
            yield Sequence([token for part in read[begin:end] for token in part])


def bare(file: Path, dtype: str) -> Ids:
    data = file.read_bytes()
    if data.startswith(b"\x93NUMPY"):
        array = np.load(file, allow_pickle=False)
        assert array.ndim == 1
        assert array.dtype.kind in "iu"
        ids: Ids = array.tolist()
        return ids
    size = np.dtype(dtype).itemsize
    assert len(data) % size == 0
    return [int.from_bytes(data[at : at + size], "little") for at in range(0, len(data), size)]


def nanogpt(path: Path, _: str) -> Iterator[Sequence]:
    yield Sequence(bare(path / "train.bin", "<u2"))


def olmo(path: Path, dtype: str) -> Iterator[Sequence]:
    for file in sorted(path.glob("*.npy")):
        yield Sequence(bare(file, dtype))


def llmc(path: Path, _: str) -> Iterator[Sequence]:
    for file in sorted(path.glob("*.bin")):
        data = file.read_bytes()
        magic, version, count = struct.unpack_from("<3i", data)
        kind = {(20240520, 1): "H", (20240801, 7): "I"}[magic, version]
        assert len(data) == 1024 + count * struct.calcsize(f"<{kind}")
        yield Sequence(list(struct.unpack_from(f"<{count}{kind}", data, 1024)))


def datatrove(path: Path, _: str) -> Iterator[Sequence]:
    """Yield what lies between two ends: a document, or a piece of one in rows."""
    for file in sorted(path.glob("*.ds")):
        data, index, loss = file.read_bytes(), Path(f"{file}.index").read_bytes(), Path(f"{file}.loss")
        ends = struct.unpack(f"<{len(index) // 8}Q", index)
        size = len(data) // ends[-1] if ends and ends[-1] else 2
        assert size in (2, 4)
        assert len(data) == size * (ends[-1] if ends else 0)
        ids = struct.unpack(f"<{len(data) // size}{'H' if size == 2 else 'I'}", data)
        trains = [{0: False, 1: True}[byte] for byte in loss.read_bytes()] if loss.exists() else None
        assert trains is None or len(trains) == len(ids)
        for begin, end in pairwise([0, *ends]):
            assert begin <= end
            yield Sequence(list(ids[begin:end]), [end - begin], None if trains is None else trains[begin:end])


MASKS = ("loss_mask", "assistant_masks", "completion_mask")
COLUMNS = ("input_ids", "labels", "attention_mask", *MASKS, "document_ids", "seq_lengths")


def _rows_of(table: pa.Table) -> list[Row]:
    table = table.select([name for name in COLUMNS if name in table.column_names])
    table.validate(full=True)
    rows: list[Row] = table.to_pylist()
    assert not any(column is None or None in column for row in rows for column in row.values())
    return rows


def of_parquet(path: Path) -> Iterator[Row]:
    for file in sorted(path.glob("**/*.parquet")):
        with pq.ParquetFile(file) as opened:
            yield from _rows_of(opened.read())


def of_arrow(path: Path) -> Iterator[Row]:
    state = path / "state.json"
    files = sorted(path.glob("*.arrow"))
    if state.exists():
        known = json.loads(state.read_bytes().decode(errors="replace"))  # a name that nobody reads may be damaged
        files = [path / file["filename"] for file in known["_data_files"]]
    for name in files:
        with pa.OSFile(str(name)) as file:
            is_file = file.read(6) == b"ARROW1"
            file.seek(0)
            reader = pa.ipc.open_file(file) if is_file else pa.ipc.open_stream(file)
            yield from _rows_of(reader.read_all())


def of_jsonl(path: Path) -> Iterator[Row]:
    for line in (line for file in sorted(path.glob("*.jsonl")) for line in file.read_bytes().split(b"\n")):
        if line.strip():
            row = {name: value for name, value in json.loads(line.decode()).items() if value is not None}
            values = [row[name] for name in COLUMNS[:-2] if name in row]
            assert all(type(each) in (int, float, bool) for value in values for each in value)
            assert all(type(each) is int for each in row["input_ids"])
            yield row


TABLES: dict[str, Callable[[Path], Iterator[Row]]] = {"parquet": of_parquet, "arrow": of_arrow, "jsonl": of_jsonl}
"""Readers of rows with columns beside their ids."""


def table(rows: Callable[[Path], Iterator[Row]], path: Path) -> Iterator[Sequence]:
    for row in rows(path):
        ids, labels = row["input_ids"], row.get("labels")
        assert labels is None or all(label in (-100, own) for label, own in zip(labels, ids, strict=True))
        trains = None if labels is None else [label != -100 for label in labels]
        yield Sequence(ids, row.get("seq_lengths"), trains)


def megatron_bridge(path: Path, _: str) -> Iterator[Sequence]:
    for file in sorted(path.glob("*.idx.parquet")):
        for row in pq.read_table(file).to_pylist():
            starts = [*row["seq_start_id"], len(row["input_ids"])]
            yield Sequence(row["input_ids"], np.diff(starts).tolist(), [mask == 1 for mask in row["loss_mask"]])


def _samples(data: bytes) -> list[bytes]:
    (count,) = struct.unpack_from("<I", data)
    ends = struct.unpack_from(f"<{count + 1}I", data, 4)
    assert ends[-1] == len(data)
    assert ends[0] >= 4 * (count + 2)
    assert all(begin <= end for begin, end in pairwise(ends))
    return [data[begin:end] for begin, end in pairwise(ends)]


def mds(path: Path, _: str) -> Iterator[Sequence]:
    for shard in json.loads((path / "index.json").read_bytes())["shards"]:
        data = (path / shard["raw_data"]["basename"]).read_bytes()
        found = _samples(data)
        assert (shard["raw_data"]["bytes"], shard["samples"]) == (len(data), len(found))
        for sample in found:
            columns = dict(_mds_columns(shard, sample))
            yield Sequence(columns["tokens"], columns.get("seq_lengths"))


def _mds_columns(shard: dict[str, Any], sample: bytes) -> Iterator[tuple[str, Ids]]:
    names, encodings, sizes = (shard[f"column_{each}"] for each in ("names", "encodings", "sizes"))
    at = 4 * sizes.count(None)
    given = iter(struct.unpack_from(f"<{sizes.count(None)}I", sample))
    for name, encoding, size in zip(names, encodings, sizes, strict=True):
        _, dtype, *shape = encoding.split(":")
        column = sample[at : at + (next(given) if size is None else size)]
        at += len(column)
        if not shape:  # a byte: one dimension, whose length has 1, 2 or 4 bytes; the length; the elements
            width = 1 << (column[0] & 3)
            assert column[0] >> 2 == 1
            shape, column = [int.from_bytes(column[1 : 1 + width], "little")], column[1 + width :]
        ids = np.frombuffer(column, dtype).tolist()
        assert len(ids) == int(shape[0])
        yield name, ids
    assert at == len(sample)


def _frames(data: bytes) -> list[bytes]:
    """The items of a chunk of litdata that is compressed by batch, without the size that each begins with."""
    *kind, count, to_a_frame, frames = struct.unpack_from("<8sHHIII", data)
    assert kind == [b"LDFZ01\0\0", 1, 0]
    starts = struct.unpack_from(f"<{count + 1}I", data, 24)
    end = 28 + 4 * count + 24 * frames
    out: list[bytes] = []
    for number in range(frames):
        first, items, at, packed, size = struct.unpack_from("<IIQII", data, 28 + 4 * count + 24 * number)
        assert (first, items, at) == (len(out), min(to_a_frame, count - first), end)
        assert starts[first + items] - starts[first] == size
        frame = pa.decompress(data[at : at + packed], size, codec="zstd", asbytes=True)
        near = [start - starts[first] for start in starts[first : first + items + 1]]
        out += [frame[a:b] for a, b in pairwise(near)]
        end += packed
    assert (end, len(out), starts[0]) == (len(data), count, 0)
    assert all(int.from_bytes(item[:4], "little") == len(item) - 4 for item in out)
    return [item[4:] for item in out]


def litdata(path: Path, _: str) -> Iterator[Sequence]:
    index = json.loads((path / "index.json").read_bytes())
    kinds = {f"no_header_numpy:{number}": letter for number, letter in enumerate("bhiqBHIQ")}
    kinds |= {f"no_header_tensor:{number}": letter for number, letter in zip(range(11, 19), "Bbhhiiqq", strict=True)}
    letter = (kinds | {"no_header_tensor:20": "H"})[index["config"]["data_format"][0]]
    size = struct.calcsize(f"<{letter}")
    for chunk in index["chunks"]:
        data = (path / chunk["filename"]).read_bytes()
        found = _frames(data) if index["config"].get("compression_level") == "batch" else _samples(data)
        assert (chunk["chunk_size"], chunk["chunk_bytes"]) == (len(found), len(data))
        assert chunk.get("dim") in (None, sum(map(len, found)) / size)
        for sample in found:
            yield Sequence(list(struct.unpack(f"<{len(sample) // size}{letter}", sample)))


READERS: dict[str, Callable[[Path, str], Iterator[Sequence]]] = {
    "megatron": megatron,
    "nanogpt": nanogpt,
    "llmc": llmc,
    "olmo": olmo,
    "datatrove": datatrove,
    "parquet": lambda path, _: table(of_parquet, path),
    "arrow": lambda path, _: table(of_arrow, path),
    "megatron-bridge": megatron_bridge,
    "mds": mds,
    "litdata": litdata,
    "jsonl": lambda path, _: table(of_jsonl, path),
}
"""Readers by the name of the format: of a directory, and the type of its ids where no file says it."""
