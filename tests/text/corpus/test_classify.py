"""What a file is, by its name and its first bytes."""

from __future__ import annotations

import csv
import gzip
import io
import json
import pickle
import re
import sqlite3
import struct
import sysconfig
import tarfile
import zipfile
from contextlib import closing
from pathlib import Path
from string import ascii_letters

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import orc, parquet

import packtool
from packtool.errors import DataError
from packtool.text.corpus.classify import classify, format_of
from packtool.text.corpus.foreign import foreign
from packtool.warnings import PacktoolWarning
from tests.shell import Shell
from tests.text.tokenizing.runs import ASSET, documents


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
        ("a.dat", b'id,text\n1,"an open quote' + b"." * 20_000, "csv", ""),
        ("a.dat", b'id,text\n1,"two\nlines"\n2,"an open quote' + b"." * 20_000, "csv", ""),
        ("a.txt", b"Dear Ann, how are you?\nI am well, thanks.\n", "text", ""),
        ("a.txt", b"a,b\nc,d\n", "text", ""),
        ("a", b'\xef\xbb\xbf \n{"text": 1}', "jsonl", ""),
        ("a", b"plain", "text", ""),
        ("a.jsonl", b"PAR1", "parquet", ""),
        ("a.jsonl", gzip.compress(b"{}", mtime=0), "jsonl", "gzip"),
        ("a.gz", gzip.compress(b" {}", mtime=0), "jsonl", "gzip"),
        ("a.txt.gz", gzip.compress(b"x", mtime=0)[:-9], "text", "gzip"),
        ("a.json", b' [ {"text": "a"}]', "json", ""),
        ("a.txt", b'[{"text": "a"}]', "json", ""),
        ("a.jsonl", b'{\n  "text": "a"\n}\n', "json", ""),
        ("a.json", b"[]", "json", ""),
        ("a.json", b'{"text": "a"}', "jsonl", ""),
        ("a.json", b'[{"instruction": "a", "output": "b"}]', "json", ""),
        ("a.jsonl", b'{"text": "cut\n{"text": "a"}\n', "jsonl", ""),
        ("a.jsonl", b'\n\n{"text": "a"}\n', "jsonl", ""),
        ("a.txt", b"[see below]\n", "text", ""),
        ("a.py", b"[{x: 1}]\n", "text", ""),
        ("a.txt", b"<html>\n<p>a page</p>", "text", ""),
        ("a.txt", b"ORCHIDS and RIFFS", "text", ""),
        ("a.txt", b"ID3 tags", "text", ""),
        ("a", b"MZ and PK", "text", ""),
    ],
)
def test_bytes_tell_compression_and_parquet_and_names_the_rest(
    tmp_path: Path, name: str, head: bytes, format: str, compression: str
) -> None:
    (tmp_path / name).write_bytes(head)
    file = classify(name, str(tmp_path / name), None)
    assert (file.format, file.compression, file.bytes, file.fault) == (format, compression, len(head), None)
    assert classify(name, str(tmp_path / name), "lines").format == "lines"


SEPARATED = "values separated by %s; packtool reads commas (csv) and tabs (tsv)"
MESSAGES = ("lists of messages, not records that hold them", "make records of them: jq -c '{messages: .}'")
PAGE = ("a web page or XML, not the file itself", "download the raw file: on the hub, /resolve/ instead of /blob/")


