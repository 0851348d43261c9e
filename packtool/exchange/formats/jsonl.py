"""JSON Lines of token ids: an object with a list of ids in each line. Imported only."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from packtool.errors import DataError
from packtool.exchange.formats import tables
from packtool.exchange.formats.raw import READ_TOKENS
from packtool.exchange.model import Format, Found, ReadOptions


def read(path: Path, options: ReadOptions) -> Iterator[Found]:
    """The documents of a file, plain or gzip."""
    decode = msgspec.json.Decoder(dict[str, Any]).decode
    held: list[list[int]] = []
    tokens = 0
    try:
        size = path.stat().st_size
        with path.open("rb") as raw, gzip.open(raw) if path.suffix == ".gz" else raw as file:
            for number, line in enumerate(file, 1):
                if not line.strip():
                    continue
                ids = _ids(line, decode, options, f"{path}:{number}")
                held.append(ids)
                tokens += len(ids)
                if tokens >= READ_TOKENS:
                    yield _found(held, raw.tell() / size)
                    held, tokens = [], 0
    except (EOFError, gzip.BadGzipFile) as error:
        raise DataError(
            "damaged-input", f"not a whole gzip file ({error})", remedy="make it again", where=str(path)
        ) from None
    yield _found(held, 1.0)


def _ids(line: bytes, decode: Any, options: ReadOptions, where: str) -> list[int]:
    try:
        record = decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise DataError("bad-ids", f"not a JSON object ({error})", remedy="fix the line", where=where) from None
    ids = record[tables.column(list(record), options, where)]
    if not isinstance(ids, list) or not all(type(each) is int and 0 <= each < 1 << 63 for each in ids):
        raise DataError("bad-ids", "not a list of token ids", remedy="fix the line, or give --field", where=where)
    return ids


def _found(held: list[list[int]], share: float) -> Found:
    lengths = np.array([len(ids) for ids in held], np.int64)
    return Found(np.array([each for ids in held for each in ids], np.int64), lengths, share)


FORMAT = Format(name="jsonl", summary="JSON Lines with lists of ids; imported only", files="*.jsonl*", read=read)
