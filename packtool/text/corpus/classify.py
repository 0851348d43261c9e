"""Tell the format of a file: as `--format` says, else by its suffix. Nothing is guessed."""

from __future__ import annotations

import io
import re
from codecs import BOM_UTF8
from contextlib import closing

from packtool.errors import DataError, PacktoolError, UsageError
from packtool.options.names import TEXT_FORMATS, any_of
from packtool.text.corpus.decompress import open_stream, sniff
from packtool.text.corpus.file_bytes import open_raw, read_up_to, state_of
from packtool.text.corpus.foreign import BINARY, PAGE, kind_of, not_read
from packtool.text.corpus.formats import FORMATS, by_suffix
from packtool.text.corpus.records import CorpusFile, Readable, shown
from packtool.text.corpus.text_format import TextFormat
from packtool.text.faults import Fault

HEAD = 1 << 14
"""Bytes that are looked at."""
_RECORDS = re.compile(rb'(?:[^\n]*\n)?\s*\[?\s*\{\s*"(?:[^"\\]|\\.)*"\s*:')
"""A text whose first or second line begins like a record, or an array of them: the first line may be damaged."""


def classify(name: str, location: str, format: str | None, *, stream: bool = False) -> CorpusFile:
    """Tell the format of a file, and look at its first bytes for what can't be read.

    Args:
        format: as `--format` says; None for what the suffix says.
        stream: it is a copy of standard input or of a pipe.

    Raises:
        DataError: it can't be read, is not a regular file, or of a kind that is not read.
        UsageError: nothing says its format.
    """
    try:
        with closing(open_raw(location)) as raw:
            size, modified, inode = state_of(raw)
            compression = sniff(read_up_to(raw, HEAD))
            raw.seek(0)
            head = _head(open_stream(raw, compression))
    except OSError as error:
        what = f"can't be read ({(error.strerror or str(error)).lower()})"
        raise DataError("unreadable-input", what, remedy="check it", where=shown(location)) from None
    if format is not None:
        found = FORMATS[format]
    else:
        found = _told(name, head, shown(name if stream else location), stream=stream)
    if found.told_by is not None:
        found = FORMATS[found.told_by(head)]
    fault = _fault(head, found, compression, asked=format is not None)
    return CorpusFile(shown(name), location, size, found.name, compression, modified, inode, fault)


def require_told(name: str, begun: bytes) -> None:
    """Require the first bytes of a stream to tell its format, before anything is made of it.

    Raises:
        DataError: it is of a kind that is not read.
        UsageError: nothing says its format.
    """
    _told(name, _head(open_stream(io.BytesIO(begun), sniff(begun))), shown(name), stream=True)


def _head(stream: Readable) -> bytes:
    """Return the first bytes of a stream; of a damaged one, those before the damage."""
    head = b""
    try:
        data = stream.read(HEAD)
        while data:
            head += data
            data = stream.read(HEAD - len(head))
    except Fault:
        pass  # reading will tell, and say what is lost
    return head


def _told(name: str, head: bytes, where: str, *, stream: bool) -> TextFormat:
    """Return the format that the first bytes tell, where no other file has them, else the one of the suffix.

    A stream without a suffix has the format that begins with its first character.

    Args:
        where: what messages call the file; see `classify` for errors.
    """
    for format in FORMATS.values():
        if format.magic is not None and format.magic.match(head):
            return format
    found = by_suffix(name)
    if found is not None:
        return found
    first = head.removeprefix(BOM_UTF8).lstrip()[:1]
    for format in FORMATS.values():
        if stream and format.begins and first in format.begins:  # as nothing is in an empty stream
            return format
    raise _unknown(head, where, stream=stream)


def _unknown(head: bytes, where: str, *, stream: bool) -> PacktoolError:
    """Return the error of a file of which nothing says the format."""
    kind = kind_of(head)
    if kind is not None:
        return kind.at(where)
    what = "its suffix says no format"
    if stream:
        what = "a stream without a suffix that does not begin with { or [, as JSON does"
    formats = any_of(TEXT_FORMATS)
    remedy = f"give --format: {formats}; it holds for all inputs, so files of another go to a store of their own"
    return UsageError("unknown-format", what, remedy=remedy, where=where)


def _fault(head: bytes, format: TextFormat, compression: str, *, asked: bool) -> Fault | None:
    """Return why a file can't be read, and what to do; None if no reason is known.

    Args:
        head: its first bytes, decompressed.
        asked: `--format` says its format: a text may begin as it likes, then.
    """
    if format.table and compression:
        return not_read(f"{format.name} inside {compression}", "unpack it first")
    if format.magic is not None and format.magic.match(head):
        return None
    if format.plain and asked and b"\0" not in head:
        return None
    if format.plain and _RECORDS.match(head.removeprefix(BOM_UTF8)):
        what = "records of JSON, and its suffix says that it is plain text"
        return not_read(what, "say which it is: --format=jsonl or --format=text")
    return kind_of(head) or _unlike(head, format)


def _unlike(head: bytes, format: TextFormat) -> Fault | None:
    """Return the fault of a file that begins as none of its format does; None for any other.

    Records begin in ASCII, so that in UTF-16 two of their first four bytes are 0; any other zero damages a record.
    """
    if not format.plain and head.lstrip().startswith(b"<"):
        return PAGE
    if format.plain and b"\0" in head:
        return BINARY
    if not format.plain and not format.table and head.count(b"\0", 0, 4) > 1:
        return BINARY
    return None