@pytest.mark.parametrize(
    ("name", "head", "problem", "remedy"),
    [
        ("a.csv", b"id;text\n1;a\n", SEPARATED % "semicolons", "convert it first"),
        ("a.csv", b"id|text\n1|a\n", SEPARATED % "bars", "convert it first"),
        ("a.jsonl", gzip.compress(b"PAR1", mtime=0), "Parquet inside gzip", "unpack it first"),
        (
            "a.jsonl",
            gzip.compress(gzip.compress(b"{}", mtime=0), mtime=0),
            "compressed twice, gzip inside gzip",
            "unpack it once first",
        ),
        ("a.parquet", gzip.compress(b"%PDF-", mtime=0), "a PDF file", "make text of it first, and give that"),
        ("a.txt", b"PACK\0\0\0\2", "a pack of Git", "leave it out with --exclude"),
        ("a.txt", b"\0\0\0\1Bud1\0", "a .DS_Store of a Mac", "leave it out with --exclude"),
        ("a.txt", b"(dp0\nVa\np1\n", "a pickle of Python", "convert it to Parquet or JSON Lines first"),
        ("a.jsonl", b'[{"human": "a", "assistant": "b"}]\n[{"human": "c", "assistant": "d"}]\n', *MESSAGES),
        ("a.json", b'[{"role": "user"}]', *MESSAGES),
        ("a.jsonl", b'[{"id": 1, "content": null, "role": "user"}]\n', *MESSAGES),
        (
            "a.jsonl",
            b"[1, 2]\n[3]\n",
            "lists of numbers, not records that hold token ids",
            "make records of them: jq -c '{ids: .}', and give --ids-field=ids",
        ),
        ("a.csv", b"sep=;\nid;text\n", "a table below a line sep=, as spreadsheets write it", "remove that line first"),
        (
            "a.jsonl",
            b'\x1e{"text": "a"}\n',
            "a sequence of JSON texts (RFC 7464)",
            "make lines of it first: `jq --seq -c .`",
        ),
        (
            "a.txt",
            b"/annex/objects/SHA256E-s12--ab.txt\n",
            "a pointer of git-annex, not the file itself",
            "fetch it with git annex get",
        ),
        (
            "a.json",
            b'[\n[{"from": "human"}]]',
            "an array of lists of messages, not of records that hold them",
            "make records of them: jq -c '.[] | {messages: .}'",
        ),
        *(
            (name, head, *PAGE)
            for name in ("a.jsonl", "a.parquet", "a.csv", "a.arrow")
            for head in (b"<!DOCTYPE html>\n<html>", b"\n<?xml version='1.0'?><Error>AccessDenied")
        ),
    ],
)
def test_what_cannot_be_read_as_it_is_has_its_problem_named(
    tmp_path: Path, name: str, head: bytes, problem: str, remedy: str
) -> None:
    (tmp_path / name).write_bytes(head)
    file = classify(name, str(tmp_path / name), None)
    assert (file.fault and (file.fault.what, file.fault.remedy)) == ((problem, remedy) if problem else None)


def packed(kind: str) -> bytes:
    """A real file of a kind that is not read."""
    out = io.BytesIO()
    if kind == "tar":
        with tarfile.open(fileobj=out, mode="w") as archive:
            archive.addfile(tarfile.TarInfo("a.jsonl"))
    elif kind in ("zip", "docx", "epub"):
        with zipfile.ZipFile(out, "w") as archive:
            inside = {"zip": "a.jsonl", "docx": "[Content_Types].xml", "epub": "mimetype"}[kind]
            archive.writestr(inside, "application/epub+zip" if kind == "epub" else "a")
    elif kind == "npy":
        np.save(out, np.arange(3))
    elif kind == "npz":
        np.savez(out, np.arange(3))
    elif kind == "sqlite":
        with closing(sqlite3.connect(":memory:")) as base:
            base.execute("CREATE TABLE a (b TEXT)")
            return base.serialize()
    elif kind == "orc":
        orc.write_table(pa.table({"text": ["a"]}), out)
    return out.getvalue()


FOREIGN = {
    "a tar archive": packed("tar"),
    "a zip archive": packed("zip"),
    "a document of an office program": packed("docx"),
    "an EPUB book": packed("epub"),
    "an array of NumPy": packed("npy"),
    "arrays of NumPy (npz)": packed("npz"),
    "an SQLite database": packed("sqlite"),
    "an ORC file": packed("orc"),
    "a pickle of Python": pickle.dumps([{"text": "a"}]),
    "the weights of a model": struct.pack("<Q", 40) + b'{"__metadata__":{"format":"pt"}}        ',
    "a TFRecord file": struct.pack("<QI", 30, 7) + b"\n\x1c" + b"a" * 28,
    "a pointer of Git LFS, not the file itself": b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n",
    "a WARC file of web pages": b"WARC/1.0\r\nWARC-Type: warcinfo\r\n",
    "a dump of MediaWiki": b'<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.11/">',
    "a PDF file": b"%PDF-1.7\n%\xe2\xe3",
    "an image": b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR",
    "sound or video": b"\0\0\0\x18ftypmp42\0\0",
    "a program": b"\x7fELF\x02\x01\x01\0",
    "UTF-16 text; packtool reads UTF-8": "some words in it".encode("utf-16"),
    "UTF-32 text; packtool reads UTF-8": "some words in it".encode("utf-32"),
    "binary data, with zero bytes": bytes(1000),
    "token ids of llm.c": struct.pack("<II", 20240520, 1) + bytes(1016),
    "articles of WikiExtractor between tags <doc>": b'<doc id="12" url="https://x" title="Ox">\nOx\n\nWords.\n</doc>\n',
    "records of MessagePack, not of JSON": b"\x81\xa4text\xa5hello\x81\xa4text\xa3abc",
    "records of CBOR, not of JSON": b"\xa1dtextehello\xa1dtextcabc",
    "records of BSON, not of JSON": b"\x16\0\0\0\x02text\0\x06\0\0\0hello\0\0",
    "an LZ4 file": b"\x04\x22\x4d\x18d@\xa7",
}


