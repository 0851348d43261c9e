"""Plain text: one document a file, one a line or one between separators; every line of a range once, none above the
limit held."""

import io
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import packtool
from packtool.errors import DataError, UsageError
from packtool.text.corpus import text as text_files
from packtool.text.corpus.records import Fields, Reject, Span
from packtool.text.corpus.text import line_chunks, read_lines, read_separated
from packtool.text.faults import Fault
from tests.stores import load
from tests.text.corpus.reading import find, only_batch, read, together
from tests.text.tokenizing.runs import ASSET, reference, stored


def test_text_files_are_one_document_or_one_a_line(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"\xef\xbb\xbfone\r\n\r\n two \nthr\xc3\xa9e")
    assert only_batch(tmp_path / "a.txt").documents == ["one\r\n\r\n two \nthr\u00e9e"]
    [file] = find(tmp_path / "a.txt", "lines")
    assert together(read(file, Span(0), "text")) == (["one", " two ", "thr\u00e9e"], [])
    (tmp_path / "b.txt").write_bytes(b"caf\xe9")
    fault = Fault("invalid-utf8", "not valid UTF-8 (read as text; or --format=lines)")
    assert only_batch(tmp_path / "b.txt").rejects == [Reject(0, fault, b"caf\xe9")]


def test_a_text_file_may_be_larger_than_a_record(tmp_path: Path) -> None:
    content = "déjà vu, 日本語 😀 " * 5
    (tmp_path / "a.txt").write_text(content)
    batch = only_batch(tmp_path / "a.txt", limit=10)
    assert (batch.documents, batch.rejects) == ([content], [])


@given(
    st.lists(st.binary(max_size=30).map(lambda line: line.replace(b"\n", b"")), max_size=30),
    st.booleans(),
    st.lists(st.integers(0, 400), max_size=5),
    st.integers(1, 50),
)
def test_ranges_cover_every_line_once(parts: list[bytes], ended: bool, cuts: list[int], chunk: int) -> None:
    data = b"\n".join(parts) + (b"\n" if ended else b"")
    bounds = sorted({0, *(cut for cut in cuts if cut < len(data))})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_files, "CHUNK", chunk)
        read = [
            bytes(piece)
            for start, stop in zip(bounds, [*bounds[1:], -1], strict=True)
            for piece in line_chunks(io.BytesIO(data), start, stop)
        ]
    assert b"".join(read) == data
    assert all(piece.endswith(b"\n") for piece in read[:-1])


@given(st.lists(st.integers(0, 60), max_size=30), st.integers(1, 40), st.integers(1, 20), st.lists(st.integers(0, 900)))
def test_lines_above_the_limit_are_rejected_and_not_held(
    lengths: list[int], limit: int, chunk: int, cuts: list[int]
) -> None:
    data = b"".join(b"%c" % (97 + n % 26) * n + b"\n" for n, length in enumerate(lengths) for n in [length])
    bounds = sorted({0, *(cut for cut in cuts if cut < len(data))})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_files, "CHUNK", chunk)
        kept: list[str] = []
        sizes: list[int] = []
        for start, stop in zip(bounds, [*bounds[1:], -1], strict=True):
            for piece in line_chunks(io.BytesIO(data), start, stop, limit):
                assert isinstance(piece, text_files.LongLine) or len(piece) <= limit + 2 + 2 * chunk
            for batch in read_lines(io.BytesIO(data), Fields(), limit, start, stop):
                kept += [str(text) for text in batch.documents]
                sizes += [batch.records]
                assert all(reject.fault.code == "record-too-large" for reject in batch.rejects)
                assert len(batch.documents) + len(batch.rejects) <= batch.records
    assert kept == [line for line in data.decode().split("\n") if 0 < len(line) <= limit]
    assert sum(sizes) == len(lengths)


def cut(data: bytes, separator: str, limit: int = 1 << 20) -> tuple[list[tuple[int, str]], list[tuple[int, str]], int]:
    """Documents and rejects, each with the line where it begins, and all lines."""
    found: list[tuple[int, str]] = []
    rejects: list[tuple[int, str]] = []
    before = 0
    size = 0
    for batch in read_separated(io.BytesIO(data), Fields(), separator, limit):
        found += [(before + line, document) for line, document in zip(batch.numbers, batch.documents, strict=True)]
        rejects += [(before + reject.record, reject.fault.code) for reject in batch.rejects]
        before += batch.records
        size += batch.bytes
    assert size == len(data.removeprefix(b"\xef\xbb\xbf"))
    return found, rejects, before


