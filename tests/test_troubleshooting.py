"""Every code of an error or warning has its entry in docs/troubleshooting.md, and every entry its code."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from packtool.text.corpus.records import REASONS
from packtool.warnings import CODES
from tests.sources import parsed

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
CODE = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)+")
RAISES = re.compile(r"(Error|Warning|Reject|warn|_?reject|_?bad_\w+|_?damaged|_?problem)$")
"""Names of what takes a code as its first argument."""
PASSED_ON = {
    "DataError(code, what, remedy=remedy, where=where)",
    "UsageError(code, what, remedy=remedy, where=where)",
    "UsageError(code, what, remedy=f'give {give}', where=str(place))",
    "DataError(code, f'the tokenizers library {what} ({why})', remedy=remedy, where='tokenizer.json')",
    "DataError(reject.code, reject.reason, remedy=remedy, where=where)",
    "warnings.warn(PacktoolWarning(code, what, remedy=remedy, where=where), stacklevel=2)",
}
"""Calls whose code was made elsewhere; any attribute called `code` is another."""


def calls(source: str) -> Iterator[ast.Call]:
    for node in ast.walk(parsed(source)):
        if isinstance(node, ast.Call) and node.args:
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if RAISES.search(name):
                yield node


def codes(source: str) -> Iterator[str]:
    """Codes that a module may raise or warn with."""
    for call in calls(source):
        first = call.args[0]
        for given in call.args[:2]:  # a rejection begins with the record's number
            if isinstance(given, ast.Constant) and isinstance(given.value, str) and CODE.fullmatch(given.value):
                yield given.value
        if isinstance(first, ast.JoinedStr) and ast.unparse(first) == "f'no-{kind}'":
            yield from ("no-bos", "no-eos")


def made() -> set[str]:
    found = {*CODES, *REASONS}
    for path in (ROOT / "packtool").rglob("*.py"):
        found |= set(codes(path.read_text(encoding="utf-8")))
    # What Typer and the system refuse, and what is said of other kinds of datasets, are tables: their codes are strings
    # on their own.
    tables = [ROOT / "packtool" / name for name in ("cli/failures.py", "formats/manifest.py")]
    for node in [node for table in tables for node in ast.walk(parsed(table.read_text(encoding="utf-8")))]:
        if isinstance(node, ast.Tuple) and node.elts and isinstance(node.elts[0], ast.Constant):
            found.add(str(node.elts[0].value))
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
            found.add(str(node.value.value))
    return {code for code in found if CODE.fullmatch(code)}


def documented() -> list[str]:
    return re.findall(r"^### (\S+)$", PAGE, re.MULTILINE)


def test_every_code_is_documented() -> None:
    assert sorted(made() - set(documented())) == []


def test_every_entry_has_a_code_that_exists() -> None:
    assert sorted(set(documented()) - made()) == []
    assert len(documented()) == len(set(documented()))


def test_every_entry_says_something() -> None:
    entries = re.split(r"^### (\S+)$", PAGE, flags=re.MULTILINE)[1:]
    empty = [code for code, body in zip(entries[::2], entries[1::2], strict=True) if not body.strip("\n").strip()]
    assert empty == []


@pytest.mark.parametrize("path", sorted((ROOT / "packtool").rglob("*.py")), ids=lambda path: path.name)
def test_codes_are_written_out(path: Path) -> None:
    """A code that is put together elsewhere would escape this test."""
    for call in calls(path.read_text(encoding="utf-8")):
        name = ast.unparse(call.func)
        if name.rpartition(".")[2] not in ("UsageError", "DataError", "PacktoolError", "warn"):
            continue
        first = call.args[0]
        known = isinstance(first, ast.Constant) or (isinstance(first, ast.Attribute) and first.attr == "code")
        assert known or ast.unparse(call) in PASSED_ON or ast.unparse(first) == "f'no-{kind}'", ast.unparse(call)


def test_a_new_code_would_be_found() -> None:
    assert list(codes("raise DataError('brand-new', 'x', remedy='y')")) == ["brand-new"]
    assert list(codes("warn('other-new', 'x', remedy='y')")) == ["other-new"]
