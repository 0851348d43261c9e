"""JSON Lines of token ids: an object with a list of ids in each line. Imported only."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from packtool.errors import DataError
from packtool.exchange.columns import bad_mask, columns_to_read, trained
from packtool.exchange.formats.raw import READ_TOKENS
from packtool.exchange.model import Format, Found, ReadOptions, damaged

_DECODER = msgspec.json.Decoder(dict[str, Any])


def read(path: Path, options: ReadOptions) -> Iterator[Found]:
    """Read the documents of a file, plain or gzip."""
    held: list[_Document] = []
    first: _Document | None = None
    tokens = 0
    try:
        with path.open("rb") as raw, gzip.open(raw) if path.suffix == ".gz" else raw as file:
            for number, line in enumerate(file, 1):
                if not line.strip():
                    continue
                document = _document(line, options, first, f"{path}:{number}")
                first = first or document
                held.append(document)
                tokens += len(document.ids)
                if tokens >= READ_TOKENS:
                    yield _found(held)
                    held, tokens = [], 0
    except (EOFError, gzip.BadGzipFile) as error:
        raise damaged(path, f"not a whole gzip file ({error})") from None
    yield _found(held)


def says_loss(path: Path, options: ReadOptions) -> bool:
    """Return whether the first record says which tokens train; all others must agree with it."""
    try:
        with path.open("rb") as raw, gzip.open(raw) if path.suffix == ".gz" else raw as file:
            first = next((line for line in file if line.strip()), None)
            return first is not None and bool(_document(first, options, None, str(path)).masks)
    except (DataError, EOFError, gzip.BadGzipFile):
        return False  # reading it says what is wrong


class _Document(NamedTuple):
    """The ids of a record, the names of the columns that say which of them train, and whether each does."""

    ids: list[int]
    masks: list[str]
    loss: npt.NDArray[np.uint8] | None


def _document(line: bytes, options: ReadOptions, first: _Document | None, where: str) -> _Document:
    try:
        record = _DECODER.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise DataError("bad-ids", f"not a JSON object ({error})", remedy="fix the line", where=where) from None
    name, *names = columns_to_read(record, options, where)
    ids = record[name]
    if not isinstance(ids, list) or not all(type(number) is int and 0 <= number < 1 << 63 for number in ids):
        raise DataError("bad-ids", "not a list of token ids", remedy="fix the line, or give --field", where=where)
    if first is not None and names != first.masks:
        here, there = (", ".join(mask_names) or "nothing" for mask_names in (names, first.masks))
        raise bad_mask(f"{here} says which tokens train, but {there} in the first record", where)
    masks = {}
    for mask in names:
        values = record[mask]
        if not isinstance(values, list) or len(values) != len(ids):
            raise bad_mask(f"{mask} is not a list of {len(ids)} values, one for each id", where)
        if not all(isinstance(value, int | float) for value in values):
            raise bad_mask(f"{mask} has values that are not numbers", where)
        masks[mask] = np.array(values)
    return _Document(ids, names, trained(np.array(ids, np.int64), masks, where) if masks else None)


def _found(held: list[_Document]) -> Found:
    lengths = np.array([len(document.ids) for document in held], np.int64)
    known = [document.loss for document in held if document.loss is not None]
    ids = np.array([number for document in held for number in document.ids], np.int64)
    return Found(ids, lengths, np.concatenate(known) if known else None)


FORMAT = Format(
    name="jsonl",
    summary="JSON Lines with lists of ids; imported only",
    files="*.jsonl*",
    read=read,
    says_loss=says_loss,
)