@pytest.mark.parametrize("kind", FOREIGN)
@pytest.mark.parametrize("name", ["a.txt", "a.txt.gz", "a.jsonl", "a"])
def test_other_kinds_of_files_are_named_with_the_way_out(tmp_path: Path, name: str, kind: str) -> None:
    data = FOREIGN[kind]
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith("gz") else data)
    found = classify(name, str(tmp_path / name), None)
    web = data.startswith(b"<") and name == "a.jsonl"
    assert web or found.fault.what == kind
    (tmp_path / "b.txt").write_text("words")
    with pytest.raises(DataError) as error:
        packtool.tokenize(tmp_path / name, tmp_path / "s", tokenizer=ASSET)
    assert error.value.code == "foreign-file"
    assert error.value.what == found.fault.what
    assert error.value.remedy == f"{found.fault.remedy}, or give --on-error=skip, or quarantine"
    with pytest.warns(PacktoolWarning, match="1 record could not be used"):
        packtool.tokenize([tmp_path / name, tmp_path / "b.txt"], tmp_path / "s", tokenizer=ASSET, on_error="skip")
    assert len(documents(tmp_path / "s")) == 1


SUFFIXES = st.sampled_from(["", ".txt", ".md", ".log", ".dat", ".csv", ".tsv", ".py"])


@given(st.lists(st.dictionaries(st.text(), st.text(), min_size=1), min_size=1), SUFFIXES, st.booleans())
def test_json_lines_are_known_under_every_name(records: list[dict[str, str]], suffix: str, ascii: bool) -> None:
    lines = [json.dumps(record, ensure_ascii=ascii).encode("utf-8", "replace") for record in records]
    assert format_of(f"a{suffix}", (b"\n".join(lines) + b"\n")[: 1 << 14]) == "jsonl"


@given(
    st.lists(st.text(ascii_letters, min_size=1, max_size=9), min_size=2, max_size=5, unique=True),
    st.lists(st.lists(st.text(), min_size=5, max_size=5), min_size=1),
    st.sampled_from(["", ".log", ".dat", ".csv", ".tsv"]),
    st.sampled_from([("csv", ","), ("tsv", "\t")]),
)
def test_tables_are_known_under_names_that_say_nothing_else(
    names: list[str], rows: list[list[str]], suffix: str, kind: tuple[str, str]
) -> None:
    format, _ = kind
    out = io.StringIO()
    if format == "tsv":
        rows = [[re.sub(r"[\t\r\n]", " ", value) for value in row] for row in rows]
        out.writelines("\t".join(row[: len(names)]) + "\n" for row in [names, *rows])
    else:
        csv.writer(out).writerows([names, *(row[: len(names)] for row in rows)])
    head = out.getvalue().encode("utf-8", "replace")[: 1 << 14]
    assert format_of(f"a{suffix}", head) == format
    assert format_of("a.txt", head) == "text"


GOOD = b'{"text": "one"}\n{"text": "two"}\n{"text": "three"}\n'
BLOCK = b'```\n{\n  "text": "one",\n  "id": 3\n}\n```\n'


@pytest.mark.parametrize(
    ("head", "format"),
    [
        (b'{"text": "broken\n' + GOOD, "jsonl"),
        (b'rest of a line that tail -c cut"}\n' + GOOD, "jsonl"),
        (b"r" * 100_000 + b'"}\n' + GOOD, "jsonl"),
        (b'{"text": "a raw\ttab"}\n' * 9, "jsonl"),
        (GOOD + b'{"text": "cut', "jsonl"),
        (b"{'text': 'as Python writes it'}\n", "jsonl"),
        (GOOD.replace(b"\n", b",\n"), "jsonl"),
        (b"# made by a crawler\n" + GOOD * 2, "jsonl"),
        (b'{\n  "text": "one"\n}\n{\n  "text": "two"\n}\n', "json"),
        (b'{\n  "text": "one"\n},\n{\n  "text": "two"\n}\n', "json"),
        (b"A page.\n\n" + BLOCK + b"More words.\n" + BLOCK, "text"),
        (b"A page.\nwith words\n" * 3 + GOOD[:16], "text"),
        (b'{% if a %}\n{{ "text" }}\n', "text"),
    ],
)
@pytest.mark.parametrize("name", ["-", "part-00000", "dump.log"])
def test_most_lines_tell_records_and_prose_apart(tmp_path: Path, name: str, head: bytes, format: str) -> None:
    (tmp_path / name).write_bytes(head)
    file = classify(name, str(tmp_path / name), None)
    assert (file.format, file.fault) == (format, None)


