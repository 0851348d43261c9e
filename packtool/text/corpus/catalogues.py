"""Recognise folders in which not every file counts, or none alone: tables with a catalogue, shards with an index."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

_IN_DUCKDB = "export its rows first: duckdb -c \"COPY (FROM {scan}('{folder}')) TO 'rows.parquet'\""
_IN_SPARK = 'export its rows first, in Spark: spark.read.format("{format}").load("{folder}").write.parquet("rows")'
_SAMPLES = (
    "if they are token ids, packtool import reads them; if they are texts, write them as JSON Lines first: python -c "
    '"import json; from {module} import StreamingDataset as D; '
    "[print(json.dumps(sample)) for sample in D({argument}'{folder}')]\" > samples.jsonl"
)


class Catalogue(NamedTuple):
    """A folder whose files are not read one by one.

    Attributes:
        what: it is.
        path: of the files that tell, below the folder.
        remedy: what to do first; with the place of the folder to be filled in.
        only: name of the one file that would be read; "" for any.
    """

    what: str
    path: str
    remedy: str
    only: str = ""


CATALOGUES = (
    Catalogue(
        "a Delta table, whose _delta_log says which rows count",
        r"_delta_log/.+",
        _IN_DUCKDB.replace("{scan}", "delta_scan"),
    ),
    Catalogue(
        "an Iceberg table, whose metadata says which rows count",
        r"metadata/[^/]*\.metadata\.json",
        _IN_DUCKDB.replace("{scan}", "iceberg_scan"),
    ),
    Catalogue(
        "a Hudi table, whose .hoodie says which rows count", r"\.hoodie/.+", _IN_SPARK.replace("{format}", "hudi")
    ),
    Catalogue(
        "a Paimon table, whose snapshots say which rows count",
        r"snapshot/snapshot-\d+",
        _IN_SPARK.replace("{format}", "paimon"),
    ),
    Catalogue(
        "samples in shards of MosaicML Streaming (MDS)",
        r"[^/]+\.mds(?:\.\w+)?",
        _SAMPLES.replace("{module}", "streaming").replace("{argument}", "batch_size=1, local="),
        "index.json",
    ),
    Catalogue(
        "samples in chunks of LitData",
        r"chunk-\d+-\d+(?:\.\w+)?\.bin",
        _SAMPLES.replace("{module}", "litdata").replace("{argument}", ""),
        "index.json",
    ),
)


def catalogues_in(names: Iterable[str]) -> dict[str, Catalogue]:
    """Return the folders of a listing that have a catalogue, each with it; "" is the folder that was listed.

    >>> list(catalogues_in(["a/b.parquet", "a/_delta_log/00.json", "c/d.jsonl"]))
    ['a']
    """
    every = "|".join(f"(?P<c{number}>{catalogue.path})" for number, catalogue in enumerate(CATALOGUES))
    pattern = re.compile(f"(?P<folder>(?:.*?/)?)(?:{every})")
    found: dict[str, Catalogue] = {}
    for name in names:
        match = pattern.fullmatch(name)
        if match is not None:
            number = int(str(match.lastgroup)[1:])
            found.setdefault(match["folder"].rstrip("/"), CATALOGUES[number])
    return found


def catalogue_above(file: Path) -> tuple[Path, Catalogue] | None:
    """Return the folder with a catalogue that a file lies in, and the catalogue; None if it lies in none."""
    beside = []
    if file.name == "index.json":
        beside = [entry.name for entry in file.absolute().parent.iterdir()]
    for folder in file.absolute().parents:
        for kept in ("_delta_log", ".hoodie", "metadata", "snapshot"):
            if (folder / kept).is_dir():
                beside += [f"{kept}/{entry.name}" for entry in (folder / kept).iterdir()]
        found = catalogues_in(beside)
        if found:
            return folder, found[""]
    return None
