"""Recognise files that hold no text as packtool reads it, by their content, and say what to use first."""

from __future__ import annotations

import re
from typing import NamedTuple


class Foreign(NamedTuple):
    """A kind of file that is not read.

    Attributes:
        what: it is.
        remedy: what to do first.
    """

    what: str
    remedy: str


_UNPACK = "unpack it first, and name its files"
_TEXT = "make text of it first, and give that"
_CONVERT = "convert it to Parquet or JSON Lines first"
_NO_TEXT = "leave it out with --exclude"
_OFFICE = Foreign("a document of an office program", _TEXT)
_MODEL = Foreign("the weights of a model", _NO_TEXT)
_IMAGE = Foreign("an image", _NO_TEXT)
_SOUND = Foreign("sound or video", _NO_TEXT)
_PROGRAM = Foreign("a program", _NO_TEXT)
_LLMC = Foreign("token ids of llm.c", "read them with packtool import --format llmc")
_ZIP = (
    (b"mimetypeapplication/epub", Foreign("an EPUB book", _TEXT)),
    (b"mimetypeapplication/vnd.oasis", _OFFICE),
    (b"[Content_Types].xml", _OFFICE),
    (b"word/", _OFFICE),
    (b".npy", Foreign("arrays of NumPy (npz)", "give token ids as a column of lists in Parquet, with --ids-field")),
    (b"/data.pkl", Foreign("a file of PyTorch", _CONVERT)),
)
"""What the first bytes of a zip archive say of it, by a name in them."""
_UTF16 = Foreign("UTF-16 text; packtool reads UTF-8", "convert it: iconv -f utf-16 -t utf-8")
_UTF32 = Foreign("UTF-32 text; packtool reads UTF-8", "convert it: iconv -f utf-32 -t utf-8")
_MARKED: tuple[tuple[bytes, Foreign], ...] = (
    (b"\xff\xfe\0\0", _UTF32),
    (b"\0\0\xfe\xff", _UTF32),
    (b"\xff\xfe", _UTF16),
    (b"\xfe\xff", _UTF16),
    (b"WARC/", Foreign("a WARC file of web pages", "extract its text first, as trafilatura and datatrove do")),
    (b"version https://git-lfs", Foreign("a pointer of Git LFS, not the file itself", "fetch it with git lfs pull")),
    (b"/annex/objects/", Foreign("a pointer of git-annex, not the file itself", "fetch it with git annex get")),
    (b"\x1e{", Foreign("a sequence of JSON texts (RFC 7464)", "make lines of it first: jq --seq -c .")),
    (b"%PDF-", Foreign("a PDF file", _TEXT)),
    (b"%!PS", Foreign("a PostScript file", _TEXT)),
    (b"{\\rtf", Foreign("an RTF document", _TEXT)),
)
"""First bytes that no text has, and what a file with them is."""
_BINARY: tuple[tuple[int, bytes, Foreign], ...] = (
    (257, b"ustar", Foreign("a tar archive", "unpack it first with tar -xf, and name its files")),
    (0, b"PK\3\4", Foreign("a zip archive", "unpack it first with unzip, and name its files")),
    (0, b"PK\5\6", Foreign("an empty zip archive", _NO_TEXT)),
    (0, b"7z\xbc\xaf\x27\x1c", Foreign("a 7-Zip archive", _UNPACK)),
    (0, b"Rar!\x1a\7", Foreign("a RAR archive", _UNPACK)),
    (0, b"\x1f\x9d", Foreign("a file of compress (.Z)", "unpack it first with gzip -d")),
    (0, b"\x04\x22\x4d\x18", Foreign("an LZ4 file", "unpack it first with lz4 -d, or compress it with zstd")),
    (0, b"\xff\6\0\0sNaPpY", Foreign("a Snappy file", "unpack it first, or compress it with zstd")),
    (0, b"\x89LZO\0\r\n\x1a\n", Foreign("an LZO file", "unpack it first with lzop -d")),
    (0, b"LZIP", Foreign("an lzip file", "unpack it first with lzip -d")),
    (0, b"\x5d\0\0", Foreign("an LZMA file of the old format", "unpack it first with xz -d")),
    (0, b"ORC", Foreign("an ORC file", _CONVERT)),
    (0, b"Obj\1", Foreign("an Avro file", _CONVERT)),
    (0, b"FEA1", Foreign("a Feather file of version 1", _CONVERT)),
    (0, b"SEQ\6", Foreign("a sequence file of Hadoop", _CONVERT)),
    (0, b"SQLite format 3\0", Foreign("an SQLite database", _CONVERT)),
    (8, b"DUCK", Foreign("a DuckDB database", _CONVERT)),
    (0, b"\x89HDF\r\n\x1a\n", Foreign("an HDF5 file", _CONVERT)),
    (0, b"\x93NUMPY", Foreign("an array of NumPy", "give token ids as a column of lists in Parquet, with --ids-field")),
    (0, b"\x88\xd8\x34\1\1\0", _LLMC),
    (0, b"\xa1\xd9\x34\1\7\0", _LLMC),
    (0, b"MMIDIDX\0\0", Foreign("an index of Megatron", "read the tokens beside it with packtool import")),
    (0, b"PACK\0\0\0", Foreign("a pack of Git", _NO_TEXT)),
    (4, b"Bud1", Foreign("a .DS_Store of a Mac", _NO_TEXT)),
    (0, b"GGUF", _MODEL),
    (0, b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", _OFFICE),
    (0, b"\x89PNG\r\n\x1a\n", _IMAGE),
    (0, b"\xff\xd8\xff", _IMAGE),
    (0, b"GIF8", _IMAGE),
    (0, b"II*\0", _IMAGE),
    (0, b"MM\0*", _IMAGE),
    (0, b"RIFF", Foreign("an image or sound (RIFF)", _NO_TEXT)),
    (4, b"ftyp", _SOUND),
    (0, b"OggS", _SOUND),
    (0, b"fLaC", _SOUND),
    (0, b"ID3", _SOUND),
    (0, b"\x1aE\xdf\xa3", _SOUND),
    (0, b"\x7fELF", _PROGRAM),
    (0, b"MZ\x90\0", _PROGRAM),
    (0, b"\xcf\xfa\xed\xfe", _PROGRAM),
    (0, b"\0asm", _PROGRAM),
)
"""Offset, bytes there, and what a file with them is that has a zero byte, too: text may begin with ORC or RIFF."""
_SHAPES = (
    (re.compile(rb"\x80[\x02-\x05]|\([dlt]p\d+\n"), Foreign("a pickle of Python", _CONVERT)),
    (re.compile(rb'.{6}\0\0\s*\{\s*"', re.DOTALL), _MODEL),  # of safetensors
    (re.compile(rb".{4}\0{4}.{4}\n", re.DOTALL), Foreign("a TFRecord file", _CONVERT)),
)
"""What files begin with that have no fixed first bytes."""
_ZEROS = Foreign(
    "binary data, with zero bytes",
    "if it is token ids, packtool import reads them; if it is text in UTF-16, convert it with iconv -f utf-16le "
    "-t utf-8; if it is other text, remove them with tr -d '\\0'",
)
_PAGE_REMEDY = "download the raw file: on the hub, /resolve/ instead of /blob/"


def foreign(head: bytes, format: str, *, asked: bool) -> Foreign | None:
    """Recognise a file that is not read; None for any other.

    Args:
        head: its first bytes, decompressed.
        format: what it seems to be otherwise.
        asked: the user says that it has this format: XML may be a text, then.

    >>> foreign(b"%PDF-1.7", "text", asked=False).what, foreign(b"words", "text", asked=False)
    ('a PDF file', None)
    """
    text = head.lstrip()
    marked = [kind for magic, kind in _MARKED if head.startswith(magic)]
    if marked:
        return marked[0]
    if text.startswith(b"<mediawiki") and not asked:
        return Foreign("a dump of MediaWiki", "extract the text first, for example with WikiExtractor")
    if text.startswith(b"<") and format not in ("text", "lines"):
        return Foreign("a web page or XML, not the file itself", _PAGE_REMEDY)
    return _binary(head, format)


def _binary(head: bytes, format: str) -> Foreign | None:
    """Recognise a file that is no text."""
    for offset, magic, kind in _BINARY:
        odd = min(magic) < ord("\t") or not magic.isascii()
        if head.startswith(magic, offset) and (odd or b"\0" in head):
            return _in_zip(head, kind) if magic == b"PK\3\4" else kind
    for shape, kind in _SHAPES:
        if shape.match(head):
            return kind
    # Records begin in ASCII, so in UTF-16 and UTF-32 one of their first four bytes is 0 (RFC 4627, 3). With a zero byte
    # further on, a record is damaged.
    if format not in ("text", "lines"):
        head = head[:4]
    return _ZEROS if b"\0" in head else None


def _in_zip(head: bytes, other: Foreign) -> Foreign:
    for name, kind in _ZIP:
        if name in head:
            return kind
    return other
