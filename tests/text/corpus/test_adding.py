"""A filter is added in two places, as CONTRIBUTING says; the example there is the one added."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.text.tokenizing.runs import jsonl

ROOT = Path(__file__).parents[3]
LINES = ["one line", "two\nlines", "", "three\nlines\nhere"]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package with the filter of CONTRIBUTING, and a corpus."""
    place = tmp_path_factory.mktemp("added")
    shutil.copytree(ROOT / "packtool", place / "packtool", ignore=shutil.ignore_patterns("__pycache__"))
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("## Adding a filter")[2]
    rule, declaration = [found[1] for found in re.finditer(r"```text\n(.*?)```", text, re.DOTALL)][:2]
    for file, before, added in (
        ("text/corpus/filters.py", "    # Splitting stops", rule),
        ("options/tokenize.py", "    min_words: Annotated[", declaration),
    ):
        path = place / "packtool" / file
        source = path.read_text(encoding="utf-8")
        assert source.count(before) == 1
        path.write_text(source.replace(before, added + before), "utf-8")
    (place / "a.jsonl").write_bytes(jsonl(LINES))
    return place


def packtool(place: Path, *arguments: str) -> str:
    command = [sys.executable, "-m", "packtool", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(place), "COLUMNS": "100"}
    result = subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True, check=False)
    return result.stdout + result.stderr


def test_it_leaves_documents_out_and_counts_them(place: Path) -> None:
    assert packtool(place, "tokenize", "a.jsonl", "-o", "o", "--min-lines", "2", "-q", "-j", "1") == ""
    manifest = json.loads((place / "o/manifest.json").read_text(encoding="utf-8"))
    assert manifest["options"]["min_lines"] == 2
    assert (manifest["counts"]["documents"], manifest["counts"]["filtered"]) == (2, 2)
    assert manifest["counts"]["filtered_characters"] == len("one line")


def test_it_is_in_the_help_and_refused_with_ids(place: Path) -> None:
    help = " ".join(packtool(place, "tokenize", "-h").split())
    assert "Leave out documents with fewer lines. Only for texts or conversations." in help
    found = packtool(place, "tokenize", "a.jsonl", "-o", "p", "--min-lines", "2", "--ids-field", "ids")
    assert "--min-lines: has no effect on token ids. " in found