def naive(data: str, separator: str) -> list[tuple[int, str]]:
    """The same, split as a whole."""
    pattern = re.compile(re.escape(separator).replace("\\\n", "\r?\n"))
    found, at = [], 0
    for match in [*pattern.finditer(data), None]:
        piece = data[at : match.start() if match else len(data)]
        if match or piece.strip():
            found.append((1 + data.count("\n", 0, at), piece if piece.strip() else ""))
        at = match.end() if match else at
    return found


@given(
    st.lists(st.sampled_from(["a", "\n", "\n\n", "\r\n", "<|", "|>", "é", " ", "<|s|>", "bc"])),
    st.sampled_from(["\n\n", "<|s|>", "a", "\n\n\n", "|><|", "\ta"]),
    st.integers(1, 9),
)
def test_documents_are_those_of_a_split(parts: list[str], separator: str, chunk: int) -> None:
    data = "".join(parts)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_files, "CHUNK", chunk)
        found, rejects, lines = cut(data.encode(), separator)
    assert (found, rejects) == (naive(data, separator), [])
    assert lines == data.count("\n") + (data != "" and not data.endswith("\n")) or lines == data.count("\n")


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_separators_that_are_whole_lines(end: str) -> None:
    text_ = end.join(["<|s|>", "one", "two", "<|s|>", "three", "<|s|>", "", "<|s|>", "four", "<|s|>"])
    expected = [(2, f"one{end}two"), (5, "three"), (7, ""), (9, "four")]
    for data in (text_, text_ + end, "\ufeff" + text_):
        assert cut(data.encode(), "\n<|s|>\n")[0] == expected


def test_long_documents_are_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_files, "CHUNK", 10)
    data = b"ab--" + b"c\n" * 100 + b"--de--" + b"f" * 30 + b"--" + b"\xff--g" + b"\0" * 20
    found, rejects, _ = cut(data, "--", limit=25)
    assert found == [(1, "ab"), (101, "de")]
    assert rejects == [
        (1, "record-too-large"), (101, "record-too-large"), (101, "invalid-utf8"), (101, "damaged-file")
    ]  # fmt: skip


def test_a_line_of_zero_bytes_is_told() -> None:
    [batch] = read_lines(io.BytesIO(b"a\n" + bytes(50) + b"\nb\0c\n"), Fields())
    assert batch.documents == ["a", "b\0c"]
    [reject] = batch.rejects
    assert (reject.record, reject.fault.code) == (2, "damaged-file")
    assert reject.fault.what == "a run of zero bytes, as in a file that was not written to its end"


def test_tokenize_cuts_text_files(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n\ntwo\n\n\n\nthree\n")
    found = stored(tmp_path / "a.txt", tmp_path / "s", separator="\\n\\n")
    assert found == reference(["one", "two", "three\n"])
    assert load(tmp_path / "s")["counts"]["empty"] == 1
    packtool.pack(tmp_path / "s", tmp_path / "p", strategy="bfd", sequence_length=16)
    assert packtool.find(tmp_path / "p", "a.txt:7", store=tmp_path / "s").documents == [2]
    (tmp_path / "b.txt").write_bytes(b"ok--\xff\n--ok")
    with pytest.raises(DataError, match=r"b\.txt:1: not valid UTF-8"):
        packtool.tokenize(tmp_path / "b.txt", tmp_path / "t", tokenizer=ASSET, separator="--")


@pytest.mark.parametrize("options", [{}, {"dry_run": True}])
def test_a_separator_is_for_plain_text(tmp_path: Path, options: dict[str, Any]) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": "a"}\n')
    with pytest.raises(UsageError, match=r"separator: has no effect on jsonl, as which .*a\.jsonl is read\. Leave"):
        packtool.tokenize(tmp_path / "a.jsonl", tmp_path / "s", tokenizer=ASSET, separator="x", **options)
    with pytest.raises(UsageError, match="separator: an empty separator"):
        packtool.tokenize(tmp_path / "a.jsonl", tmp_path / "s", tokenizer=ASSET, separator="")
    with pytest.raises(UsageError, match="has no effect on lines"):
        packtool.tokenize(tmp_path / "a.jsonl", tmp_path / "s", tokenizer=ASSET, separator="x", format="lines")
