"""Files that other tools might have written, and a naive reader of each: document by document, in plain Python.

It shares nothing with packtool's readers. What it can't read, nobody should take for ids.
"""

from __future__ import annotations

import json
import random
import struct
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tests.exchange.tables import as_jsonl

EOS = 0
VOCAB = 4096
Ids = list[int]


class Document(NamedTuple):
    """Ids, EOS last, and whether each trains."""

    ids: Ids
    trains: list[bool]


def ended(ids: Ids, trains: list[bool] | None = None) -> Iterator[Document]:
    """A document with its EOS, unless it is empty."""
    trains = [True] * len(ids) if trains is None else trains
    if not all(0 <= token < VOCAB for token in ids):
        raise ValueError("an id that is not in the vocabulary")
    if ids and ids[-1] != EOS:
        yield Document([*ids, EOS], [*trains, any(trains)])
    elif ids:
        yield Document(ids, trains)


def divided(ids: Ids) -> Iterator[Document]:
    """The documents of a stream: EOS ends each; or begins each, where it is the first token and not the last."""
    if ids and ids[0] == EOS and ids[-1] != EOS:
        ids = ids[1:]
    begun: Ids = []
    for token in ids:
        begun.append(token)
        if token == EOS:
            yield from ended(begun)
            begun = []
    yield from ended(begun)


def of_row(row: dict[str, Any], name: str = "input_ids") -> Iterator[Document]:
    """The documents of a record with columns: what a mask says is padding left out, numbered documents apart."""
    ids = row[name]
    pads, labels, numbers = row.get("attention_mask"), row.get("labels"), row.get("document_ids")
    for column in (pads, labels, numbers):
        if column is not None and len(column) != len(ids):
            raise ValueError("a column of another length")
    parts: dict[Any, tuple[Ids, list[bool]]] = {}
    last, seen = None, set()
    for at, token in enumerate(ids):
        pad = 1 if pads is None else pads[at]
        number = 0 if numbers is None else numbers[at]
        if pad < 0 or pad != int(pad) or number != int(number):
            raise ValueError("no whole number")
        key = None if pad == 0 or number < 0 else (pad, number)
        if key is not None and key != last and key in seen:
            raise ValueError("a document that goes on")
        last = key
        if key is None:
            continue
        seen.add(key)
        if labels is not None and labels[at] not in (-100, token):
            raise ValueError("a label of another token")
        mine = parts.setdefault(key, ([], []))
        mine[0].append(token)
        mine[1].append(labels is None or labels[at] != -100)
    for tokens, trains in parts.values():
        yield from ended(tokens, trains)


def megatron(path: Path, _: str) -> Iterator[Document]:
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
            yield from ended([token for part in read[begin:end] for token in part])


def _bare(file: Path, dtype: str) -> Ids:
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


def nanogpt(path: Path, dtype: str) -> Iterator[Document]:
    yield from divided(_bare(path / "train.bin", dtype))


def olmo(path: Path, dtype: str) -> Iterator[Document]:
    yield from divided(_bare(path / "tokens.npy", dtype))


def llmc(path: Path, _: str) -> Iterator[Document]:
    data = (path / "train.bin").read_bytes()
    magic, version, count = struct.unpack_from("<3i", data)
    kind = {(20240520, 1): "H", (20240801, 7): "I"}[magic, version]
    assert len(data) == 1024 + count * struct.calcsize(f"<{kind}")
    yield from divided(list(struct.unpack_from(f"<{count}{kind}", data, 1024)))


def datatrove(path: Path, _: str) -> Iterator[Document]:
    data, index = (path / "a.ds").read_bytes(), (path / "a.ds.index").read_bytes()
    ends = struct.unpack(f"<{len(index) // 8}Q", index)
    size = len(data) // ends[-1] if ends and ends[-1] else 2
    assert size in (2, 4)
    assert len(data) == size * (ends[-1] if ends else 0)
    ids = struct.unpack(f"<{len(data) // size}{'H' if size == 2 else 'I'}", data)
    loss = path / "a.ds.loss"
    trains = list(loss.read_bytes()) if loss.exists() else [1] * len(ids)
    assert len(trains) == len(ids)
    assert set(trains) <= {0, 1}
    for begin, end in pairwise([0, *ends]):
        assert begin <= end
        yield from ended(list(ids[begin:end]), [each == 1 for each in trains[begin:end]])


