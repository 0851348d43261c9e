"""Tests lie where a newcomer looks for them: those of `packtool/x/y.py` in `tests/x/test_y.py`.

A package's `__init__.py` is tested in the file of the package's name (`tests/packing/test_packing.py`), a script in
`tests/scripts/`. What many modules do together is tested in the files listed here, with the reason.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MODULES = {path.relative_to(ROOT / "packtool"): path for path in (ROOT / "packtool").rglob("*.py")}
TESTS = {path.relative_to(ROOT / "tests") for path in (ROOT / "tests").rglob("test_*.py")}

SHORT = 15
"""Statements in functions. Modules with fewer are tested by the examples in their docstrings and by what uses them."""

ACROSS = {
    "browser/": "pages as a browser shows them",
    "commands/test_dry_run.py": "what every command says it would write, against what it writes",
    "commands/test_fields.py": "ids, columns and tables, from files to what finds them again",
    "corpus/test_fuzz.py": "random corpora through every reader, against an independent parse",
    "faults/": "every command, interrupted and damaged at every place",
    "interop/": "what other tools read and write",
    "options/test_adding.py": "CONTRIBUTING's example of an option, from declaration to manifest",
    "test_claims.py": "what the documentation says of papers",
    "test_configs.py": "the files in configs/",
    "test_docs.py": "the documentation",
    "test_golden.py": "the bytes of every strategy and shuffle",
    "test_imports.py": "who imports whom",
    "test_laws.py": "what every strategy keeps to",
    "test_mirror.py": "the files themselves",
    "test_package.py": "the built package, installed",
    "test_representations.py": "what every command returns, at a Python prompt",
    "test_troubleshooting.py": "every error and warning code, and its page",
    "tokenizing/test_real.py": "tokenizers of published models, where they can be had",
    "torch/test_bucket.py": "the loader on a real object store",
    "torch/test_example.py": "examples/train, alone and on several processes",
    "torch/test_page.py": "docs/training.md, where there is PyTorch",
}
"""Tests of no single module, and what they are of."""

ELSEWHERE = {
    "commands/choose_documents.py": "a step of choosing: commands/test_choose.py",
    "commands/part.py": "a task with a share of the work: commands/test_merge.py",
    "commands/find.py": "the way back from a line to its rows: commands/test_origin.py",
    "commands/write_corpus.py": "the last step of `pack`: commands/test_pack.py",
    "comparing/counting/": "every counter against the rows it does not list: comparing/counting/test_counting.py",
    "corpus/fields.py": "ids and columns of every format: commands/test_fields.py",
    "corpus/long_string.py": "strings in pieces: corpus/test_jsonl.py",
    "corpus/tables.py": "CSV and TSV: commands/test_fields.py",
    "exchange/": "laws over every format, to files and back: exchange/test_exchange.py",
    "packing/bins/algorithm1.py": "document by document against the paper's own form: packing/test_buckets.py",
    "packing/bins/exchange.py": "a step of mixing: packing/bins/test_mix.py",
    "packing/bins/groups.py": "a step of mixing: packing/bins/test_mix.py",
    "packing/bins/tails.py": "what becomes of tails, by hand: packing/test_seamless.py and test_bfd_extra.py",
    "packing/plans/": "rows of every strategy, token by token: packing/test_*.py, test_laws.py",
    "report/page/source_sections.py": "part of a page: report/page/test_page.py",
    "report/terminal/comparison_tables.py": "a whole comparison in 80 columns: report/terminal/test_reports.py",
    "report/terminal/verdict_view.py": "a whole comparison in 80 columns: report/terminal/test_reports.py",
    "storage/claim.py": "whether a run may write: storage/test_output.py, and storage/test_uploads.py at URLs",
    "tokenizing/encode.py": "texts and ids to shards: tokenizing/test_block.py",
    "tokenizing/span.py": "a span of a block: tokenizing/test_block.py",
    "tokenizing/estimate.py": "against what is written: commands/test_dry_run.py",
    "torch/samples.py": "needs PyTorch, as its user does: torch/test_loader.py",
    "writing/rotated_plan.py": "orders of the partial shuffle: commands/test_shuffle_store.py",
    "writing/packed_source.py": "rows from packed datasets are those from stores: writing/test_second_pass.py",
}
"""Modules with no test file of their own, and where they are tested."""


def listed(path: Path, among: dict[str, str]) -> list[str]:
    return [
        name for name in among if path.as_posix() == name or (name.endswith("/") and path.as_posix().startswith(name))
    ]


def mirrored(module: Path) -> Path:
    """Where the tests of a module of the package lie."""
    if module.name == "__init__.py":
        return module.parent / f"test_{module.parent.name or 'packtool'}.py"
    return module.with_name(f"test_{module.name}")


def statements(path: Path) -> int:
    """Statements in the functions of a module, but for docstrings and imports."""
    functions = [node for node in ast.walk(ast.parse(path.read_bytes())) if isinstance(node, ast.FunctionDef)]
    inside = {each for function in functions for each in ast.walk(function) if isinstance(each, ast.stmt)}
    silent = (ast.FunctionDef, ast.Import, ast.ImportFrom)
    return sum(not isinstance(each, silent) and not _is_docstring(each) for each in inside)


def _is_docstring(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def test_every_test_file_has_its_module() -> None:
    mirrors = {mirrored(module) for module in MODULES}
    mirrors |= {Path("scripts", f"test_{path.name}") for path in (ROOT / "scripts").glob("*.py")}
    stray = sorted(str(path) for path in TESTS - mirrors if not listed(path, ACROSS))
    assert not stray, f"{stray}: tests of one module lie in the file of its name; those of several are listed in ACROSS"


def test_every_module_has_its_tests() -> None:
    large = {module for module, path in MODULES.items() if statements(path) >= SHORT}
    bare = sorted(str(module) for module in large if mirrored(module) not in TESTS and not listed(module, ELSEWHERE))
    assert not bare, (
        f"{bare}: a module with logic of its own has tests of its own, or is in ELSEWHERE with where it is tested"
    )


@pytest.mark.parametrize("name", ACROSS)
def test_what_is_across_modules_is_there(name: str) -> None:
    assert any(listed(path, {name: ""}) for path in TESTS)


@pytest.mark.parametrize("name", ELSEWHERE)
def test_what_is_tested_elsewhere_has_no_tests_of_its_own(name: str) -> None:
    assert any(listed(module, {name: ""}) and mirrored(module) not in TESTS for module in MODULES)
