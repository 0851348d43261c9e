"""Change one place of the package at a time, and see which changes no test notices.

python scripts/mutate.py COPY --count 200 --seed 0 > before.tsv

COPY is a copy of the repository: its files are changed, and put back. A line says `killed` or `survived`, the file and
line, and the change. The same seed makes the same changes of the same package: runs can be compared where only tests
were changed between them.
"""

from __future__ import annotations

import argparse
import ast
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

# Sources, and the tests that must notice a change in them.
WATCHED = {
    "packtool/planning/packing": "tests/planning/packing",
    "packtool/planning/shuffling": "tests/planning/shuffling",
    "packtool/planning/selecting": "tests/planning/selecting",
    "packtool/planning/metrics": "tests/planning/metrics",
    "packtool/outputs/claim.py": "tests/outputs",
    "packtool/reading": "tests/reading",
    "packtool/blending": "tests/blending",
}
OTHER_COMPARISON: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
}
SWAPPED = (ast.Sub, ast.Div, ast.FloorDiv, ast.Mod)


class Mutant(NamedTuple):
    """A change of the node of this number in a file, as `ast.walk` goes."""

    path: Path
    tests: str
    number: int
    line: int
    change: str

    def source(self) -> str:
        """The file with the change; comments are not kept."""
        tree = ast.parse(self.path.read_text())
        changed(list(ast.walk(tree))[self.number])
        return ast.unparse(tree)


def changed(node: ast.AST) -> str:
    """Change a node in place and say how, or return an empty string where there is nothing to change.

    >>> tree = ast.parse("a < b", mode="eval")
    >>> changed(tree.body), ast.unparse(tree)
    ('compare', 'a <= b')
    """
    if isinstance(node, ast.Compare) and type(node.ops[0]) in OTHER_COMPARISON:
        node.ops[0] = OTHER_COMPARISON[type(node.ops[0])]()
        return "compare"
    if isinstance(node, ast.BinOp) and isinstance(node.op, SWAPPED):
        node.left, node.right = node.right, node.left
        return "swap"
    if isinstance(node, ast.Constant) and type(node.value) is int:
        node.value += 1
        return "one more"
    body = getattr(node, "body", None)
    if isinstance(body, list) and isinstance(body[-1], ast.Assign | ast.AugAssign | ast.Expr) and not is_text(body[-1]):
        body[-1] = ast.copy_location(ast.Pass(), body[-1])
        return "drop the last statement"
    return ""


def is_text(statement: ast.stmt) -> bool:
    """Say whether a statement is a docstring."""
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def mutants(root: Path) -> Iterator[Mutant]:
    for place, tests in WATCHED.items():
        found = root / place
        for path in sorted(found.rglob("*.py")) if found.is_dir() else [found]:
            for number, node in enumerate(list(ast.walk(ast.parse(path.read_text())))):
                change = changed(node)
                if change:
                    yield Mutant(path, tests, number, getattr(node, "lineno", 0), change)


def is_killed(root: Path, mutant: Mutant) -> bool:
    """Run the tests on a mutant; a run that takes minutes never ends, and is noticed as such."""
    original = mutant.path.read_bytes()
    command = [sys.executable, "-B", "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", mutant.tests]
    command += ["-m", "not slow and not torch and not interop and not browser"]
    mutant.path.write_text(mutant.source())
    try:
        return subprocess.run(command, cwd=root, capture_output=True, timeout=300, check=False).returncode != 0
    except subprocess.TimeoutExpired:
        return True
    finally:
        mutant.path.write_bytes(original)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("copy", type=Path)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="tests of this directory alone")
    given = parser.parse_args()
    found = [mutant for mutant in mutants(given.copy) if mutant.tests.startswith(given.only)]
    chosen = random.Random(given.seed).sample(found, min(given.count, len(found)))
    for mutant in sorted(chosen, key=lambda mutant: (mutant.path, mutant.line)):
        verdict = "killed" if is_killed(given.copy, mutant) else "survived"
        sys.stdout.write(f"{verdict}\t{mutant.path.relative_to(given.copy)}\t{mutant.line}\t{mutant.change}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
