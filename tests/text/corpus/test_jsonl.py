"""JSON Lines, read in any division, give the same documents and name the same bad lines. fuzz.py compares more of them
with an independent parse."""

import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from packtool.text.corpus.jsonl import is_utf8, read_jsonl
from packtool.text.corpus.records import EXCERPT, Fields
from tests.text.corpus.reading import together


def read(data: bytes, field: str = "text") -> tuple[list[str], list[tuple[int, str, str]]]:
    return together(read_jsonl(io.BytesIO(data), Fields(field)))


def documents(data: bytes, field: str = "text") -> list[str]:
    found, rejects = read(data, field)
    assert not rejects
    return found


def test_nested_and_dotted_fields() -> None:
    data = b'{"a": {"b": "in"}}\n{"a.b": "dotted"}\n{"a": {"b": "in"}, "a.b": "out"}\n{"a": 5, "a.b": "out"}\n'
    assert documents(data, "a.b") == ["in", "dotted", "out", "out"]
    assert read(b'{"a": {"c": 1}}\n{"a": {"b": 1}}\n', "a.b")[1] == [
        (1, "missing-text", "no text field 'a.b'; there are a"),
        (2, "missing-text", "text field 'a.b' is a number, not a string"),
    ]


def test_each_bad_line_has_its_reason() -> None:
    bad = {
        b'{"text": "a"': ("invalid-json", "not valid JSON: Expecting ',' delimiter at column 13"),
        b'{"text": "a"} {"text": "b"}': ("invalid-json", "several objects on one line: jq -c . divides them"),
        b'{"text": "a"},': (
            "invalid-json",
            "an object and a comma, as an array's elements have it: sed 's/,$//' removes it",
        ),
        b'{"text": "a"} b': ("invalid-json", "not valid JSON: Extra data at column 15"),
        b"\0" * 16: ("damaged-file", "a run of zero bytes, as in a file that was not written to its end"),
        b'["text"]': ("invalid-json", "not a JSON object but an array"),
        b'"text"': ("invalid-json", "not a JSON object but a string"),
        b'{"text": "\xe9"}': ("invalid-utf8", "not valid UTF-8"),
        b'{"text": "\xed\xa0\x80"}': ("invalid-utf8", "not valid UTF-8"),
        b'{"text": "\\ud83d"}': ("lone-surrogate", "lone surrogate in text field 'text'"),
        b'{"text": "\\ude00\\ud83d"}': ("lone-surrogate", "lone surrogate in text field 'text'"),
        b'{"TEXT": "a"}': ("missing-text", "no text field 'text'; there are TEXT"),
        b"{}": ("missing-text", "no text field 'text'; there are no fields"),
        b'{"text": null}': ("missing-text", "text field 'text' is null, not a string"),
        b'{"text": true}': ("missing-text", "text field 'text' is true or false, not a string"),
        b'{"text": ["a"]}': ("missing-text", "text field 'text' is a list of strings, such as lines or paragraphs"),
        b'{"text": ["a", 1]}': ("missing-text", "text field 'text' is an array, not a string"),
        b'{"text": {}}': ("missing-text", "text field 'text' is an object, not a string"),
        b"[" * 100_000: ("invalid-json", "JSON nested too deeply"),
    }
    good = b'{"text": "good"}'
    data = b"\n".join(line for pair in bad for line in (good, pair)) + b"\n"
    expected = [(2 * number, *reason) for number, reason in enumerate(bad.values(), 1)]
    assert read(data) == (["good"] * len(bad), expected)


def test_an_object_over_two_lines_is_two_bad_lines() -> None:
    # One line too many and one too few: counting objects alone would not notice.
    data = b'{"text":"a"}{"text":"b"}\n{"text":\n"c"}\n'
    assert [line for line, _, _ in read(data)[1]] == [1, 2, 3]
    # Nor would looking at how the first line ends.
    data = b'{"text":"a"} {"text":"b"}\r\n{"text":"c","x":[{},\n{}]}\r\n'
    assert [line for line, _, _ in read(data)[1]] == [1, 2, 3]


def test_nesting_is_too_deep_at_the_same_depth_however_deep_the_caller() -> None:
    levels = [*range(900, 1010), *range(1450, 1550), 100_000]  # where Python 3.11 and 3.12 end
    data = b"\n".join(b'{"text": "%d", "x": %s%s}' % (n, b"[" * n, b"]" * n) for n in levels) + b"\n"

    def deeper(levels: int) -> tuple[list[str], list[tuple[int, str, str]]]:
        return deeper(levels - 1) if levels else read(data)

    shallow = deeper(0)
    assert shallow == deeper(300)
    assert len(shallow[0]) + len(shallow[1]) == len(levels)
    assert {reason for _, _, reason in shallow[1]} == {"JSON nested too deeply"}


def test_a_line_above_the_limit_leaves_an_excerpt() -> None:
    data = b'{"text": "a"}\n{"text": "' + b"0" * 3_000_000 + b'"}\n{"text": "c"}\n'
    found = [
        (batch.records, batch.bytes, *batch.rejects) for batch in read_jsonl(io.BytesIO(data), Fields(), limit=1000)
    ]
    [reject] = [each for batch in found for each in batch[2:]]
    assert (reject.fault.code, reject.size) == ("record-too-large", 3_000_012)
    assert reject.fault.what == "a record of 3,000,012 bytes, above the limit of 1,000"
    assert reject.raw == data[14 : 14 + EXCERPT]
    assert sum(batch[0] for batch in found) == 3
    assert sum(batch[1] for batch in found) == len(data)


def test_a_chunk_of_bad_lines_comes_in_bounded_batches() -> None:
    found = list(read_jsonl(io.BytesIO(b"x\n" * 10_000), Fields()))
    assert [len(batch.rejects) for batch in found] == [4096, 4096, 1808]
    assert [batch.rejects[0].record for batch in found] == [1, 1, 1]
    assert sum(batch.records for batch in found) == 10_000


@given(
    st.text(min_size=1).filter(lambda name: name != "n" and (name.isprintable() or "." not in name)),
    st.sampled_from([Fields, None]),
)
def test_fields_of_any_name_are_read(name: str, plain: object) -> None:
    name = name.encode(errors="ignore").decode() or '"\\\n'
    record = json.dumps({name: "a", "n": 1}).encode()
    fields = Fields(name, columns=("n",)) if plain else Fields("n", ids=True)
    data = record if plain else json.dumps({"n": [1, 2], name: 5}).encode()
    [batch] = read_jsonl(io.BytesIO(data), fields)
    assert (batch.documents, batch.columns) == ((["a"], [["1"]]) if plain else ([[1, 2]], []))


@pytest.mark.parametrize("size", [10, 1 << 20])
@pytest.mark.parametrize(
    ("end", "valid"),
    [
        ("é".encode(), True),
        ("\U0010ffff".encode(), True),
        (b"\xc3", False),  # the character goes on
        (b"\xc0\x80", False),  # longer than need be
        (b"\xed\xa0\x80", False),  # a surrogate
        (b"\xf4\x90\x80\x80", False),  # behind the last code point
        (b"\xff", False),
    ],
)
def test_small_and_large_texts_are_checked_alike(size: int, end: bytes, valid: bool) -> None:
    data = b"a" * size + end
    assert is_utf8(data) == is_utf8(bytearray(data)) == valid
