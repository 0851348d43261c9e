"""A directory that `datasets.load_from_disk` maps into memory: Arrow streams, and two files of JSON that list them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from xxhash import xxh3_64_hexdigest

from packtool.exchange.columns import columns_to_read
from packtool.exchange.files import FileWriter, write_json
from packtool.exchange.formats import tables
from packtool.exchange.model import Contents, Format, Found, Part, ReadOptions, damaged
from packtool.formats.schema import ExportedFile

_OPTIONS = pa.ipc.IpcReadOptions(use_threads=False)


def part(directory: Path, contents: Contents, part: Part) -> list[ExportedFile]:
    with FileWriter(directory / f"train-{part.number:05d}.arrow") as out:
        with pa.ipc.new_stream(out, tables.schema(contents)) as writer:
            counts = tables.write(writer, contents, part)
        return [out.finish(*counts)]


def finish(directory: Path, contents: Contents, written: list[ExportedFile]) -> list[ExportedFile]:
    """Write the names of the files, and the columns, which `datasets.load_from_disk` needs."""
    column = {"feature": {"dtype": "int32", "_type": "Value"}, "_type": "Sequence"}
    about = {"features": dict.fromkeys(tables.schema(contents).names, column)}
    state: dict[str, Any] = {
        "_data_files": [{"filename": file.name} for file in written],
        "_fingerprint": xxh3_64_hexdigest("".join(file.xxh3_128 for file in written).encode()),
        "_format_columns": None,
        "_format_kwargs": {},
        "_format_type": None,
        "_output_all_columns": False,
        "_split": "train",
    }
    return [write_json(directory / "dataset_info.json", about), write_json(directory / "state.json", state)]


def read(path: Path, options: ReadOptions) -> Iterator[Found]:
    try:
        with pa.OSFile(str(path)) as file:
            before = 0
            for batch in _batches(file):
                columns = columns_to_read(batch.schema.names, options, str(path))
                yield tables.found(batch, before, columns, str(path))
                before += batch.num_rows
    except (pa.ArrowInvalid, OSError) as error:
        raise damaged(path, f"not a readable Arrow file ({error})") from None


def says_loss(path: Path, options: ReadOptions) -> bool:
    try:
        with pa.OSFile(str(path)) as file:
            for batch in _batches(file):
                return len(columns_to_read(batch.schema.names, options, str(path))) > 1
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
    part=part,
    finish=finish,
    read=read,
    says_loss=says_loss,
)
