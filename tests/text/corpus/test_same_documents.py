"""The same table gives the same documents, kept fields and refusals in every format, whatever the options name."""

import csv
import json
from pathlib import Path
from typing import Any, get_args

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import feather, parquet

from packtool.errors import PacktoolError
from packtool.options.names import TextFormatName
from packtool.options.tokenize import TokenizeArguments
from packtool.text.corpus.find import find_texts
from packtool.text.corpus.formats import FORMATS
from packtool.text.corpus.read import SpanReader
from packtool.text.corpus.records import Span
from tests.text.corpus.reading import WRITERS, write

NAMES = ("text", "id", "s[0]", "a.b", "a b", "s")
TEXTS = st.text("ab", min_size=1, max_size=3)
RECORDS = st.lists(st.sampled_from(NAMES), min_size=1, unique=True).flatmap(
    lambda names: st.lists(st.fixed_dictionaries(dict.fromkeys(names, TEXTS)), min_size=1, max_size=3)
)
PATHS = st.sampled_from((*NAMES, "none"))
OPTIONS = st.fixed_dictionaries(
    {"text_field": st.sampled_from((*NAMES, "text,id"))},
    optional={"id_field": PATHS, "columns": st.lists(PATHS, max_size=2)},
)
WITH_RECORDS = [name for name, format in FORMATS.items() if not format.plain]
PLAIN = [name for name, format in FORMATS.items() if format.plain]


def test_every_format_of_records_is_tried() -> None:
    assert set(WITH_RECORDS) == set(WRITERS)
    assert set(FORMATS) == set(get_args(TextFormatName))


def found(path: Path, options: dict[str, Any]) -> Any:
    """The texts of a file and the values kept with each, or the code of what is wrong with it, whole or in part."""
    try:
        texts = find_texts(TokenizeArguments(inputs=[path], output=path.parent / "o", **options))
    except PacktoolError as error:
        return error.code
    rows: list[Any] = []
    for batch in SpanReader(texts.files[0], Span(0), texts.fields):
        if batch.rejects:
            return batch.rejects[0].fault.code
        rows += zip(batch.documents, *batch.columns, strict=True)
    return rows


@given(RECORDS, OPTIONS)
@settings(max_examples=30)
@pytest.mark.filterwarnings("ignore")
def test_formats_agree(
    tmp_path_factory: pytest.TempPathFactory, records: list[dict[str, str]], options: dict[str, Any]
) -> None:
    told = {}
    for format in WITH_RECORDS:
        path = tmp_path_factory.getbasetemp() / f"same.{format}"
        WRITERS[format](path, records)
        told[format] = found(path, {**options, "format": format})
    assert all(one == told["jsonl"] for one in told.values()), told


@pytest.mark.parametrize("name", ["jsonl", "json", "parquet", "arrow"])
def test_ids_are_kept_by_no_other_option(tmp_path: Path, name: str) -> None:
    WRITERS[name](tmp_path / "a", [{"ids": [1, 2], "n": "x"}])
    options = {"format": name, "ids_field": "ids"}
    assert found(tmp_path / "a", options) == [([1, 2],)]
    assert found(tmp_path / "a", {**options, "columns": ["n"]}) == [([1, 2], "x")]
    for other in ({"columns": ["ids"]}, {"id_field": "ids"}):
        assert found(tmp_path / "a", {**options, **other}) == "bad-field"


@pytest.mark.parametrize("name", ["parquet", "arrow", "csv", "tsv"])
def test_two_columns_of_one_name_are_refused_if_they_are_read(tmp_path: Path, name: str) -> None:
    path = tmp_path / "a"
    if name in ("csv", "tsv"):
        path.write_text("text,x,x\na,b,c\n".replace(",", {"csv": ",", "tsv": "\t"}[name]))
    else:
        columns = pa.table([["a"], ["b"], ["c"]], names=["text", "x", "x"])
        {"parquet": parquet.write_table, "arrow": feather.write_feather}[name](columns, path)
    assert found(path, {"format": name}) == [("a",)]
    assert found(path, {"format": name, "columns": ["text"]}) == [("a", "a")]
    assert found(path, {"format": name, "columns": ["x"]}) in ("missing-text", "bad-field")
    assert found(path, {"format": name, "text_field": "x"}) == "missing-text"


@pytest.mark.parametrize("name", [*WITH_RECORDS, *PLAIN])
def test_a_kept_field_that_a_file_lacks_is_null_in_every_format(tmp_path: Path, name: str) -> None:
    if name in PLAIN:
        (tmp_path / "a").write_text("words")
    else:
        WRITERS[name](tmp_path / "a", [{"text": "words"}])
    assert found(tmp_path / "a", {"format": name, "columns": ["url", "a.b", "s[0]"]}) == [("words", None, None, None)]
    assert found(tmp_path / "a", {"format": name, "id_field": "url"}) == "bad-field"


def test_a_value_of_a_table_may_be_longer_than_the_library_allows(tmp_path: Path) -> None:
    csv.field_size_limit(1 << 17)
    talk = [{"role": "user", "content": "a" * 200_000}, {"role": "assistant", "content": "b"}]
    path = write(tmp_path / "a.csv", [{"id": 1, "messages": json.dumps(talk)}])
    assert find_texts(TokenizeArguments(inputs=[path], output=tmp_path / "o")).kind == "conversations"
