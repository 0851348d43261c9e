"""Stores and datasets that tests read, each made once."""

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import packtool
from tests.stores import write_store

Documents = Sequence[int] | Sequence[dict[str, Any]]
"""Lengths of documents, EOS included, or records."""


def drawn_lengths(documents: int, longest: int, seed: int = 0, shortest: int = 2) -> list[int]:
    """Return random lengths of documents."""
    drawn: list[int] = np.random.default_rng(seed).integers(shortest, longest + 1, documents).tolist()
    return drawn


def write_records(file: Path, records: Sequence[dict[str, Any]]) -> Path:
    """Write records as JSONL."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return file


class Make:
    """Makes directories with stores and what is packed from them, each once.

    Args:
        top: where they are made.
    """

    def __init__(self, top: Path) -> None:
        self._top = top
        self._made: dict[str, Path] = {}

    def __call__(
        self,
        documents: Documents | Mapping[str, Documents],
        stored: dict[str, Any] | None = None,
        *,
        at: Path | None = None,
        **packed: dict[str, Any],
    ) -> Path:
        """Return a directory with stores and datasets, which no test may change, or a copy that it may.

        Args:
            documents: those of `store`; or of several stores, by name. Records are tokenized from `NAME.jsonl`.
            stored: options of `write_store`, or of `tokenize`.
            at: where to copy the directory.
            packed: the name of each dataset and the options of `pack`, which takes all stores.
        """
        stores = documents if isinstance(documents, Mapping) else {"store": documents}
        asked = repr((stores, stored, packed))
        if asked not in self._made:
            place = self._top / str(len(self._made))
            paths = [_store(place / name, each, stored or {}) for name, each in stores.items()]
            for name, options in packed.items():
                packtool.pack(paths, place / name, **options)
            self._made[asked] = place
        if at is None:
            return self._made[asked]
        shutil.copytree(self._made[asked], at, dirs_exist_ok=True)
        return at


def _store(path: Path, documents: Documents, options: dict[str, Any]) -> Path:
    """Make a store of documents of some lengths, or of records."""
    lengths = [each for each in documents if not isinstance(each, dict)]
    records = [each for each in documents if isinstance(each, dict)]
    if lengths:
        return write_store(path, lengths, **options)
    file = write_records(path.with_name(f"{path.name}.jsonl"), records)
    packtool.tokenize(file, path, **{"workers": 1, **options})
    return path
