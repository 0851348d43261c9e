"""MosaicML Streaming's MDS: `index.json` and shards of samples, each a column `tokens`, of rows also `seq_lengths`.

A shard: the number of samples (u4), where each begins and the last ends (u4), the columns as JSON, then the samples. A
sample: the sizes of its columns of no fixed size (u4), then the columns, sorted by name. An array of no fixed shape
says its dimensions and the width of each (a byte), then the dimensions, then its elements.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from packtool.exchange.files import FileWriter, write_json
from packtool.exchange.model import FILE_BYTES, Block, Contents, Format, Part, cut, pieces
from packtool.formats.schema import ExportedFile
from packtool.planning.plan import offsets_of


def _columns(contents: Contents) -> dict[str, Any]:
    """Describe the columns as a shard and the index do."""
    name = contents.dtype.name
    columns: dict[str, tuple[str, int | None]] = {}
    if contents.kind == "rows" and contents.bounded:
        columns["seq_lengths"] = ("ndarray:uint32", None)
    if len(contents.row_lengths) == 1:
        (length,) = contents.row_lengths
        columns["tokens"] = (f"ndarray:{name}:{length}", length * contents.dtype.itemsize)
    else:
        columns["tokens"] = (f"ndarray:{name}", None)
    return {
        "column_encodings": [encoding for encoding, _ in columns.values()],
        "column_names": list(columns),
        "column_sizes": [size for _, size in columns.values()],
        "compression": None,
        "format": "mds",
        "hashes": [],
        "size_limit": FILE_BYTES,
        "version": 2,
    }


def part(directory: Path, contents: Contents, part: Part) -> list[ExportedFile]:
    columns = _columns(contents)
    config = msgspec.json.encode(columns)
    fixed = columns["column_sizes"][-1] is not None
    written = []
    for number, block in enumerate(cut(contents.blocks(part), contents.dtype.itemsize)):
        samples = [_sample(*sequence, fixed) for sequence in _sequences(block, contents)]
        sizes = np.array([len(sample) for sample in samples], np.int64)
        begin = 4 + 4 * (len(samples) + 1) + len(config)
        with FileWriter(directory / f"shard-{part.number:05d}-{number:05d}.mds") as out:
            out.write(np.array([len(samples)], "<u4"))
            out.write((begin + offsets_of(sizes)).astype("<u4"))
            out.write(config)
            out.write(b"".join(samples))
            written.append(out.finish(len(samples), len(block.tokens)))
    return written


def _sequences(block: Block, contents: Contents) -> list[tuple[npt.NDArray[Any], npt.NDArray[Any] | None]]:
    """Return the tokens of each sequence, and the lengths of its pieces."""
    tokens = block.tokens.astype(contents.dtype, copy=False)
    rows = np.split(tokens, np.cumsum(block.lengths)[:-1])
    if block.segments is None:
        return [(row, None) for row in rows]
    lengths, counts = pieces(block.segments)
    return list(zip(rows, np.split(lengths.astype("<u4"), np.cumsum(counts)[:-1]), strict=True))


def _sample(tokens: npt.NDArray[Any], lengths: npt.NDArray[Any] | None, fixed: bool) -> bytes:
    columns = [] if lengths is None else [_array(lengths)]
    sizes = [len(column) for column in columns]
    columns.append(tokens.tobytes() if fixed else _array(tokens))
    if not fixed:
        sizes.append(len(columns[-1]))
    return np.array(sizes, "<u4").tobytes() + b"".join(columns)


def _array(values: npt.NDArray[Any]) -> bytes:
    code = 0 if len(values) < 1 << 8 else 1 if len(values) < 1 << 16 else 2
    return bytes([1 << 2 | code]) + len(values).to_bytes(1 << code, "little") + values.tobytes()


def finish(directory: Path, contents: Contents, written: list[ExportedFile]) -> list[ExportedFile]:
    shards = [
        {
            **_columns(contents),
            "raw_data": {"basename": file.name, "bytes": file.bytes, "hashes": {}},
            "samples": file.sequences,
            "zip_data": None,
        }
        for file in written
    ]
    return [write_json(directory / "index.json", {"version": 2, "shards": shards})]


FORMAT = Format(
    name="mds",
    summary="MosaicML Streaming's MDS: samples of tokens; of rows also seq_lengths",
    files="*.mds",
    documents=True,
    boundaries=True,
    several_lengths=True,
    part=part,
    finish=finish,
)
