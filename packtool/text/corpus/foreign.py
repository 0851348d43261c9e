"""Recognise files that hold no text as packtool reads it, by their content, and say what to use first."""

from __future__ import annotations

import re

from packtool.text.faults import Fault


def not_read(what: str, remedy: str) -> Fault:
    """Return the fault of a file of a kind that is not read.

    Args:
        what: it is.
        remedy: what to do first.
    """
    return Fault("foreign-file", what, remedy)


_UNPACK = "unpack it first, and name its files"
_TEXT = "make text of it first, and give that"
_CONVERT = "convert it to Parquet or JSON Lines first"
_NO_TEXT = "leave it out with --exclude"
_NUMPY = "give token ids as a column of lists in Parquet, with --ids-field"
_OFFICE = not_read("a document of an office program", _TEXT)
_MODEL = not_read("the weights of a model", _NO_TEXT)
_IMAGE = not_read("an image", _NO_TEXT)
_SOUND = not_read("sound or video", _NO_TEXT)
_PROGRAM = not_read("a program", _NO_TEXT)
_LLMC = not_read("token ids of llm.c", "read them with `packtool import --format llmc`")
_ZIP = (
    (b"mimetypeapplication/epub", not_read("an EPUB book", _TEXT)),
    (b"mimetypeapplication/vnd.oasis", _OFFICE),
    (b"[Content_Types].xml", _OFFICE),
    (b"word/", _OFFICE),
    (b".npy", not_read("arrays of NumPy (npz)", _NUMPY)),
    (b"/data.pkl", not_read("a file of PyTorch", _CONVERT)),
)
"""What the first bytes of a zip archive say of it, by a name in them."""
_UTF16 = not_read("UTF-16 text; packtool reads UTF-8", "convert it: iconv -f utf-16 -t utf-8")
_UTF32 = not_read("UTF-32 text; packtool reads UTF-8", "convert it: iconv -f utf-32 -t utf-8")
_MARKED: tuple[tuple[bytes, Fault], ...] = (
    (b"\xff\xfe\0\0", _UTF32),
    (b"\0\0\xfe\xff", _UTF32),
    (b"\xff\xfe", _UTF16),
    (b"\xfe\xff", _UTF16),
    (b"WARC/", not_read("a WARC file of web pages", "extract its text first, as trafilatura and datatrove do")),
    (b"version https://git-lfs", not_read("a pointer of Git LFS, not the file itself", "fetch it with git lfs pull")),
    (b"/annex/objects/", not_read("a pointer of git-annex, not the file itself", "fetch it with git annex get")),
    (b"\x1e{", not_read("a sequence of JSON texts (RFC 7464)", "make lines of it first: `jq --seq -c .`")),
    (b"%PDF-", not_read("a PDF file", _TEXT)),
    (b"%!PS", not_read("a PostScript file", _TEXT)),
    (b"{\\rtf", not_read("an RTF document", _TEXT)),
)
"""First bytes that no text has, and what a file with them is."""
_BINARY: tuple[tuple[int, bytes, Fault], ...] = (
    (257, b"ustar", not_read("a tar archive", "unpack it first with tar -xf, and name its files")),
    (0, b"PK\3\4", not_read("a zip archive", "unpack it first with unzip, and name its files")),
    (0, b"PK\5\6", not_read("an empty zip archive", _NO_TEXT)),
    (0, b"7z\xbc\xaf\x27\x1c", not_read("a 7-Zip archive", _UNPACK)),
    (0, b"Rar!\x1a\7", not_read("a RAR archive", _UNPACK)),
    (0, b"\x1f\x9d", not_read("a file of compress (.Z)", "unpack it first with gzip -d")),
    (0, b"\x04\x22\x4d\x18", not_read("an LZ4 file", "unpack it first with lz4 -d, or compress it with zstd")),
    (0, b"\xff\6\0\0sNaPpY", not_read("a Snappy file", "unpack it first, or compress it with zstd")),
    (0, b"\x89LZO\0\r\n\x1a\n", not_read("an LZO file", "unpack it first with lzop -d")),
    (0, b"LZIP", not_read("an lzip file", "unpack it first with lzip -d")),
    (0, b"\x5d\0\0", not_read("an LZMA file of the old format", "unpack it first with xz -d")),
    (0, b"ORC", not_read("an ORC file", _CONVERT)),
    (0, b"Obj\1", not_read("an Avro file", _CONVERT)),
    (0, b"FEA1", not_read("a Feather file of version 1", _CONVERT)),
    (0, b"SEQ\6", not_read("a sequence file of Hadoop", _CONVERT)),
    (0, b"SQLite format 3\0", not_read("an SQLite database", _CONVERT)),
    (8, b"DUCK", not_read("a DuckDB database", _CONVERT)),
    (0, b"\x89HDF\r\n\x1a\n", not_read("an HDF5 file", _CONVERT)),
    (0, b"\x93NUMPY", not_read("an array of NumPy", _NUMPY)),
    (0, b"\x88\xd8\x34\1\1\0", _LLMC),
    (0, b"\xa1\xd9\x34\1\7\0", _LLMC),
    (0, b"MMIDIDX\0\0", not_read("an index of Megatron", "read the tokens beside it with packtool import")),
    (0, b"PACK\0\0\0", not_read("a pack of Git", _NO_TEXT)),
    (4, b"Bud1", not_read("a .DS_Store of a Mac", _NO_TEXT)),
    (0, b"GGUF", _MODEL),
    (0, b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", _OFFICE),
    (0, b"\x89PNG\r\n\x1a\n", _IMAGE),
    (0, b"\xff\xd8\xff", _IMAGE),
    (0, b"GIF8", _IMAGE),
    (0, b"II*\0", _IMAGE),
    (0, b"MM\0*", _IMAGE),
    (0, b"RIFF", not_read("an image or sound (RIFF)", _NO_TEXT)),
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
    (re.compile(rb"\x80[\x02-\x05]|\([dlt]p\d+\n"), not_read("a pickle of Python", _CONVERT)),
    (re.compile(rb'.{6}\0\0\s*\{\s*"', re.DOTALL), _MODEL),  # of safetensors
    (re.compile(rb".{4}\0{4}.{4}\n", re.DOTALL), not_read("a TFRecord file", _CONVERT)),
    (re.compile(rb".{2}\0\0[\x01-\x13][\w.$-]+\0", re.DOTALL), not_read("records of BSON, not of JSON", _CONVERT)),
)
"""What files begin with that have no fixed first bytes."""
_ZEROS = not_read(
    "binary data, with zero bytes",
    "if it is token ids, packtool import reads them; if it is text in UTF-16, convert it with iconv -f utf-16le "
    "-t utf-8; if it is other text, remove them with tr -d '\\0'",
)
BEGINS = re.compile(rb"""\s*\{\s*(?:\}|(?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')\s*:)""")
"""A line that begins like a record, whole or not; Python writes single quotes."""
_PACKED = (
    ("MessagePack", re.compile(rb"(?:[\x81-\x8f]|\xde..|\xdf.{4})([\xa1-\xbf])", re.DOTALL), 0xA0),
    ("CBOR", re.compile(rb"[\xa1-\xb7\xbf]([\x61-\x77])"), 0x60),
)
"""Notations with the beginning of a map and of its first name, whose length is this byte less that number."""
_ZSTD = b"\x28\xb5\x2f\xfd"
_PAGE_REMEDY = "download the raw file: on the hub, /resolve/ instead of /blob/"


def foreign(head: bytes, format: str, *, asked: bool) -> Fault | None:
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
        return not_read("a dump of MediaWiki", "extract the text first, for example with `WikiExtractor --json`")
    if text.startswith(b"<doc id=") and not asked:
        return not_read(
            "articles of WikiExtractor between tags <doc>", "run it again with `--json`, which writes records"
        )
    if text.startswith(b"<") and format not in ("text", "lines"):
        return not_read("a web page or XML, not the file itself", _PAGE_REMEDY)
    return _binary(head, format)


def _binary(head: bytes, format: str) -> Fault | None:
    """Recognise a file that is no text."""
    for offset, magic, kind in _BINARY:
        odd = min(magic) < ord("\t") or not magic.isascii()
        if head.startswith(magic, offset) and (odd or b"\0" in head):
            return _in_zip(head, kind) if magic == b"PK\3\4" else kind
    for shape, kind in _SHAPES:
        if shape.match(head):
            return kind
    packed = _packed(head)
    if packed is not None:
        return packed
    if format in ("text", "lines"):
        return _ZEROS if b"\0" in head else None
    # Records begin in ASCII, so in UTF-16 and UTF-32 one of their first four bytes is 0 (RFC 4627, 3). With a zero byte
    # further on, or with a line that begins as a record does, a record is damaged.
    if b"\0" in head[:4] and not any(map(BEGINS.match, head.split(b"\n"))):
        return _ZEROS
    return None


def _packed(head: bytes) -> Fault | None:
    """Recognise records of other notations than JSON: a map, whose first name is a short string."""
    for called, pattern, least in _PACKED:
        match = pattern.match(head)
        if match is not None:
            name = head[match.end() : match.end() + match[1][0] - least]
            if re.fullmatch(rb"[\w.$-]+", name):
                return not_read(f"records of {called}, not of JSON", _CONVERT)
    return None


def with_dictionary(raw: bytes) -> Fault | None:
    """Recognise a zstd file that needs a dictionary (RFC 8878, 3.1.1.1.1.6); None for any other.

    Args:
        raw: its first bytes, as they lie there.
    """
    if raw.startswith(_ZSTD) and raw[4:5] and raw[4] & 3:
        return not_read("compressed by zstd with a dictionary", "unpack it first with zstd -d -D DICTIONARY")
    return None


def _in_zip(head: bytes, other: Fault) -> Fault:
    for name, kind in _ZIP:
        if name in head:
            return kind
    return other
