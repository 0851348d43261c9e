"""Files that other tools might have written, and the documents that a naive reader finds in each."""

import json
import random
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tests.exchange.readers import MASKS, READERS, TABLES
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
    masks = [row[each] for each in MASKS if each in row]
    for column in (pads, labels, numbers, *masks):
        if column is not None and len(column) != len(ids):
            raise ValueError("a column of another length")
    parts: dict[Any, tuple[Ids, list[bool]]] = {}
    last, seen = None, set()
    counted = [number for number in numbers or () if number >= 0]
    # Without a mask, 0 behind documents that are counted from 1 on is padding.
    first = 1 if pads is None and counted and counted[0] != 0 else 0
    for at, token in enumerate(ids):
        pad = 1 if pads is None else pads[at]
        number = 0 if numbers is None else numbers[at]
        if pad < 0 or pad != int(pad) or number != int(number):
            raise ValueError("no whole number")
        key = None if pad == 0 or number < first else (pad, number)
        if key is not None and key != last and key in seen:
            raise ValueError("a document that goes on")
        last = key
        if key is None:
            continue
        seen.add(key)
        if not all(mask[at] in (0, 1) for mask in masks):
            raise ValueError("neither 0 nor 1")
        if labels is not None and labels[at] not in (-100, token):
            raise ValueError("a label of another token")
        mine = parts.setdefault(key, ([], []))
        mine[0].append(token)
        mine[1].append((labels is None or labels[at] != -100) and all(mask[at] for mask in masks))
    for tokens, trains in parts.values():
        yield from ended(tokens, trains)


STREAMS = ("nanogpt", "olmo", "llmc")
"""Formats that do not say where documents end."""


def read(name: str, path: Path) -> Iterator[Document]:
    """The documents of a directory, as an import must find them."""
    for row in TABLES[name](path) if name in TABLES else ():
        yield from of_row(row)
    for sequence in READERS[name](path, "<u2") if name not in TABLES else ():
        yield from divided(sequence.ids) if name in STREAMS else ended(sequence.ids, sequence.trains)


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
    array = np.array([EOS] * (rng.random() < 0.3) + _joined(given), "<u2")
    if rng.random() < 0.3:
        with path.open("wb") as file:
            np.save(file, array.astype(rng.choice(("<u2", "<i4", ">u4", ">i4", "<u8"))))
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


def _columns(given: list[Ids], rng: random.Random) -> dict[str, list[list[Any]]]:
    columns: dict[str, list[list[Any]]] = {"input_ids": given}
    if rng.random() < 0.4:
        columns["labels"] = [[token if rng.random() < 0.7 else -100 for token in ids] for ids in given]
    for name, value in zip(MASKS, (int, float, bool), strict=True):
        if rng.random() < 0.2:
            columns[name] = [[value(rng.random() < 0.7) for _ in ids] for ids in given]
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
    own = dict(zip(MASKS, map(pa.list_, (pa.int8(), pa.float32(), pa.bool_())), strict=True))
    columns = _columns(given, rng).items()
    return pa.table({name: pa.array(rows, own.get(name) or rng.choice(types)) for name, rows in columns})


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


def _framed(items: list[bytes], to_a_frame: int) -> bytes:
    """A chunk that litdata compresses by batch, as its `pack_framed_zstd` does."""
    batches = [items[first : first + to_a_frame] for first in range(0, len(items), to_a_frame)]
    frames = [pa.compress(b"".join(batch), "zstd", asbytes=True) for batch in batches]
    starts = np.cumsum([0, *map(len, items)])
    head = (
        struct.pack("<8sHHIII", b"LDFZ01", 1, 0, len(items), to_a_frame, len(frames)) + starts.astype("<u4").tobytes()
    )
    at = len(head) + 24 * len(frames)
    for number, (batch, frame) in enumerate(zip(batches, frames, strict=True)):
        head += struct.pack("<IIQII", number * to_a_frame, len(batch), at, len(frame), sum(map(len, batch)))
        at += len(frame)
    return head + b"".join(frames)


def _write_litdata(path: Path, given: list[Ids], rng: random.Random) -> None:
    """For its loader of tokens, or compressed by batch: then each item begins with its size."""
    kind, dtype = rng.choice(
        (("no_header_tensor:20", "<u2"), ("no_header_tensor:15", "<i4"), ("no_header_numpy:5", "<u2"))
    )
    by_batch = rng.random() < 0.5
    config = {"compression": None, "data_format": [kind], "data_spec": None, "item_loader": "TokensLoader"}
    if by_batch:
        config |= {"compression": "zstd", "compression_level": "batch", "item_loader": "PyTreeLoader"}
    chunks = []
    for number, part in enumerate((given[:5], given[5:])):
        items = [np.array(ids, dtype).tobytes() for ids in part]
        about = {"chunk_size": len(part), "dim": None if by_batch else sum(map(len, part))}
        if by_batch:
            data = _framed([struct.pack("<I", len(item)) + item for item in items], rng.randint(1, 6))
        else:
            data = _sampled(items)
        (path / f"chunk-0-{number}.bin").write_bytes(data)
        chunks.append({**about, "chunk_bytes": len(data), "filename": f"chunk-0-{number}.bin"})
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
