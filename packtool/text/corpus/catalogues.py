"""Recognise tables whose catalogue says which rows of their files count: read alone, they also give deleted rows."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

_CATALOGUES = (
    r"_delta_log/.+",
    r"metadata/(?:v\d+|\d{5}-[\w-]+)(?:\.gz)?\.metadata\.json",
    r"\.hoodie/.+",
    r"snapshot/snapshot-\d+",
)
"""Files of the catalogues of Delta, Iceberg, Hudi and Paimon."""
_INSIDE = re.compile(f"(?P<folder>(?:.*?/)?)(?:{'|'.join(_CATALOGUES)})")


def is_catalogue(name: str) -> bool:
    """Return whether a file is one of a catalogue, by its path.

    >>> is_catalogue("a/metadata/v1.metadata.json"), is_catalogue("a/metadata/licences.json")
    (True, False)
    """
    return _INSIDE.fullmatch(name) is not None


def tables_in(names: Iterable[str]) -> list[str]:
    """Return the folders of a listing that are such tables; "" is the folder that was listed.

    >>> tables_in(["a/b.parquet", "a/_delta_log/00.json", "c/d.jsonl"])
    ['a']
    """
    found = filter(None, map(_INSIDE.fullmatch, names))
    return list(dict.fromkeys(match["folder"].rstrip("/") for match in found))


def table_above(locations: Iterable[str]) -> Path | None:
    """Return the table that one of these local files lies in; None if none does."""
    above: set[Path] = set()
    for location in locations:
        above.update(Path(location).absolute().parents)
    for folder in sorted(above):
        for kept in ("_delta_log", "metadata", ".hoodie", "snapshot"):
            inside = folder / kept
            if inside.is_dir() and tables_in(f"{kept}/{entry.name}" for entry in inside.iterdir()):
                return folder
    return None
