"""Filters keep what is within their bounds, and count what they drop; one is added as CONTRIBUTING says."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from packtool.options.declare import declared
from packtool.options.tokenize import TokenizeArguments
from packtool.text.corpus.filters import OF_TEXTS, OF_TOKENS, DocumentCounts, Filters
from tests.added import copy_of, examples_of, manifest, packtool, replace
from tests.text.tokenizing.runs import jsonl


@given(st.text(st.sampled_from("ab \n\u00a0")), st.integers(0, 6), st.integers(0, 10), st.integers(0, 10))
def test_filters(text: str, min_words: int, min_chars: int, max_chars: int) -> None:
    keep = len(text.split()) >= min_words and min_chars <= len(text) <= max_chars
    filters = Filters({"min_words": min_words, "min_chars": min_chars, "max_chars": max_chars})
    assert filters.of_texts([text, text]).tolist() == [keep, keep]
    assert not filters.need_tokens
    counted = DocumentCounts()
    counted.add([text], np.array([5]))
    assert counted == DocumentCounts(1, len(text.split()), len(text), 5)
    counted.add([text], None)
    assert counted == DocumentCounts(2, 2 * len(text.split()), 2 * len(text), 5, 1)


def test_every_filter_has_an_option_and_every_option_a_filter() -> None:
    options = {
        name
        for name, each in declared(TokenizeArguments).items()
        if each.option.group == "Which documents" and name != "on_error"
    }
    filters = OF_TEXTS.keys() | OF_TOKENS.keys()
    assert filters - options == set(), "declare it in packtool/options/tokenize.py"
    assert options - filters == set(), "add it to a table in packtool/text/corpus/filters.py"


def test_every_filter_is_tested() -> None:
    here = Path(__file__).read_text(encoding="utf-8")
    for name in OF_TEXTS:
        assert f'"{name}": ' in here, f"{name} is missing from test_filters"


LINES = ["one line", "two\nlines", "", "three\nlines\nhere"]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package with the filter of CONTRIBUTING, and a corpus."""
    place = copy_of(tmp_path_factory.mktemp("added"), "packtool")
    rule, declaration = examples_of("Adding a filter")
    for file, before, added in (
        ("text/corpus/filters.py", "    # Splitting stops", rule),
        ("options/tokenize.py", "    min_words: Annotated[", declaration),
    ):
        replace(place / "packtool" / file, before, added + before)
    (place / "a.jsonl").write_bytes(jsonl(LINES))
    return place


def test_it_leaves_documents_out_and_counts_them(place: Path) -> None:
    assert packtool(place, "tokenize", "a.jsonl", "-o", "o", "--min-lines", "2", "-q", "-j", "1") == ""
    made = manifest(place / "o")
    assert made["options"]["min_lines"] == 2
    assert (made["counts"]["documents"], made["counts"]["filtered"]) == (2, 2)
    assert made["counts"]["filtered_characters"] == len("one line")


def test_it_is_in_the_help_and_refused_with_ids(place: Path) -> None:
    help = " ".join(packtool(place, "tokenize", "-h").split())
    assert "Leave out documents with fewer lines. Only for texts or conversations." in help
    found = packtool(place, "tokenize", "a.jsonl", "-o", "p", "--min-lines", "2", "--ids-field", "ids")
    assert "--min-lines: has no effect on token ids. " in found
