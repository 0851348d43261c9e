"""Recognise folders in which not every file counts, or none alone: tables with a catalogue, shards with an index."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

_DUCKDB = "export its rows first: duckdb -c \"COPY (FROM {kind}_scan('{folder}')) TO 'rows.parquet'\""
_SPARK = 'export its rows first, in Spark: spark.read.format("{kind}").load("{folder}").write.parquet("rows")'
_SAMPLES = (
    "if they are token ids, packtool import reads them; if they are texts, write them as JSON Lines first: python -c "
    '"import json; from {kind} import StreamingDataset as D; '
    "[print(json.dumps(sample)) for sample in D('{folder}')]\" > samples.jsonl"
)
_OF_MDS = _SAMPLES.replace("D(", "D(batch_size=1, local=")


class Catalogue(NamedTuple):
    """A folder whose files are not read one by one."""

    what: str  # it is
    path: str  # path of the files that tell, below the folder
    kind: str  # the name of it, or of the library that reads it
    how: str  # to export it first; with the place of the folder, and the kind, to be filled in
    only: str = ""  # name of the one file that would be read; "" for any

    def remedy(self, folder: str) -> str:
        """Return what to do first."""
        return self.how.format(kind=self.kind, folder=folder)


CATALOGUES = (
    Catalogue("a Delta table, whose _delta_log says which rows count", r"_delta_log/.+", "delta", _DUCKDB),
    Catalogue(
        "an Iceberg table, whose metadata says which rows count", r"metadata/[^/]*\.metadata\.json", "iceberg", _DUCKDB
    ),
    Catalogue("a Hudi table, whose .hoodie says which rows count", r"\.hoodie/.+", "hudi", _SPARK),
    Catalogue("a Paimon table, whose snapshots say which rows count", r"snapshot/snapshot-\d+", "paimon", _SPARK),
    Catalogue(
        "samples in shards of MosaicML Streaming (MDS)", r"[^/]+\.mds(?:\.\w+)?", "streaming", _OF_MDS, "index.json"
    ),
    Catalogue("samples in chunks of LitData", r"chunk-\d+-\d+(?:\.\w+)?\.bin", "litdata", _SAMPLES, "index.json"),
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
