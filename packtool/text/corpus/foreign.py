"""Recognise the few kinds of files that are often given in place of a text, where what to do first differs."""

from __future__ import annotations

from typing import NamedTuple

from packtool.text.faults import Fault


def not_read(what: str, remedy: str) -> Fault:
    """Return the fault of a file of a kind that is not read.

    Args:
        what: it is.
        remedy: what to do first.
    """
    return Fault("foreign-file", what, remedy)


class _Kind(NamedTuple):
    """A kind of files that are not read."""

    begins: tuple[bytes, ...]  # bytes of which one is enough
    fault: Fault
    offset: int = 0  # where they lie


_ARCHIVE = not_read(
    "an archive, as which office programs, NumPy and PyTorch write, too", "unpack it first, and name its texts"
)
_KINDS = (
    # The compressions that packtool unpacks are among them: what is left was compressed twice.
    _Kind((b"PK\3\4", b"PK\5\6", b"7z\xbc\xaf", b"Rar!\x1a", b"\x1f\x8b", b"\x1f\x9d", b"\x04\x22\x4d\x18"), _ARCHIVE),
    _Kind((b"ustar",), _ARCHIVE, offset=257),
    _Kind(
        (b"\xff\xfe", b"\xfe\xff", b"\0\0\xfe\xff"),
        not_read("UTF-16 or UTF-32 text; packtool reads UTF-8", "convert it: iconv -f utf-16 -t utf-8"),
    ),
    _Kind(
        (b"%PDF-", b"%!PS", b"{\\rtf", b"\xd0\xcf\x11\xe0"),
        not_read("a document of an office program, or for printing", "make text of it first, and give that"),
    ),
    _Kind(
        (b"version https://git-lfs", b"/annex/objects/"),
        not_read("a pointer of Git, not the file itself", "fetch it with git lfs pull, or git annex get"),
    ),
    _Kind(
        (b"WARC/",),
        not_read("a WARC file of web pages", "extract its text first, as trafilatura and datatrove do"),
    ),
    _Kind(
        (b"\x93NUMPY",),
        not_read("an array of NumPy", "give token ids as a column of lists in Parquet, with --ids-field"),
    ),
    _Kind(
        (b"\x88\xd8\x34\1", b"\xa1\xd9\x34\1", b"MMIDIDX\0"),
        not_read("token ids of llm.c or Megatron", "read them with packtool import"),
    ),
)
PAGE = not_read(
    "a web page or XML, not the file itself", "download the raw file: on the hub, /resolve/ instead of /blob/"
)
BINARY = not_read(
    "binary, not text", "convert UTF-16 with iconv -t utf-8, read token ids with packtool import, leave others out"
)


def kind_of(head: bytes) -> Fault | None:
    """Recognise a file that is not read by its first bytes, decompressed; None for any other.

    >>> kind_of(b"%PDF-1.7").remedy, kind_of(b"words")
    ('make text of it first, and give that', None)
    """
    for kind in _KINDS:
        if head.startswith(kind.begins, kind.offset):
            return kind.fault
    return None