def _of_table(table: pa.Table) -> Iterator[Document]:
    known = [name for name in ("input_ids", "labels", "attention_mask", "document_ids") if name in table.column_names]
    table = table.select(known)
    table.validate(full=True)
    for row in table.to_pylist():
        if any(row[name] is None or None in row[name] for name in known):
            raise ValueError("null")
        yield from of_row(row)


def parquet(path: Path, _: str) -> Iterator[Document]:
    with pq.ParquetFile(path / "a.parquet") as file:
        yield from _of_table(file.read())


def arrow(path: Path, _: str) -> Iterator[Document]:
    state = path / "state.json"
    names = ["a.arrow"]
    if state.exists():
        names = [file["filename"] for file in json.loads(state.read_bytes())["_data_files"]]
    for name in names:
        with pa.OSFile(str(path / name)) as file:
            is_file = file.read(6) == b"ARROW1"
            file.seek(0)
            reader = pa.ipc.open_file(file) if is_file else pa.ipc.open_stream(file)
            yield from _of_table(reader.read_all())


def jsonl(path: Path, _: str) -> Iterator[Document]:
    for line in (path / "a.jsonl").read_bytes().split(b"\n"):
        if line.strip():
            row = json.loads(line.decode())
            values = [value for name, value in row.items() if name in ("input_ids", "labels", "attention_mask")]
            assert all(type(each) in (int, float, bool) for value in values if value is not None for each in value)
            assert all(type(each) is int for each in row["input_ids"])
            yield from of_row({name: value for name, value in row.items() if value is not None})


def _samples(data: bytes) -> Iterator[bytes]:
    (count,) = struct.unpack_from("<I", data)
    ends = struct.unpack_from(f"<{count + 1}I", data, 4)
    assert ends[-1] == len(data)
    assert ends[0] >= 4 * (count + 2)
    for begin, end in pairwise(ends):
        assert begin <= end
        yield data[begin:end]


def mds(path: Path, _: str) -> Iterator[Document]:
    for shard in json.loads((path / "index.json").read_bytes())["shards"]:
        data = (path / shard["raw_data"]["basename"]).read_bytes()
        assert shard["raw_data"]["bytes"] == len(data)
        found = list(_samples(data))
        assert shard["samples"] == len(found)
        for sample in found:
            (size,) = struct.unpack_from("<I", sample)
            assert size == len(sample) - 4
            width = 1 << (sample[4] & 3)
            assert sample[4] >> 2 == 1
            length, values = int.from_bytes(sample[5 : 5 + width], "little"), sample[5 + width :]
            kind = {"uint16": "H", "int32": "i", "int64": "q"}[shard["column_encodings"][0].split(":")[1]]
            yield from ended(list(struct.unpack(f"<{length}{kind}", values)))


def litdata(path: Path, _: str) -> Iterator[Document]:
    index = json.loads((path / "index.json").read_bytes())
    kinds = {f"no_header_numpy:{number}": letter for number, letter in enumerate("bhiqBHIQ")}
    kinds |= {f"no_header_tensor:{number}": letter for number, letter in zip(range(11, 19), "Bbhhiiqq", strict=True)}
    letter = (kinds | {"no_header_tensor:20": "H"})[index["config"]["data_format"][0]]
    for chunk in index["chunks"]:
        data = (path / chunk["filename"]).read_bytes()
        found = list(_samples(data))
        assert (chunk["chunk_size"], chunk["chunk_bytes"]) == (len(found), len(data))
        for sample in found:
            yield from ended(list(struct.unpack(f"<{len(sample) // struct.calcsize(f'<{letter}')}{letter}", sample)))


