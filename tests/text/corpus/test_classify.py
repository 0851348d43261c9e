"""What a file is: what --format says, else its suffix; what neither tells, or hardly is meant, is refused."""

import gzip
import io
import json
import struct
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

import packtool
from packtool.errors import DataError, UsageError
from packtool.options.names import TEXT_FORMATS
from packtool.text.corpus.classify import classify
from packtool.text.corpus.formats import FORMATS, by_suffix
from packtool.warnings import PacktoolWarning
from tests.text.tokenizing.runs import ASSET, documents


@pytest.mark.parametrize(
    ("name", "head", "format", "compression"),
    [
        ("a.jsonl", b"", "jsonl", ""),
        ("a.NDJSON", b"{", "jsonl", ""),
        ("a.txt", b"{", "text", ""),
        ("a.txt", b"a page\nwith a record\n" + b'{"text": "a"}\n', "text", ""),
        ("a.txt", b"id,text\n1,a\n2,b\n", "text", ""),
        ("a.txt", b"[see below]\n", "text", ""),
        ("a.txt", b"<html>\n<p>a page</p>", "text", ""),
        ("a.txt.gz", gzip.compress(b"x", mtime=0)[:-9], "text", "gzip"),
        ("a.csv", b"", "csv", ""),
        ("a.CSV", b"id\ttext\n1\ta\n", "csv", ""),
        ("a.tab", b"id\ttext\n1\ta\n", "tsv", ""),
        ("a.csv.gz", gzip.compress(b"id,text\n" + b"1,a\n" * 100_000, mtime=0), "csv", "gzip"),
        ("a.jsonl", b"PAR1", "parquet", ""),
        ("a", b"ARROW1\0\0", "arrow", ""),
        ("a.bin", b"\xff\xff\xff\xff\x78\1\0\0\x10\0\0\0\0\0", "arrow", ""),
        *((f"a.{suffix}", b'{"text": "a"}', "jsonl", "") for suffix in ("jsonlines", "jl", "ldjson")),
        ("a.pq", b"", "parquet", ""),
        ("a.arrows", b"", "arrow", ""),
        ("a.jsonl", gzip.compress(b"{}", mtime=0), "jsonl", "gzip"),
        ("a.json", b' [ {"text": "a"}]', "json", ""),
        ("a.jsonl", b'{\n  "text": "a"\n}\n', "json", ""),
        ("a.jsonl", b'{"text": "a",\n  "id": 3}\n', "json", ""),
        ("a.json", b"[]", "json", ""),
        ("a.json.gz", gzip.compress(b'[{"text": "a"}]', mtime=0)[:-9], "json", "gzip"),
        ("a.json", b'\xef\xbb\xbf{"text": "a"}', "jsonl", ""),
        ("a.jsonl", b'{"text": "cut\n{"text": "a"}\n', "jsonl", ""),
        ("a.jsonl", b'{"text": "a"}\n{"text": "\0"}\n', "jsonl", ""),
    ],
)
def test_a_suffix_or_an_option_tells_the_format(
    tmp_path: Path, name: str, head: bytes, format: str, compression: str
) -> None:
    (tmp_path / name).write_bytes(head)
    file = classify(name, str(tmp_path / name), None)
    assert (file.format, file.compression, file.bytes, file.fault) == (format, compression, len(head), None)
    assert classify(name, str(tmp_path / name), "csv").format == "csv"


def test_a_file_without_a_known_suffix_is_refused_with_the_option_that_says_it(tmp_path: Path) -> None:
    for name in ("part-00000", "dump.log", "a.md", "a.gz"):
        (tmp_path / name).write_bytes(b'{"text": "a"}\n')
        with pytest.raises(UsageError) as error:
            classify(name, str(tmp_path / name), None)
        assert str(error.value) == (
            f"{tmp_path / name}: its suffix says no format. "
            "Give format: jsonl, json, parquet, arrow, text, lines, csv or tsv; "
            "it holds for all inputs, so files of another go to a store of their own."
        )
        for format in TEXT_FORMATS:
            assert classify(name, str(tmp_path / name), format).format == format


RECORDS = st.lists(st.dictionaries(st.text(), st.text(), min_size=1), min_size=1)


