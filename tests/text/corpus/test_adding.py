"""A filter is added in two places, as CONTRIBUTING says; the example there is the one added."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.added import copy_of, examples_of, manifest, packtool, replace
from tests.text.tokenizing.runs import jsonl

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
