"""Classify a file by its name and its first bytes."""

from __future__ import annotations

import csv
import io
import json
import re
from codecs import BOM_UTF8
from collections.abc import Iterable
from contextlib import closing
from pathlib import PurePosixPath
from typing import Any

from packtool.errors import DataError
from packtool.text.conversations.turns import has_sender, holds_turns
from packtool.text.corpus.decompress import SUFFIXES, open_stream, sniff
from packtool.text.corpus.file_bytes import open_raw, read_up_to, state_of
from packtool.text.corpus.foreign import BEGINS, foreign, not_read, with_dictionary
from packtool.text.corpus.records import CorpusFile, Readable, shown
from packtool.text.faults import Fault

_PARQUET_MAGIC = b"PAR1"
_ARROW_MAGIC = b"ARROW1\0\0"
_ARROW_STREAM = re.compile(rb"\xff\xff\xff\xff.{3}\0(?:\x10|\x0c|\x14)\0\0\0", re.DOTALL)
"""A stream begins with the length of its schema, and that with where its table of fields is."""
_BY_SUFFIX = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".parquet": "parquet",
    ".arrow": "arrow",
    ".txt": "text",
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
}
_SURE = ("jsonl", "parquet", "arrow")
"""Formats for which the suffix is enough."""
_METADATA = {"dataset_info.json", "dataset_infos.json", "dataset_dict.json", "state.json"}
"""JSON files that other tools put next to data."""
_HEAD, _MOST = 1 << 14, 1 << 22
_LINES = 10
"""Where content tells the format, more than `_HEAD` is read until so many lines are there: one may be damaged."""
_JSON = re.compile(rb"\s*(?:\[|\{(?:[^\n]*[{\[,])?[ \t\r]*\n\s*[\"}\]])")
"""An array, or an object over several lines: the first ends with a comma or bracket, the second begins with a name, or
ends it."""
_RECORDS = re.compile(rb'\s*\[\s*\{\s*"(?:[^"\\]|\\.)*"\s*:')
_OPENS = re.compile(rb"\s*\[\s*(?=[^\s\]])")
"""An array that is not empty, up to its first element."""
_LISTS = re.compile(rb"\s*\[\s*\[\s*\{")
_MESSAGE = re.compile(rb"\s*\[\s*\{\s*\"(?:role|content|from|value)\"\s*:\s*\"")


_SAY = "say what it is: --format=jsonl, lines or text"


def suffix_format(name: str) -> str | None:
    """Return the format that a name's suffix tells, or None.

    >>> suffix_format("a/b.jsonl.gz"), suffix_format("README.md"), suffix_format("dataset_info.json")
    ('jsonl', None, None)
    """
    return None if PurePosixPath(name).name in _METADATA else _BY_SUFFIX.get(_suffix(name))


def taken_for(files: Iterable[CorpusFile]) -> dict[str, list[str]]:
    """Return the names of the files whose suffix does not say what they were taken for, by that.

    >>> taken_for([CorpusFile("a.jsonl", "a.jsonl", 9, "jsonl"), CorpusFile("b.log", "b.log", 9, "jsonl")])
    {'jsonl': ['b.log']}
    """
    names: dict[str, list[str]] = {}
    for file in files:
        told = _by_name(file.name)
        if told != file.format and (told, file.format) != ("jsonl", "json"):
            names.setdefault(file.format, []).append(file.name)
    return names


def _suffix(name: str) -> str:
    """Return the last suffix that does not name a compression."""
    path = PurePosixPath(name)
    while path.suffix.lower() in SUFFIXES:
        path = path.with_suffix("")
    return path.suffix.lower()


def classify(name: str, location: str, format: str | None) -> CorpusFile:
    """Look at a file's first bytes.

    Raises:
        DataError: it can't be read, or is not a regular file.
    """
    try:
        with closing(open_raw(location)) as raw:
            size, modified, inode = state_of(raw)
            packed = read_up_to(raw, _HEAD)
            compression = sniff(packed)
            raw.seek(0)
            lines = _LINES
            if format or _by_name(name) in _SURE:
                lines = 0
            head, whole = _head(open_stream(raw, compression), lines)
    except OSError as error:
        what = f"can't be read ({(error.strerror or str(error)).lower()})"
        raise DataError("unreadable-input", what, remedy="check it", where=shown(location)) from None
    kind = format or format_of(name, head, whole=whole)
    if kind == "jsonl" and is_json(head):
        kind = "json"
    fault = with_dictionary(packed) or _fault(head[:_HEAD], kind, compression, asked=format is not None)
    if not kind:
        kind = "text"
        fault = fault or not_read("neither JSON Lines nor a text: some of its lines are records", _SAY)
    return CorpusFile(shown(name), location, size, kind, compression, modified, inode, fault)


