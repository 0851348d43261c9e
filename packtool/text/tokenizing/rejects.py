"""Keep what was rejected: each block writes its own file, and the parent joins them with final line numbers."""

from __future__ import annotations

import base64
import codecs
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import IO

import msgspec
import xxhash

from packtool.formats.schema import InputEntry
from packtool.places.local import create_file
from packtool.support.decoding import from_json
from packtool.support.naming import naming
from packtool.text.corpus.records import Reject


class RejectedRecord(msgspec.Struct, omit_defaults=True, kw_only=True):
    """One line of `rejected.jsonl`."""

    file: str | int  # its name in the manifest (its number while blocks are at work)
    record: int = 0  # line or row in the file, from 1; absent when the whole file is meant
    code: str  # code of the fault
    reason: str  # what is wrong, in words
    raw: str | None = None  # the record as text; or
    raw_base64: str | None = None  # its bytes, where they are not UTF-8
    bytes: int = 0  # size of the record, where only its beginning is kept


class RejectLog:
    """The rejected records of a block, or of a store: a file made with the first one, hashed while written, durable.

    Args:
        path: of the file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: IO[bytes] | None = None
        self._hash = xxhash.xxh3_128()
        self._bytes = 0

    def add(self, file: int, reject: Reject, before: int) -> None:
        """Record a reject of file number `file`, with `before` records before its batch in the span."""
        record = before + reject.record if reject.record else 0
        fault = reject.fault
        entry = RejectedRecord(file=file, record=record, code=fault.code, reason=fault.what, bytes=reject.size)
        if reject.raw is not None:
            try:
                # An excerpt may end within a character: leave out what there is of it.
                entry.raw = codecs.getincrementaldecoder("utf-8")().decode(reject.raw, final=not reject.size)
            except UnicodeDecodeError:
                entry.raw_base64 = base64.b64encode(reject.raw).decode()
        self._write(entry)

    def join(self, blocks: Iterable[bytes], names: Sequence[str], before: Sequence[int]) -> None:
        """Append the rejects of a block, under the names of their files.

        Args:
            blocks: the contents of its file.
            names: of all files, by number.
            before: records of each file in the blocks before, from where this one numbers its own.
        """
        rest = b""
        for block in blocks:
            *lines, rest = (rest + block).split(b"\n")
            for line in lines:
                entry = from_json(line, RejectedRecord)
                number = int(entry.file)
                entry.file = names[number]
                if entry.record:
                    entry.record += before[number]
                self._write(entry)

    def _write(self, record: RejectedRecord) -> None:
        if self._file is None:
            self._file = os.fdopen(create_file(self._path), "wb")
        line = msgspec.json.encode(record) + b"\n"
        with naming(self._path):
            self._file.write(line)
        self._hash.update(line)
        self._bytes += len(line)

    def entry(self, name: str) -> InputEntry | None:
        """Describe the closed file, by the name that it is given; None if nothing was written."""
        return None if self._file is None else InputEntry(name, self._bytes, self._hash.hexdigest())

    def close(self) -> None:
        """Make the file durable."""
        if self._file is not None:
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()
