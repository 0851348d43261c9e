"""Count what makes code dense, conditional expressions, comprehensions and walruses, and how much code there is.

python scripts/density.py               the whole package, against its limits; more is an error
python scripts/density.py --against main    name the files that are denser than on that branch
"""

from __future__ import annotations

import argparse
import ast
import io
import subprocess
import sys
import tokenize
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
PACKAGE = "packtool"
PER_THOUSAND_LINES = {"conditional expressions": 9, "comprehensions": 19}
IN_ALL = {"walruses": 18, "lines of code": 38145, "lines of signatures": 4195}
"""Lines are counted without docstrings, comments and blanks. A change that needs more raises the number, and says in
its commit what the lines buy; one that takes some away lowers it."""
_NODES: dict[str, type[ast.AST] | tuple[type[ast.AST], ...]] = {
    "conditional expressions": ast.IfExp,
    "comprehensions": (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp),
    "walruses": ast.NamedExpr,
}
_NO_CODE = (
    *(tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE),
    *(tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER),
)


class Density(NamedTuple):
    """The lines of some sources, blank ones included, and how often each kind of expression or line stands in them.

    >>> Density.of("a = b if c else d\\n\\n").counts["conditional expressions"]
    1
    """

    lines: int
    counts: dict[str, int]

    @classmethod
    def of(cls, source: str) -> Density:
        nodes = list(ast.walk(ast.parse(source)))
        counts = {kind: sum(isinstance(node, types) for node in nodes) for kind, types in _NODES.items()}
        code = _lines_of_code(source, nodes)
        counts["lines of code"] = len(code)
        counts["lines of signatures"] = len(code & _lines_of_signatures(nodes))
        return cls(source.count("\n"), counts)

    @classmethod
    def together(cls, parts: Iterable[Density]) -> Density:
        lines, counts = 0, dict.fromkeys((*PER_THOUSAND_LINES, *IN_ALL), 0)
        for part in parts:
            lines += part.lines
            for kind, count in part.counts.items():
                counts[kind] += count
        return cls(lines, counts)

    def per_thousand_lines(self, kind: str) -> float:
        return 1000 * self.counts[kind] / max(1, self.lines)


def _lines_of_code(source: str, nodes: Iterable[ast.AST]) -> set[int]:
    """Return the lines that hold more than a docstring or a comment.

    >>> text = "'Text.'\\n\\na = 1  # one\\n# two\\n"
    >>> _lines_of_code(text, ast.walk(ast.parse(text)))
    {3}
    """
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in _NO_CODE:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in nodes:
        # What stands alone as a text says what stands before it.
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            lines.difference_update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return lines


def _lines_of_signatures(nodes: Iterable[ast.AST]) -> set[int]:
    """Return the lines from the name of a function to its body."""
    lines: set[int] = set()
    for node in nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines.update(range(node.lineno, max(node.lineno + 1, node.body[0].lineno)))
    return lines


def report(found: Density) -> bool:
    """Print each figure beside its limit; return whether all are within."""
    within = True
    figures = [
        (kind, found.per_thousand_lines(kind), limit, "per 1,000 lines") for kind, limit in PER_THOUSAND_LINES.items()
    ]
    figures += [(kind, found.counts[kind], limit, "in all") for kind, limit in IN_ALL.items()]
    for kind, figure, limit, unit in figures:
        sys.stdout.write(f"{kind:24} {figure:6.1f} {unit:16} limit {limit}\n")
        within = within and figure <= limit
    return within


def denser(ref: str) -> list[str]:
    """Name the files that have more of a kind of expression, in all and to a line, than they had in a revision."""
    changed = _git("diff", "--name-only", "--diff-filter=M", ref, "--", PACKAGE).split()
    found = []
    for name in changed:
        if not name.endswith(".py"):
            continue
        before, now = Density.of(_git("show", f"{ref}:{name}")), Density.of((ROOT / name).read_text(encoding="utf-8"))
        for kind in _NODES:
            # Of fewer lines that are as plain as before, nobody has made anything denser.
            more = now.counts[kind] > before.counts[kind]
            if more and now.per_thousand_lines(kind) > before.per_thousand_lines(kind):
                change = f"{before.counts[kind]} in {before.lines} lines, now {now.counts[kind]} in {now.lines}"
                found.append(f"{name}: {kind}: {change}")
    return found


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True).stdout


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--against", metavar="REF", help="name the files that are denser than in this revision")
    arguments = parser.parse_args()
    if arguments.against:
        found = denser(arguments.against)
        sys.stdout.write("\n".join(found or [f"no file is denser than in {arguments.against}"]) + "\n")
        return int(len(found) > 0)
    sources = sorted((ROOT / PACKAGE).rglob("*.py"))
    within = report(Density.together(Density.of(path.read_text(encoding="utf-8")) for path in sources))
    if not within:
        sys.stdout.write("Too dense: write some as statements, or name them as functions (see CONTRIBUTING.md).\n")
        sys.stdout.write("Too many lines: take some away, or raise IN_ALL and say in the commit what they buy.\n")
    return int(not within)


if __name__ == "__main__":
    sys.exit(main())
