"""CSV and TSV: each value as it stands, and a quote that is never closed is told."""

import csv
import io
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from packtool.text.conversations.layouts import RecordLayout
from packtool.text.corpus.formats import FORMATS
from packtool.text.corpus.records import Fields
from packtool.text.faults import Fault
from tests.text.corpus.reading import together


def read(data: str | bytes, format: str = "csv", limit: int = 1 << 20, **fields: Any) -> tuple[list[Any], list[Any]]:
    stream = io.BytesIO(data if isinstance(data, bytes) else data.encode())
    documents, rejects = together(FORMATS[format].read(stream, Fields(**fields), limit))
    return documents, [(record, code) for record, code, _ in rejects]


VALUES = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))


@given(st.lists(st.tuples(VALUES, VALUES)), st.sampled_from(["\n", "\r\n"]), st.sampled_from([1, 2]))
def test_every_value_comes_back(rows: list[tuple[str, str]], ending: str, quoting: Any) -> None:
    out = io.StringIO(newline="")
    csv.writer(out, lineterminator=ending, quoting=quoting).writerows([("id", "text"), *rows])
    assert read(out.getvalue()) == ([text for _, text in rows], [])
    assert read("\ufeff" + out.getvalue(), text="id") == ([name for name, _ in rows], [])


@given(st.lists(st.text(st.characters(blacklist_characters="\0\t\r\n", blacklist_categories=["Cs"]))))
@example(['"Yes', "mid", 'no"', "x"])
def test_a_quote_is_a_character_of_tsv(texts: list[str]) -> None:
    lines = "".join(f"{number}\t{text}\n" for number, text in enumerate(texts))
    assert read("id\ttext\n" + lines, "tsv") == (texts, [])


@pytest.mark.parametrize("rows", ['1,"whole"\n2,"cut off he', '1,a\n2,"b\n' + "3,c\n" * 10_000, '1,x\n2,"'])
def test_a_quote_that_is_never_closed_is_told(rows: str) -> None:
    with pytest.raises(Fault, match=r"a quote is opened in row 2 and never closed: all that follows is lost"):
        read("id,text\n" + rows)


def test_a_quote_that_closes_in_another_row_is_told() -> None:
    found, rejects = read('id,text\n1,"open\n2,"said"\n3,c\n4,"a" b\n5,"d ""e"""\n')
    assert (found, rejects) == (["c", 'd "e"'], [(1, "bad-table-row"), (3, "bad-table-row")])


def test_rows_are_bounded() -> None:
    with pytest.raises(Fault, match="a row has more than 100 characters, or its quote is never closed"):
        read('id,text\n1,"' + "two words\n" * 20 + '"\n', limit=100)
    with pytest.raises(Fault, match="a row has more than 100 characters"):
        read("id,text\n1," + "a" * 200, limit=100)


def test_a_zero_byte_is_one_bad_row() -> None:
    for format, mark in (("csv", ","), ("tsv", "\t")):
        rows = f"id{mark}text\n1{mark}a\0b\n\0{mark}c\n3{mark}d\n"
        assert read(rows, format) == (["d"], [(1, "damaged-file"), (2, "damaged-file")])


def test_bytes_that_are_not_utf8_are_one_bad_row() -> None:
    assert read(b"id,text\n1,\xff\n2,\xc3\xa9\n\n3\n") == (["é"], [(1, "invalid-utf8"), (3, "bad-table-row")])
    assert read(b"", "csv") == ([], [])


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ("id,body", "no text field 'text'; there are id, body"),
        ("text,text", "2 columns are called 'text'"),
        ('id,"text', "a quote is opened in row 0 and never closed"),
    ],
)
def test_a_header_without_the_column_is_refused(header: str, message: str) -> None:
    with pytest.raises(Fault, match=message):
        read(header + "\n1,a\n")


def test_a_doubled_column_is_a_fault_of_what_it_is_read_for() -> None:
    for fields, code in ((Fields(), "missing-text"), (Fields(columns=("id",)), "bad-field")):
        name = fields.columns[0] if fields.columns else "text"
        with pytest.raises(Fault) as raised:
            list(FORMATS["csv"].read(io.BytesIO(f"text,{name},{name}\na,b,c\n".encode()), fields, 1000))
        assert raised.value.code == code


def test_conversations_and_scalars_are_read(tmp_path: Any) -> None:
    data = 'id,messages,tools\n7,"[{""role"": ""user"", ""content"": ""a""}]",\n'
    fields = Fields(columns=("id",), layout=RecordLayout("messages"))
    [batch] = FORMATS["csv"].read(io.BytesIO(data.encode()), fields, 1000)
    assert [talk.messages for talk in batch.documents] == [({"role": "user", "content": "a"},)]
    assert (batch.columns, batch.numbers, batch.records, batch.bytes) == ([["7"]], [1], 1, len(data))