def test_what_may_be_records_or_prose_is_asked(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_bytes(b"Some words.\n" * 4 + GOOD)
    with pytest.raises(DataError) as error:
        packtool.tokenize(tmp_path / "a.log", tmp_path / "s", tokenizer=ASSET)
    assert str(error.value) == (
        f"{tmp_path}/a.log: neither JSON Lines nor a text: some of its lines are records. Say what it is: "
        'format="jsonl", lines or text, or give on_error="skip", or quarantine.'
    )
    packtool.tokenize(tmp_path / "a.log", tmp_path / "s", tokenizer=ASSET, format="text")
    assert len(documents(tmp_path / "s")) == 1


def test_no_prose_or_code_is_taken_for_records() -> None:
    library = sorted(Path(sysconfig.get_path("stdlib")).glob("*.py"))
    pages = sorted(Path(__file__).parents[3].glob("**/*.md"))
    assert len(library) > 100
    assert len(pages) > 20
    assert {format_of(path.name, path.read_bytes()[: 1 << 14]) for path in library + pages} == {"text"}


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
@pytest.mark.parametrize("format", ["text", "lines", "jsonl", "csv"])
def test_what_has_zero_bytes_names_both_ways_out(encoding: str, format: str) -> None:
    """Without a mark, nothing tells text in UTF-16 from token ids."""
    found = foreign('{"text": "words"}'.encode(encoding), format, asked=False)
    assert found is not None
    assert found.what == "binary data, with zero bytes"
    assert found.remedy == (
        "if it is token ids, packtool import reads them; if it is text in UTF-16, convert it with "
        "iconv -f utf-16le -t utf-8; if it is other text, remove them with tr -d '\\0'"
    )


def test_a_zero_byte_in_a_record_damages_that_record_alone() -> None:
    head = b'{"text": "a"}\n{"text": "\0"}\n'
    assert foreign(head, "jsonl", asked=False) is None
    assert foreign(b"\0}\n" + head, "jsonl", asked=False) is None
    assert foreign(head, "text", asked=False) is not None


def test_the_summary_says_what_files_were_taken_for(tmp_path: Path, shell: Shell) -> None:
    for name, data in {"a.dat": b"id,text\n1,one\n2,two\n", "b.jsonl": GOOD, "part-00000": GOOD, "n.md": b"w"}.items():
        (tmp_path / name).write_bytes(data)
    inputs = [tmp_path / name for name in ("a.dat", "b.jsonl", "part-00000", "n.md")]
    said = shell("tokenize", *inputs, "-o", tmp_path / "s", "--tokenizer", ASSET)
    for line in ("read as csv: a.dat\n", "read as jsonl: part-00000\n", "read as text: n.md\n"):
        assert line in said
    assert "b.jsonl" not in said


def test_a_file_that_needs_a_dictionary_is_not_called_damaged(tmp_path: Path) -> None:
    from backports import zstd

    dictionary = zstd.train_dict([b'{"text": "words %d"}\n' % number for number in range(2000)], 4000)
    (tmp_path / "a.jsonl.zst").write_bytes(zstd.compress(b'{"text": "words 3"}\n', zstd_dict=dictionary))
    with pytest.raises(DataError, match=r"compressed by zstd with a dictionary\. Unpack it first with zstd -d -D DICT"):
        packtool.tokenize(tmp_path / "a.jsonl.zst", tmp_path / "s", tokenizer=ASSET)


def test_a_text_in_parts_is_named_with_what_joins_them(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": ["one", "two"]}\n')
    parquet.write_table(pa.table({"text": [["one", "two"]]}), tmp_path / "a.parquet")
    for name, joined in (
        ("a.jsonl", r"""jq -c '.text |= join("\n")'"""),
        ("a.parquet", "array_to_string(text, chr(10)) in DuckDB"),
    ):
        with pytest.raises(DataError) as error:
            packtool.tokenize(tmp_path / name, tmp_path / "s", tokenizer=ASSET)
        assert "text field 'text' is a list of strings, such as lines or paragraphs" in error.value.what
        assert f"join them first, here with a newline between: {joined}" in error.value.remedy