def _head(stream: Readable, lines: int) -> tuple[bytes, bool]:
    """Return the first bytes of a file, and whether they are all.

    Args:
        lines: that are to be among them, if there are so many in `_MOST` bytes.
    """
    head, size = b"", _HEAD
    try:
        while len(head) < size:
            more = read_up_to(stream, size - len(head))
            head += more
            if not more:
                break
            if len(head) == size < _MOST and head.count(b"\n") < lines:
                size *= 16
    except Fault:
        pass  # reading will tell, and say what is lost
    return head, len(head) < size


def _fault(head: bytes, kind: str, compression: str, *, asked: bool) -> Fault | None:
    """Return why a file can't be read, and what to do; None if no reason is known."""
    if compression and sniff(head):
        return not_read(f"compressed twice, {sniff(head)} inside {compression}", "unpack it once first")
    if kind in ("parquet", "arrow"):
        if compression:
            inside = foreign(head, kind, asked=asked)
            return inside or not_read(f"{kind.title()} inside {compression}", "unpack it first")
        if head.startswith(_PARQUET_MAGIC) or is_arrow(head):
            return None
    found = foreign(head, kind, asked=asked)
    if found is None and kind == "json":
        found = without_names(head)
    if found is None and kind in ("csv", "tsv"):
        found = _other_table(head, asked=asked)
    return found


def _other_table(head: bytes, *, asked: bool) -> Fault | None:
    """Recognise a table of another kind than CSV and TSV."""
    if head.removeprefix(BOM_UTF8).startswith(b"sep="):
        return not_read("a table below a line sep=, as spreadsheets write it", "remove that line first")
    for mark, called in ((";", "semicolons"), ("|", "bars")):
        if not asked and looks_like_table(head, mark):
            what = f"values separated by {called}; packtool reads commas (csv) and tabs (tsv)"
            return not_read(what, "convert it first")
    return None


def format_of(name: str, head: bytes, *, whole: bool = True) -> str:
    """Recognise the format of a file: by its content where that is plain, by its name where it is not; "" if neither
    tells.

    A file of records must not pass for one long document because its suffix is unusual; whoever wants just that names
    the format.

    Args:
        head: the first bytes of the file, decompressed.
        whole: they are all.

    >>> format_of("notes.md", b"# Notes"), format_of("dump.log", b'{"text": "a"}\\n{"text": "b"}\\n')
    ('text', 'jsonl')
    >>> format_of("export.dat", b"id,text\\n1,some words\\n2,more\\n"), format_of("a.csv", b"id\\ttext\\n1\\ta\\n")
    ('csv', 'tsv')
    """
    if head.startswith(_PARQUET_MAGIC):
        return "parquet"
    if is_arrow(head):
        return "arrow"
    by_name = _by_name(name)
    if by_name in _SURE:
        return by_name
    of_records = _if_records(head.removeprefix(BOM_UTF8), name, whole=whole)
    if of_records is not None:
        return of_records
    if by_name == "text":
        return by_name  # prose may have as many commas in each line
    marks = (("csv", ","), ("tsv", "\t"))
    tables = [format for format, mark in marks if looks_like_table(head, mark, whole=whole)]
    return tables[0] if len(tables) == 1 else by_name or "text"


def _if_records(text: bytes, name: str, *, whole: bool) -> str | None:
    """Return jsonl for a text that is records of JSON, "" for one that may be, and None for any other.

    Most lines decide: what is damaged is one line of many, or each in the same way. A page that shows records has prose
    around, and blocks whose inner lines begin otherwise: fewer than one line of four. What lies between would be
    one long document, or many bad records, and is taken for neither unless its name tells.
    """
    if _RECORDS.match(text) or _over_lines(text, alone=not _suffix(name)):
        return "jsonl"
    lines, records = _begin_like_records(text, whole=whole)
    if 2 * records > lines:
        return "jsonl"
    if 4 * records > lines and not _by_name(name):
        return ""
    return None


def _by_name(name: str) -> str:
    """Return the format that a suffix tells; "" for any other."""
    return _BY_SUFFIX.get(_suffix(name), "")


def _begin_like_records(text: bytes, *, whole: bool) -> tuple[int, int]:
    """Count the lines of a text that are not blank, and those that begin like a record.

    >>> _begin_like_records(b'{"text": "cut\\n\\n{"text": "b"}\\nwords', whole=True)
    (3, 2)
    """
    lines = [line for line in text.split(b"\n") if line.strip()]
    if not whole and len(lines) > 1:
        lines.pop()  # perhaps not all of it
    return len(lines), len(list(filter(BEGINS.match, lines)))