@given(RECORDS, st.booleans(), st.sampled_from(["%s", "[%s]", "[\n%s\n]"]), st.sampled_from([None, 2]))
def test_no_text_is_records_unless_it_is_asked(
    tmp_path_factory: pytest.TempPathFactory,
    records: list[dict[str, str]],
    ascii: bool,
    around: str,
    indent: int | None,
) -> None:
    path = tmp_path_factory.getbasetemp() / "a.txt"
    lines = [json.dumps(record, ensure_ascii=ascii, indent=indent) for record in records]
    path.write_bytes((around % ",\n".join(lines)).encode("utf-8", "replace"))
    file = classify("a.txt", str(path), None)
    assert file.fault is not None
    assert file.fault.what == "records of JSON, and its suffix says that it is plain text"
    assert file.fault.remedy == "say which it is: --format=jsonl or --format=text"
    assert classify("a.txt", str(path), "text").fault is None


def packed(kind: str) -> bytes:
    """A real file of a kind that is not read."""
    out = io.BytesIO()
    if kind == "tar":
        with tarfile.open(fileobj=out, mode="w") as archive:
            archive.addfile(tarfile.TarInfo("a.jsonl"))
    elif kind == "zip":
        with zipfile.ZipFile(out, "w") as archive:
            archive.writestr("a.jsonl", "a")
    elif kind == "npy":
        np.save(out, np.arange(3))
    return out.getvalue()


ARCHIVE = "an archive, as which office programs, NumPy and PyTorch write, too"
FOREIGN = {
    f"{ARCHIVE}. Unpack it": packed("tar"),
    ARCHIVE: packed("zip"),
    "an array of NumPy": packed("npy"),
    "a pointer of Git, not the file itself": b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n",
    "a document of an office program, or for printing": b"%PDF-1.7\n%\xe2\xe3",
    "UTF-16 or UTF-32 text; packtool reads UTF-8": "some words in it".encode("utf-16"),
    "a WARC file of web pages": b"WARC/1.0\r\nWARC-Type: warcinfo\r\n",
    "token ids of llm.c or Megatron": struct.pack("<II", 20240520, 1) + bytes(1016),
}


@pytest.mark.parametrize("kind", FOREIGN)
@pytest.mark.parametrize("name", ["a.txt", "a.txt.gz", "a.jsonl", "a.parquet", "a"])
def test_other_kinds_of_files_are_named_with_the_way_out(tmp_path: Path, name: str, kind: str) -> None:
    data = FOREIGN[kind]
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith("gz") else data)
    (tmp_path / "b.txt").write_text("words")
    with pytest.raises(DataError, match=kind) as error:
        packtool.tokenize(tmp_path / name, tmp_path / "s", tokenizer=ASSET)
    assert error.value.code == "foreign-file"
    if name != "a":  # nothing says what that is
        with pytest.warns(PacktoolWarning, match="1 record could not be used"):
            packtool.tokenize([tmp_path / name, tmp_path / "b.txt"], tmp_path / "s", tokenizer=ASSET, on_error="skip")
        assert len(documents(tmp_path / "s")) == 1


@pytest.mark.parametrize(
    ("name", "head", "problem"),
    [
        ("a.txt", bytes(1000), "binary, not text"),
        *(
            (name, '{"text": "words"}'.encode("utf-16-le"), "binary, not text")
            for name in ("a.txt", "a.jsonl", "a.csv")
        ),
        ("a.parquet", gzip.compress(b"PAR1", mtime=0), "parquet inside gzip"),
        ("a.jsonl", gzip.compress(b"PAR1", mtime=0), "parquet inside gzip"),
        *(
            (name, head, "a web page or XML, not the file itself")
            for name in ("a.jsonl", "a.parquet", "a.csv", "a.arrow")
            for head in (b"<!DOCTYPE html>\n<html>", b"\n<?xml version='1.0'?><Error>AccessDenied")
        ),
    ],
)
def test_what_is_not_what_its_suffix_says_is_refused(tmp_path: Path, name: str, head: bytes, problem: str) -> None:
    (tmp_path / name).write_bytes(head)
    fault = classify(name, str(tmp_path / name), None).fault
    assert fault is not None
    assert fault.what == problem


@pytest.mark.parametrize(
    "text", ["%PDF-1.7 is how a file begins", "WARC/1.0", "version https://git-lfs", "[1] is prose"]
)
def test_a_text_that_is_asked_for_begins_as_it_likes(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.txt").write_text(text)
    assert classify("a.txt", str(tmp_path / "a.txt"), "text").fault is None


def test_every_suffix_belongs_to_one_format() -> None:
    told = [(suffix, format.name) for format in FORMATS.values() for suffix in format.suffixes]
    assert len(dict(told)) == len(told)
    for suffix, name in told:
        found = by_suffix(f"A{suffix.upper()}.gz")
        assert found is not None
        assert found.name == name
    assert by_suffix("dataset_info.json") is None


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
