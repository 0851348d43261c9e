"""JSON over several lines gives the documents of the same records in lines."""

import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from packtool.text.corpus.formats import json as json_values
from packtool.text.corpus.formats.json import read_json
from packtool.text.corpus.records import Fields
from packtool.text.faults import Fault
from tests.text.corpus.reading import Dribble, together

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)
RECORDS = st.lists(st.fixed_dictionaries({"text": st.text()}, optional={"x": VALUES}))


def read(data: str | bytes, step: int = 1 << 20, limit: int = 1 << 20) -> tuple[list[Any], list[tuple[int, str]]]:
    stream = Dribble(data if isinstance(data, bytes) else data.encode(), step)
    batches = list(read_json(stream, Fields(), limit))
    assert sum(batch.bytes for batch in batches) == len(stream.getvalue())
    documents, rejects = together(batches)
    return documents, [(record, code) for record, code, _ in rejects]


@given(RECORDS, st.sampled_from([None, 0, 2, "\t"]), st.booleans(), st.sampled_from([1, 5, 1 << 20]))
def test_an_array_is_its_elements(records: list[dict[str, Any]], indent: Any, ascii_only: bool, step: int) -> None:
    texts = [record["text"].encode(errors="ignore").decode() for record in records]
    array = json.dumps([{**record, "text": text} for record, text in zip(records, texts, strict=True)], indent=indent)
    assert read(array, step) == (texts, [])
    assert read(b"\xef\xbb\xbf \r\n" + array.encode() + b"\n ", step) == (texts, [])
    objects = "\n".join(json.dumps({"text": text}, indent=indent, ensure_ascii=ascii_only) for text in texts)
    assert read(objects, step) == (texts, [])


def test_batches_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_values, "_RECORDS", 3)
    data = json.dumps([{"text": str(number)} if number != 5 else number for number in range(10)]).encode()
    batches = list(read_json(io.BytesIO(data), Fields(), 100))
    assert [batch.records for batch in batches] == [3, 3, 3, 1]
    assert batches[1].rejects[0].record == 3
    assert batches[1].rejects[0].fault.what == "not a JSON object but a number"


@pytest.mark.parametrize(
    ("data", "texts", "message"),
    [
        ('[{"text": "a"}, {"text": "b"', ["a"], "at record 2, it does not end; what follows is lost"),
        ('[{"text": "a"}, {"text": "b', ["a"], "at record 2, it does not end"),
        ('[{"text": "a"}, {"text": "b"}', ["a", "b"], "at record 2, the array does not end"),
        ('[{"text": "a"},', ["a"], "at record 1, the array does not end"),
        ('[{"text": "a"} {"text": "b"}]', ["a"], "at record 1, no comma follows"),
        ('[{"text": "a"},]', ["a"], "at record 2, there is only a comma before the array ends"),
        ('[{"text": "a"}]]', ["a"], "at record 2, it is not JSON"),
        ('[{"text": "a"}]\n[{"text": "b"}]\n', ["a"], "several arrays: each may be a record of its own"),
        ('{"text": "a"}, {"text": "b"}', ["a"], "objects with commas between, and no array around them"),
        ('[{"text": "%s"}]' % ("a" * 5_000_000), [], "record 1 has more than 1,000 bytes"),
    ],
)
def test_what_is_no_array_of_records_is_told(data: str, texts: list[str], message: str) -> None:
    found = []
    with pytest.raises(Fault, match=message):
        for batch in read_json(io.BytesIO(data.encode()), Fields(), 1000):
            found += batch.documents
    assert found == texts


def test_empty_arrays_and_bad_elements() -> None:
    assert read("[]") == read("") == read(" [ ] ") == ([], [])
    assert read('[{"text": "a"}, 1, "x", [], {}, {"text": "b", "n": NaN}, {"text": 5}]') == (
        ["a", "b"],
        [(2, "invalid-json"), (3, "invalid-json"), (4, "invalid-json"), (5, "missing-text"), (7, "missing-text")],
    )