READERS: dict[str, Callable[[Path, str], Iterator[Document]]] = {
    "megatron": megatron,
    "nanogpt": nanogpt,
    "llmc": llmc,
    "olmo": olmo,
    "datatrove": datatrove,
    "parquet": parquet,
    "arrow": arrow,
    "mds": mds,
    "litdata": litdata,
    "jsonl": jsonl,
}
"""Naive readers by the name of the format: of a directory, and the type of its ids where no file says it."""


def documents(rng: random.Random) -> list[Ids]:
    """Some documents; most end with EOS."""
    made = []
    for _ in range(rng.randint(1, 12)):
        ids = [rng.randrange(1, VOCAB) for _ in range(rng.choice((0, 1, 2, 5, 30)))]
        made.append([*ids, EOS] if rng.random() < 0.7 else ids)
    return made


def _joined(parts: list[Ids]) -> Ids:
    return [token for part in parts for token in part]


def write(name: str, path: Path, rng: random.Random) -> None:
    """Write a dataset of a format, as its tool would."""
    given = documents(rng)
    WRITERS[name](path, given, rng)


def _write_megatron(path: Path, given: list[Ids], rng: random.Random) -> None:
    code, dtype = rng.choice(((8, "<u2"), (4, "<i4"), (5, "<i8")))
    data = [np.array(ids, dtype).tobytes() for ids in given]
    first = [sum(map(len, data[:number])) for number in range(len(data))]
    bounds = [0, *range(1 + (len(given) > 2), len(given) + 1)]  # the first document may have two sequences
    (path / "a.bin").write_bytes(b"".join(data))
    index = struct.pack("<9sQBQQ", b"MMIDIDX\0\0", 1, code, len(given), len(bounds))
    index += struct.pack(f"<{len(given)}i", *map(len, given)) + struct.pack(f"<{len(first)}q", *first)
    (path / "a.idx").write_bytes(index + struct.pack(f"<{len(bounds)}q", *bounds))


def _write_bare(path: Path, given: list[Ids], rng: random.Random) -> None:
    array = np.array(_joined(given), "<u2")
    if rng.random() < 0.3:
        with path.open("wb") as file:
            np.save(file, array.astype(rng.choice(("<u2", "<i4", ">u4"))))
    else:
        array.tofile(path)


def _write_llmc(path: Path, given: list[Ids], rng: random.Random) -> None:
    kind, dtype = rng.choice((((20240520, 1), "<u2"), ((20240801, 7), "<u4")))
    ids = [EOS] * (rng.random() < 0.5) + _joined(given)
    header = np.zeros(256, "<i4")
    header[:3] = (*kind, len(ids))
    (path / "train.bin").write_bytes(header.tobytes() + np.array(ids, dtype).tobytes())


def _write_datatrove(path: Path, given: list[Ids], rng: random.Random) -> None:
    ids = _joined(given)
    np.array(ids, rng.choice(("<u2", "<u4"))).tofile(path / "a.ds")
    np.cumsum([len(part) for part in given]).astype("<u8").tofile(path / "a.ds.index")
    if rng.random() < 0.5:
        np.array([rng.randrange(2) for _ in ids], "u1").tofile(path / "a.ds.loss")


