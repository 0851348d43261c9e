"""A directory that `datasets.load_from_disk` maps into memory: Arrow streams, and two files of JSON that list them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
from xxhash import xxh3_64_hexdigest

from packtool.errors import DataError
from packtool.exchange.files import Place, Written
from packtool.exchange.formats import tables
from packtool.exchange.model import Contents, Format, Found, Part, ReadOptions

_OPTIONS = pa.ipc.IpcReadOptions(use_threads=False)


def part(place: Place, contents: Contents, part: Part) -> list[Written]:
    with place.create(f"train-{part.number:05d}.arrow") as out:
        with pa.ipc.new_stream(out, tables.schema(contents)) as writer:
            counts = tables.write(writer, contents, part)
        return [out.finish(*counts)]


def finish(place: Place, contents: Contents, written: list[list[Written]]) -> list[Written]:
    """Write what `datasets.load_from_disk` needs beside the files: their names, and the columns."""
    files = [file for each in written for file in each]
    column = {"feature": {"dtype": "int32", "_type": "Value"}, "_type": "Sequence"}
    about = {"features": dict.fromkeys(tables.schema(contents).names, column)}
    state: dict[str, Any] = {
        "_data_files": [{"filename": file.name} for file in files],
        "_fingerprint": xxh3_64_hexdigest("".join(file.xxh3_128 for file in files).encode()),
        "_format_columns": None,
        "_format_kwargs": {},
        "_format_type": None,
        "_output_all_columns": False,
        "_split": "train",
    }
    done = []
    for name, held in (("dataset_info.json", about), ("state.json", state)):
        with place.create(name) as out:
            out.write(msgspec.json.encode(held))
            done.append(out.finish())
    return done


def read(path: Path, options: ReadOptions) -> Iterator[Found]:
    try:
        with pa.OSFile(str(path)) as file:
            before, size = 0, path.stat().st_size
            for batch in _batches(file):
                columns = tables.read_columns(batch.schema.names, options, str(path))
                some = tables.found(batch.select(columns), before, columns[0], str(path))
                yield replace(some, share=file.tell() / size)
                before += batch.num_rows
    except (pa.ArrowInvalid, OSError) as error:
        raise DataError(
            "damaged-input", f"not a readable Arrow file ({error})", remedy="make it again", where=str(path)
        ) from None


def says_loss(path: Path, options: ReadOptions) -> bool:
    try:
        with pa.OSFile(str(path)) as file:
            for batch in _batches(file):
                return len(tables.read_columns(batch.schema.names, options, str(path))) > 1
    except (pa.ArrowInvalid, OSError):
        pass  # reading it says what is wrong
    return False


def _batches(file: pa.OSFile) -> Iterator[pa.RecordBatch]:
    """Record batches of the stream format, or of the file format."""
    magic = file.read(6)
    file.seek(0)
    if magic == b"ARROW1":
        reader = pa.ipc.open_file(file, options=_OPTIONS)
        yield from (reader.get_batch(number) for number in range(reader.num_record_batches))
    else:
        yield from pa.ipc.open_stream(file, options=_OPTIONS)


FORMAT = Format(
    name="arrow",
    summary="what datasets saves to disk, mapped into memory: the columns of parquet",
    files="*.arrow",
    documents=True,
    boundaries=True,
    labels=True,
    loss=True,
    several_lengths=True,
    bytes_per_token=lambda contents: 4.0 * tables.columns_of_tokens(contents),
    part=part,
    finish=finish,
    read=read,
    says_loss=says_loss,
)
