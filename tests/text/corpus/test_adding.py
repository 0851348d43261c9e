"""A format of input is one file and one word, as CONTRIBUTING says; the example there is the one added."""

from pathlib import Path

import pytest

from tests.added import copy_of, examples_of, manifest, packtool, replace

ROWS = 20_000


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package with the format of CONTRIBUTING, and a file that would be divided if it were lines."""
    place = copy_of(tmp_path_factory.mktemp("added"), "packtool")
    (code,) = examples_of("Adding a format of input")
    (place / "packtool/text/corpus/formats/psv.py").write_text(code, encoding="utf-8")
    replace(place / "packtool/options/names.py", '"csv", "tsv"]', '"csv", "tsv", "psv"]')
    text = "words, " * 150
    rows = [f'{number}|"row {number},\nand a bar: | and {text}"\n' for number in range(ROWS)]
    (place / "a.psv").write_text("id|text\n" + "".join(rows))
    return place


def test_every_row_is_one_document(place: Path) -> None:
    assert packtool(place, "tokenize", "a.psv", "-o", "o", "--id-field", "id", "-q") == ""
    assert manifest(place / "o")["counts"]["documents"] == ROWS
    assert packtool(place, "tokenize", "a.psv", "-o", "p", "--format", "psv", "--include", "*.psv", "-q") == ""
    assert manifest(place / "p")["counts"] == manifest(place / "o")["counts"]


def test_it_is_known_wherever_formats_are(place: Path) -> None:
    seen = packtool(place, "tokenize", "a.psv", "-o", "q", "--dry-run")
    assert "a.psv: psv, 21.7 MB\n" in seen
    assert "read: text; not read: id" in seen
    (place / "a.x").touch()
    assert "csv, tsv or psv" in packtool(place, "tokenize", "a.x", "-o", "r")