def _over_lines(text: bytes, *, alone: bool) -> bool:
    """Return whether a text is objects over several lines, one after another, as `jq .` writes them.

    Args:
        alone: one is enough: nothing says that it is a file of another kind, such as a notebook.
    """
    text = text.lstrip()
    first = _first_value(text)
    if first is None:
        return alone and BEGINS.match(text) is not None and b"\n" in text[: text.find(b'"')]
    value, size = first
    rest = text[size:].lstrip()
    if not isinstance(value, dict) or b"\n" not in text[:size]:
        return False
    return BEGINS.match(rest.removeprefix(b",")) is not None or (alone and not rest)


def is_arrow(head: bytes) -> bool:
    """Return whether a file with these first bytes is one of Arrow's IPC format, or a stream of it."""
    return head.startswith(_ARROW_MAGIC) or _ARROW_STREAM.match(head) is not None


def is_json(head: bytes) -> bool:
    """Return whether a file of JSON holds an array, or objects over several lines, rather than one object a line.

    >>> is_json(b'[{"text": "a"}]'), is_json(b'{\\n  "text": "a"\\n}'), is_json(b'{"text": "cut\\n{"text": "b"}')
    (True, True, False)
    """
    text = head.removeprefix(BOM_UTF8).lstrip()
    first = _first_value(text)
    if first is None:
        return _JSON.match(text) is not None
    value, size = first
    return isinstance(value, list) or (isinstance(value, dict) and b"\n" in text[:size])


def _first_value(text: bytes) -> tuple[Any, int] | None:
    """Parse the value of JSON that a text begins with; return it and its size, None if it is not whole or not JSON."""
    try:
        written = text.decode()
    except UnicodeDecodeError as error:  # a character that is cut, or something else than text
        written = text[: error.start].decode()
    try:
        value, end = json.JSONDecoder().raw_decode(written)
    except (ValueError, RecursionError):
        return None
    return value, len(written[:end].encode())


def without_names(head: bytes) -> Fault | None:
    """Recognise JSON whose records are lists of messages, or texts, without a name; None for any other.

    A question and its answer may be a record, or a turn: they are turns where another list follows the first.

    >>> without_names(b'[{"role": "user", "content": "Hi"}]').remedy
    "make records of them: jq -c '{messages: .}'"
    """
    text = head.removeprefix(BOM_UTF8)
    opening = _OPENS.match(text)
    if opening is None:
        return None
    first = _first_value(text[opening.end() :])
    element = first[0] if first is not None else None
    whole = _first_value(text.lstrip())
    several = whole is not None and text.lstrip()[whole[1] :].lstrip().startswith(b"[")
    if _MESSAGE.match(text) or has_sender(element) or (several and holds_turns([element])):
        return not_read("lists of messages, not records that hold them", "make records of them: jq -c '{messages: .}'")
    if isinstance(element, str):
        return not_read("an array of strings, not of records", "make records of them: jq -c '.[] | {text: .}'")
    if isinstance(element, int):
        what = "lists of numbers, not records that hold token ids"
        return not_read(what, "make records of them: jq -c '{ids: .}', and give --ids-field=ids")
    if _LISTS.match(text):
        what = "an array of lists of messages, not of records that hold them"
        return not_read(what, "make records of them: jq -c '.[] | {messages: .}'")
    return None


def looks_like_table(head: bytes, delimiter: str, *, whole: bool = True) -> bool:
    """Return whether a header of two or more names is followed by rows with as many values each.

    A name is a word, in quotes or not: lines of prose with a comma in each are not a table.

    >>> looks_like_table(b'id,text\\n1,"one, two"\\n', ","), looks_like_table(b"Dear Ann, hello\\nyours, Bob\\n", ",")
    (True, False)
    """
    text = head.decode("utf-8-sig", "ignore")
    lines = io.StringIO(text, newline="")
    plain = csv.reader(lines, delimiter=delimiter, quoting=csv.QUOTE_NONE)
    rows = list(filter(None, plain if delimiter == "\t" else csv.reader(lines, delimiter=delimiter)))
    if not whole and rows:
        rows.pop()  # perhaps not all of it
    if len(rows) < 2 or len(rows[0]) < 2:
        return False
    named = len(set(rows[0])) == len(rows[0]) and all(re.fullmatch(r"[^\W\d][\w.:/-]{0,63}", name) for name in rows[0])
    return named and all(len(row) == len(rows[0]) for row in rows)