def _columns(given: list[Ids], rng: random.Random) -> dict[str, list[list[int]]]:
    columns = {"input_ids": given}
    if rng.random() < 0.4:
        columns["labels"] = [[token if rng.random() < 0.7 else -100 for token in ids] for ids in given]
    if rng.random() < 0.4:
        cuts = [rng.randint(0, len(ids)) for ids in given]
        columns["attention_mask"] = [[1] * cut + [0] * (len(ids) - cut) for ids, cut in zip(given, cuts, strict=True)]
    elif rng.random() < 0.4:
        columns["attention_mask"] = [[1 + at // 3 for at in range(len(ids))] for ids in given]
    elif rng.random() < 0.4:
        columns["document_ids"] = [[at // 4 for at in range(len(ids))] for ids in given]
    return columns


def _table(given: list[Ids], rng: random.Random) -> pa.Table:
    types = [pa.list_(pa.int32()), pa.large_list(pa.int64()), pa.list_(pa.int64())]
    return pa.table({name: pa.array(rows, rng.choice(types)) for name, rows in _columns(given, rng).items()})


def _write_parquet(path: Path, given: list[Ids], rng: random.Random) -> None:
    compression = rng.choice(("zstd", "none", "snappy"))
    checksums = rng.random() < 0.5
    pq.write_table(
        _table(given, rng), path / "a.parquet", row_group_size=5, compression=compression, write_page_checksum=checksums
    )


def _write_arrow(path: Path, given: list[Ids], rng: random.Random) -> None:
    table = _table(given, rng)
    new = rng.choice((pa.ipc.new_stream, pa.ipc.new_file))
    with new(path / "a.arrow", table.schema) as out:
        out.write_table(table, max_chunksize=4)
    if rng.random() < 0.5:
        (path / "cache-0.arrow").write_bytes((path / "a.arrow").read_bytes())
        (path / "state.json").write_text(json.dumps({"_data_files": [{"filename": "a.arrow"}], "_split": "train"}))


def _write_jsonl(path: Path, given: list[Ids], rng: random.Random) -> None:
    as_jsonl(path / "a.jsonl", _columns(given, rng))


def _sampled(samples: list[bytes], header: bytes = b"") -> bytes:
    begin = 4 * (len(samples) + 2) + len(header)
    ends = [begin + sum(map(len, samples[:number])) for number in range(len(samples) + 1)]
    return struct.pack(f"<{len(ends) + 1}I", len(samples), *ends) + header + b"".join(samples)


def _write_mds(path: Path, given: list[Ids], rng: random.Random) -> None:
    kind = rng.choice(("uint16", "int32", "int64"))
    columns = {"column_encodings": [f"ndarray:{kind}"], "column_names": ["tokens"], "column_sizes": [None]}
    config = {"compression": None, "format": "mds", "hashes": [], "size_limit": None, "version": 2, **columns}
    shards = []
    for number, part in enumerate((given[:5], given[5:])):
        arrays = [np.array(ids, kind).tobytes() for ids in part]
        values = [bytes([4, len(ids)]) + array for ids, array in zip(part, arrays, strict=True)]
        samples = [struct.pack("<I", len(each)) + each for each in values]
        data = _sampled(samples, json.dumps(config).encode())
        name = f"shard.{number:05d}.mds"
        (path / name).write_bytes(data)
        about = {"basename": name, "bytes": len(data), "hashes": {}}
        shards.append({**config, "raw_data": about, "zip_data": None, "samples": len(samples)})
    (path / "index.json").write_text(json.dumps({"version": 2, "shards": shards}))


def _write_litdata(path: Path, given: list[Ids], rng: random.Random) -> None:
    kind, dtype = rng.choice(
        (("no_header_tensor:20", "<u2"), ("no_header_tensor:15", "<i4"), ("no_header_numpy:5", "<u2"))
    )
    chunks = []
    for number, part in enumerate((given[:5], given[5:])):
        data = _sampled([np.array(ids, dtype).tobytes() for ids in part])
        (path / f"chunk-0-{number}.bin").write_bytes(data)
        about = {"chunk_bytes": len(data), "chunk_size": len(part), "dim": sum(map(len, part))}
        chunks.append({**about, "filename": f"chunk-0-{number}.bin"})
    config = {"compression": None, "data_format": [kind], "data_spec": None, "item_loader": "TokensLoader"}
    (path / "index.json").write_text(json.dumps({"chunks": chunks, "config": config}))


WRITERS: dict[str, Callable[[Path, list[Ids], random.Random], None]] = {
    "megatron": _write_megatron,
    "nanogpt": lambda path, given, rng: _write_bare(path / "train.bin", given, rng),
    "llmc": _write_llmc,
    "olmo": lambda path, given, rng: _write_bare(path / "tokens.npy", given, rng),
    "datatrove": _write_datatrove,
    "parquet": _write_parquet,
    "arrow": _write_arrow,
    "mds": _write_mds,
    "litdata": _write_litdata,
    "jsonl": _write_jsonl,
}
"""Writers by the name of the format."""
