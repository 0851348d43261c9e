"""Find the documents that a list names, each by its id or by its input file and line."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from packtool.choosing.documents import StoredDocuments
from packtool.errors import DataError
from packtool.planning.plan import I64

REMARK = "  # "
"""What separates the FILE:LINE of an entry of a list from a remark."""
_SHOWN = 100  # characters of an entry in a message


def file_and_line(text: str) -> tuple[str, int] | None:
    """Parse FILE:LINE; None for anything else.

    >>> file_and_line("web/a.jsonl:17"), file_and_line("web/a.jsonl")
    (('web/a.jsonl', 17), None)
    """
    file, _, line = text.rpartition(":")
    if not file or not line.isdecimal() or len(line) >= 20 or int(line) >= 1 << 63:
        return None
    return file, int(line)


def names_lines(listed: bytes) -> bool:
    """Return whether an entry of a list may be FILE:LINE; all others are ids."""
    return any(map(_without_remark, _entries(listed)))


def _without_remark(entry: str) -> tuple[str, int] | None:
    """Parse the FILE:LINE of an entry of a list."""
    return file_and_line(entry.partition(REMARK)[0])


def _entries(listed: bytes) -> dict[str, int]:
    """Return the entries of a list, each with the last line that has it."""
    lines = listed.decode("utf-8-sig", "replace").splitlines()
    entries = {line.strip(): number for number, line in enumerate(lines, 1)}
    entries.pop("", None)
    return entries


def listed_documents(documents: StoredDocuments, listed: bytes, where: str) -> list[I64]:
    """Find the documents of each store that a list names, each by its id or by FILE:LINE, with or without a remark.

    Args:
        listed: contents of the list.
        where: the list lies, for messages.

    Returns:
        For each store their numbers, ascending.

    Raises:
        DataError: it names a document that no store has.
    """
    lines = _entries(listed)
    by_id: list[I64] = []
    ids: set[str] = set()
    for store in documents.stores:
        numbers = store.with_ids(list(lines))
        by_id.append(numbers)
        if len(numbers):
            ids |= set(store.column(str(store.id_field)).take(numbers).to_pylist())
    wanted = _by_file({entry: line for entry, line in lines.items() if entry not in ids}, where)
    found: dict[str, set[int]] = {file: set() for file in wanted}
    by_line: list[list[I64]] = [[numbers] for numbers in by_id]
    for portion in documents.portions():
        if not wanted:
            break
        origins = portion.origins
        for number, entry in enumerate(portion.store.manifest.inputs):
            if entry.name in wanted:
                places = from_records(origins, number, wanted[entry.name])
                by_line[portion.number].append(portion.first + places)
                found[entry.name] |= set(origins["record"][places].tolist())
    for file, records in wanted.items():
        for record, line in records.items():
            if record not in found[file]:
                what = f"no store has a document {file}:{record}"
                remedy = "take it out of the list, or check the name: it is relative to the input of tokenize"
                raise DataError("bad-list", what, remedy=remedy, where=f"{where}:{line}")
    return [np.unique(np.concatenate(numbers)) for numbers in by_line]


def _by_file(entries: Mapping[str, int], where: str) -> dict[str, dict[int, int]]:
    """Parse the entries of a list that are FILE:LINE.

    Args:
        entries: by their text, the line of the list that has them.

    Returns:
        For each file, the line of the list that names a record, by the record's number.
    """
    wanted: dict[str, dict[int, int]] = {}
    for entry, line in entries.items():
        parsed = _without_remark(entry)
        if parsed is None:
            remedy = "name each document by its id, or by its input file and line, such as web/a.jsonl:17"
            shown = repr(entry) if len(entry) <= _SHOWN else f"{entry[:_SHOWN]!r}…"
            raise DataError("bad-list", f"{shown} is not a document", remedy=remedy, where=f"{where}:{line}")
        file, record = parsed
        wanted.setdefault(file, {}).setdefault(record, line)
    return wanted


def from_records(origins: npt.NDArray[Any], number: int, records: Collection[int]) -> I64:
    """Find the documents of a store that came from these records of an input, given by its number."""
    documents = np.flatnonzero(origins["file"] == number)
    found: I64 = documents[np.isin(origins["record"][documents], np.array(list(records), np.uint64))]
    return found
