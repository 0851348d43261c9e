"""Every code of an error or warning says on a page what it means, and every entry has its code."""

import ast
import re
from pathlib import Path

import code_list
import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
PASSED_ON = {
    "DataError(code, what, remedy=remedy, where=where)",
    "UsageError(code, what, remedy=remedy, where=where)",
    "UsageError(code, what, remedy=f'give {give}', where=where)",
    "DataError(code, f'the tokenizers library {what} ({why})', remedy=remedy, where='tokenizer.json')",
    "DataError(reject.code, reject.reason, remedy=remedy, where=where)",
    "warnings.warn(PacktoolWarning(code, what, remedy=remedy, where=where), stacklevel=2)",
}
"""Calls whose code was made elsewhere; any attribute called `code` is another."""


def entries() -> dict[str, str]:
    """The entries that people wrote, by their codes."""
    parts = re.split(r"^### (\S+)$", PAGE, flags=re.MULTILINE)[1:]
    assert len(set(parts[::2])) == len(parts[::2])
    return dict(zip(parts[::2], parts[1::2], strict=True))


def test_every_code_says_what_it_means() -> None:
    silent = {code for code, messages in code_list.made().items() if not messages}
    assert sorted(silent - set(entries())) == [], "give these an entry in docs/troubleshooting.md"


def test_every_entry_has_a_code_that_exists_and_says_something() -> None:
    assert sorted(set(entries()) - set(code_list.made())) == []
    assert [code for code, body in entries().items() if not body.strip()] == []


@pytest.mark.parametrize("path", sorted((ROOT / "packtool").rglob("*.py")), ids=lambda path: path.name)
def test_codes_are_written_out(path: Path) -> None:
    """A code that is put together elsewhere would escape the list."""
    for call in code_list.calls(path.read_text(encoding="utf-8")):
        name = ast.unparse(call.func)
        if name.rpartition(".")[2] not in ("UsageError", "DataError", "PacktoolError", "warn"):
            continue
        first = call.args[0]
        known = isinstance(first, ast.Constant) or (isinstance(first, ast.Attribute) and first.attr == "code")
        assert known or ast.unparse(call) in PASSED_ON or ast.unparse(first) == "f'no-{kind}'", ast.unparse(call)


def test_a_new_code_would_be_found() -> None:
    assert list(code_list.codes("raise DataError('brand-new', 'x', remedy='y')")) == [("brand-new", "X. Y.")]
    assert list(code_list.codes("warn('other-new', 'x', remedy=y)")) == [("other-new", "X.")]
