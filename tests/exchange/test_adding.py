"""A format is one file, one line in each registry and a reader, as CONTRIBUTING says; the example there is added."""

import re
from pathlib import Path

import pytest

from tests.added import copy_of, examples_of, replace, run
from tests.stores import write_store

COPIED = ("packtool", "tests", "pyproject.toml", "docs/coming-from.md")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package and of the tests of formats, with the format of CONTRIBUTING, which no page documents."""
    place = copy_of(tmp_path_factory.mktemp("added"), *COPIED)
    code, reader, *_ = examples_of("Adding a format")
    (place / "packtool/exchange/formats/lines.py").write_text(code, encoding="utf-8")
    for file, before, after in (
        ("packtool/options/names.py", '    "megatron": (', '    "lines": ("*.ids",),\n    "megatron": ('),
        ("packtool/options/names.py", 'ImportName = Literal["megatron",', 'ImportName = Literal["lines", "megatron",'),
        ("packtool/options/names.py", '    "megatron",\n', '    "lines",\n    "megatron",\n'),
        ("tests/exchange/readers.py", "\n\nREADERS: ", f"\n\n{reader}\n\nREADERS: "),
        (
            "tests/exchange/readers.py",
            '    "megatron": megatron,\n',
            '    "lines": lines,\n    "megatron": megatron,\n',
        ),
    ):
        replace(place / file, before, after)
    write_store(place / "store", [3, 2])
    return place


def test_the_laws_hold_and_what_is_missing_is_named(place: Path) -> None:
    tests = ["tests/exchange/test_exchange.py", "tests/exchange/test_content.py"]
    found = run(place, "pytest", "-v", "-p", "no:cacheprovider", "-k", "lines and not arrow_file", *tests).stdout
    lacking = "WRITERS in tests/exchange/foreign.py; the table of trainers in docs/coming-from.md"
    assert f"E       AssertionError: lines is missing from {lacking}" in found
    counts = re.search(r"1 failed, (\d+) passed", found)
    assert counts is not None, found
    assert int(counts[1]) >= 15


def test_it_is_a_choice_of_both_commands(place: Path) -> None:
    assert run(place, "packtool", "export", "store", "-o", "out", "-f", "lines", "-q").stderr == ""
    assert (place / "out/tokens-00000.ids").read_text(encoding="utf-8").split()[2::2] == ["0", "0"]
    for command in ("export", "import"):
        assert "lines, megatron" in run(place, "packtool", command, "-h").stdout
    assert run(place, "packtool", "import", "out", "-o", "back", "-f", "lines", "-q").stderr == ""
    (place / "out/tokens-00000.ids").write_text("1 2\n3 x\n", encoding="utf-8")
    refused = run(place, "packtool", "import", "out", "-o", "no", "-f", "lines")
    assert "tokens-00000.ids: line 2 holds something else than ids" in refused.stderr
