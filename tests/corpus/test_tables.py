"""Tables of values: one document a row, every column text, whatever it looks like."""

from __future__ import annotations

from pathlib import Path

import pytest

import packtool
from packtool.corpus.records import Span
from packtool.errors import DataError
from tests.corpus.reading import find, read
from tests.tokenizing.runs import ASSET, documents


@pytest.mark.parametrize(("name", "mark"), [("a.csv", ","), ("a.tsv", "\t"), ("a.dat", ",")])
def test_ten_thousand_rows_are_ten_thousand_documents(tmp_path: Path, name: str, mark: str) -> None:
    texts = [f"document {number}" for number in range(10_000)]
    rows = "".join(f"{number}{mark}{text}\n" for number, text in enumerate(texts))
    (tmp_path / name).write_text(f"id{mark}text\n{rows}")
    (tmp_path / "lines.txt").write_text("\n".join(texts))
    packtool.tokenize(tmp_path / name, tmp_path / "rows", tokenizer=ASSET)
    packtool.tokenize(tmp_path / "lines.txt", tmp_path / "lines", tokenizer=ASSET, format="lines")
    assert documents(tmp_path / "rows") == documents(tmp_path / "lines")
    assert len(documents(tmp_path / "rows")) == 10_000


def test_a_table_without_the_column_is_refused_with_the_columns_it_has(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,body\n1,a\n")
    with pytest.raises(DataError) as error:
        packtool.tokenize(tmp_path / "a.csv", tmp_path / "store", tokenizer=ASSET)
    assert str(error.value) == (
        f"{tmp_path / 'a.csv'}: no column 'text'; there are id, body. "
        "Name the field with --text-field or --conversations, or give --on-error skip or quarantine."
    )


def test_a_column_that_begins_with_numbers_may_go_on_with_words(tmp_path: Path) -> None:
    beyond_a_block = 9000 * ("1," + "a" * 2000 + "\n")
    assert len(beyond_a_block) > 1 << 24
    (tmp_path / "a.csv").write_text("id,text\n" + beyond_a_block + "x,b\n")
    [file] = find(tmp_path / "a.csv")
    batches = list(read(file, Span(0), "text"))
    assert [batch.rejects for batch in batches] == [[]] * len(batches)
    assert sum(len(batch.documents) for batch in batches) == 9001
