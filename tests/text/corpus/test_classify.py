"""What a file is, by its name and its first bytes."""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
import sysconfig
from pathlib import Path
from string import ascii_letters

import pytest
from hypothesis import given
from hypothesis import strategies as st

from packtool.text.corpus.classify import classify, format_of
from packtool.text.corpus.records import Reject, Span
from tests.text.corpus.reading import find, read


def test_other_encodings_are_named(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_bytes('{"text": "a"}\n'.encode("utf-16"))
    [file] = find(tmp_path / "x.jsonl")
    [batch] = read(file, Span(0), "text")
    assert batch.rejects == [Reject(0, "damaged-file", "UTF-16 text; packtool reads UTF-8", lost=file.bytes)]


@pytest.mark.parametrize(
    ("name", "head", "format", "compression"),
    [
        ("a.jsonl", b"", "jsonl", ""),
        ("a.NDJSON", b"{", "jsonl", ""),
        ("a.txt", b"{", "text", ""),
        ("a.md", b"{", "text", ""),
        ("a.txt", b'{"text": "a"}\r\n{"text": "b"}\r\n', "jsonl", ""),
        ("a.csv", b'{"text": "a"}\n', "jsonl", ""),
        ("a.log", b'{"text": "' + b"a" * 20_000 + b'"}', "jsonl", ""),
        ("a.txt", b'{"text": "a"}\nand more\n', "text", ""),
        ("a.ipynb", b'{\n "cells": []\n}\n', "text", ""),
        ("a.csv", b"", "csv", ""),
        ("a.csv", b"text\none value a row\n", "csv", ""),
        ("a.CSV", b"id\ttext\n1\ta\n", "tsv", ""),
        ("a.tab", b"id\ttext\n1\ta\n", "tsv", ""),
        ("a.csv.gz", gzip.compress(b"id,text\n" + b"1,a\n" * 100_000, mtime=0), "csv", "gzip"),
        ("a", b"id,text\n1,a\n2,b\n", "csv", ""),
        ("a.dat", b"\xef\xbb\xbfid\ttext\n1\ta\n", "tsv", ""),
        ("a.dat", b'id,text\n1,"an open quote' + b"." * 20_000, "text", ""),
        ("a.dat", b'id,text\n1,"two\nlines"\n2,"an open quote' + b"." * 20_000, "csv", ""),
        ("a.txt", b"Dear Ann, how are you?\nI am well, thanks.\n", "text", ""),
        ("a.txt", b"one,two\n", "text", ""),
        ("a", b'\xef\xbb\xbf \n{"text": 1}', "jsonl", ""),
        ("a", b"plain", "text", ""),
        ("a.jsonl", b"PAR1", "parquet", ""),
        ("a.jsonl", gzip.compress(b"{}", mtime=0), "jsonl", "gzip"),
        ("a.gz", gzip.compress(b" {}", mtime=0), "jsonl", "gzip"),
        ("a.txt.gz", gzip.compress(b"x", mtime=0)[:-9], "text", "gzip"),
    ],
)
def test_bytes_tell_compression_and_parquet_and_names_the_rest(
    tmp_path: Path, name: str, head: bytes, format: str, compression: str
) -> None:
    (tmp_path / name).write_bytes(head)
    file = classify(name, str(tmp_path / name), None)
    assert (file.format, file.compression, file.bytes, file.problem) == (format, compression, len(head), "")
    assert classify(name, str(tmp_path / name), "lines").format == "lines"


@pytest.mark.parametrize(
    ("head", "problem"),
    [
        (
            b' [ {"text": 1}]',
            "one JSON array of objects, not JSON Lines, which has one object a line: jq -c .[] makes them",
        ),
        (b"id;text\n1;a\n", "values separated by semicolons; packtool reads commas (csv) and tabs (tsv)"),
        (gzip.compress(b"PAR1", mtime=0), "Parquet inside gzip; unpack it first"),
    ],
)
def test_what_cannot_be_read_as_it_is_has_its_problem_named(tmp_path: Path, head: bytes, problem: str) -> None:
    name = "a.csv" if b";" in head else "a.jsonl"
    (tmp_path / name).write_bytes(head)
    assert classify(name, str(tmp_path / name), None).problem == problem


SUFFIXES = st.sampled_from(["", ".txt", ".md", ".log", ".dat", ".csv", ".tsv", ".py"])


@given(st.lists(st.dictionaries(st.text(), st.text(), min_size=1), min_size=1), SUFFIXES, st.booleans())
def test_json_lines_are_known_under_every_name(records: list[dict[str, str]], suffix: str, ascii: bool) -> None:
    lines = [json.dumps(record, ensure_ascii=ascii).encode("utf-8", "replace") for record in records]
    assert format_of(f"a{suffix}", (b"\n".join(lines) + b"\n")[: 1 << 14]) == "jsonl"


@given(
    st.lists(st.text(ascii_letters, min_size=1, max_size=9), min_size=2, max_size=5, unique=True),
    st.lists(st.lists(st.text(), min_size=5, max_size=5), min_size=1),
    st.sampled_from(["", ".txt", ".dat", ".csv", ".tsv"]),
    st.sampled_from([("csv", ","), ("tsv", "\t")]),
)
def test_tables_are_known_under_every_name(
    names: list[str], rows: list[list[str]], suffix: str, kind: tuple[str, str]
) -> None:
    format, _ = kind
    out = io.StringIO()
    if format == "tsv":
        rows = [[re.sub(r"[\t\r\n]", " ", value) for value in row] for row in rows]
        out.writelines("\t".join(row[: len(names)]) + "\n" for row in [names, *rows])
    else:
        csv.writer(out).writerows([names, *(row[: len(names)] for row in rows)])
    assert format_of(f"a{suffix}", out.getvalue().encode("utf-8", "replace")[: 1 << 14]) == format


def test_no_prose_or_code_is_taken_for_records() -> None:
    library = sorted(Path(sysconfig.get_path("stdlib")).glob("*.py"))
    pages = sorted(Path(__file__).parents[3].glob("**/*.md"))
    assert len(library) > 100
    assert len(pages) > 20
    assert {format_of(path.name, path.read_bytes()[: 1 << 14]) for path in library + pages} == {"text"}
