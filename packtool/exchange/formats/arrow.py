"""A directory that `datasets.load_from_disk` maps into memory: Arrow streams, and two files of JSON that list them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
from xxhash import xxh3_64_hexdigest

from packtool.errors import DataError
from packtool.exchange.files import FileWriter, named_file, read_json, write_json
from packtool.exchange.formats import tables
from packtool.exchange.model import Contents, Part, ReadDocuments, ReadOptions, damaged
from packtool.formats.schema import ExportedFile
from packtool.text.corpus.arrow import ArrowFile
from packtool.text.corpus.records import in_words
from packtool.text.faults import Fault


def part(directory: Path, contents: Contents, part: Part) -> list[ExportedFile]:
    with FileWriter(directory / f"train-{part.number:05d}.arrow") as out:
        with pa.ipc.new_stream(out, tables.schema(contents)) as writer:
            counts = tables.write(writer.write_batch, contents, part)
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


def read(path: Path, options: ReadOptions) -> Iterator[ReadDocuments]:
    return tables.documents(_batches(path), options, path)


def _batches(path: Path) -> Iterator[pa.RecordBatch]:
    """Read the record batches of a file."""
    try:
        with pa.OSFile(str(path)) as file:
            yield from ArrowFile(file)
    except Fault as fault:
        raise damaged(path, fault.what) from None
    except tables.ERRORS as error:
        raise damaged(path, f"not a readable Arrow file ({in_words(error)})") from None


def inside(directory: Path) -> list[Path] | None:
    """List the files of a saved dataset that `state.json` names; other files beside them are ignored.

    `map` writes its results into the same directory, and saving anew with fewer files leaves the old ones there.
    """
    state = directory / "state.json"
    if not state.is_file():
        found = sorted(directory.glob("cache-*.arrow"))
        if found:
            what = f"holds {found[0].name}, which datasets made of other files, and no state.json"
            remedy = "name the files, or save the dataset with save_to_disk"
            raise DataError("ambiguous-input", what, remedy=remedy, where=str(directory))
        if (directory / "dataset_dict.json").is_file():
            what = "holds several splits, each in a directory of its own"
            raise DataError("ambiguous-input", what, remedy="name the directory of one", where=str(directory))
        return None
    known = read_json(state, _State)
    if known.indices:
        what = "chooses rows by a file of indices"
        remedy = "call flatten_indices, and save the dataset again"
        raise DataError("damaged-input", what, remedy=remedy, where=str(state))
    return [named_file(directory, file.filename) for file in known.files]


class _File(msgspec.Struct):
    filename: str


class _State(msgspec.Struct):
    """The parts of `state.json` that say where the rows are."""

    files: list[_File] = msgspec.field(name="_data_files")
    indices: list[_File] | None = msgspec.field(default=None, name="_indices_data_files")


FORMAT = tables.table_format(
    name="arrow",
    readers="Transformers Trainer, TRL, LLaMA-Factory",
    summary="a directory for `load_from_disk`, with the columns of `parquet`",
    files="*.arrow",
    part=part,
    finish=finish,
    read=read,
    inside=inside,
)
