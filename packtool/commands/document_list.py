"""Locate the documents that a user lists, each by its id or by its input file and line."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from packtool.errors import DataError
from packtool.storage.token_store import TokenStore


def read_list(path: Path | str) -> bytes:
    """Read a list of documents.

    Raises:
        DataError: it can't be read.
    """
    try:
        return Path(path).read_bytes()
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise DataError(
            "missing-input", f"can't be read ({reason})", remedy="check the path", where=str(path)
        ) from None


def listed_documents(
    stores: Sequence[TokenStore], origins: Sequence[npt.NDArray[Any]], listed: bytes, where: str
) -> list[npt.NDArray[np.bool_]]:
    """Mark the documents that a list names, each by its id or by FILE:RECORD.

    Args:
        origins: of the documents of each store, as `TokenStore.origins` has them.
        listed: contents of the list.
        where: it lies, for messages.

    Raises:
        DataError: it names what no store has.
    """
    out = [np.zeros(store.documents, np.bool_) for store in stores]
    wanted: dict[str, list[tuple[int, int]]] = {}
    entries = {line.strip(): n for n, line in enumerate(listed.decode("utf-8", "replace").splitlines(), 1)}
    entries.pop("", None)
    by_id = _with_ids(stores, list(entries), out)
    for entry, line in entries.items():
        name, _, record = entry.rpartition(":")
        if entry in by_id:
            continue
        if not name or not record.isdecimal() or int(record) >= 1 << 63:
            remedy = "name each document by its id, or by its input file and line, such as web/a.jsonl:17"
            raise DataError("bad-list", f"{entry!r} is not a document", remedy=remedy, where=f"{where}:{line}")
        wanted.setdefault(name, []).append((int(record), line))
    stored: dict[str, set[int]] = {name: set() for name in wanted}
    for store, origin, mask in zip(stores, origins, out, strict=True):
        for number, entry_of in enumerate(store.manifest.inputs):
            if entry_of.name in wanted:
                here = np.flatnonzero(origin["file"] == number)
                records = origin["record"][here]
                hit = np.isin(records, np.array([record for record, _ in wanted[entry_of.name]], np.uint64))
                mask[here[hit]] = True
                stored[entry_of.name] |= set(records[hit].tolist())
    for file, records_of in wanted.items():
        for number, line in records_of:
            if number not in stored[file]:
                what = f"no store has a document {file}:{number}"
                remedy = "take it out of the list, or check the name: it is relative to the input of tokenize"
                raise DataError("bad-list", what, remedy=remedy, where=f"{where}:{line}")
    return out


def _with_ids(stores: Sequence[TokenStore], entries: Sequence[str], out: Sequence[npt.NDArray[np.bool_]]) -> set[str]:
    """Mark the documents with these ids; return the entries that are ids."""
    known: set[str] = set()
    for store, mask in zip(stores, out, strict=True):
        if store.id_field is not None:
            documents = store.with_ids(entries)
            mask[documents] = True
            known |= set(store.column(store.id_field).take(documents).to_pylist())
    return known
