"""Count what makes code dense: conditional expressions, comprehensions and walruses. More than the limits is an error.

python scripts/density.py               the whole package, against its limits
python scripts/density.py --against main    name the files that are denser than on that branch
"""

from __future__ import annotations

import argparse
import ast
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
PACKAGE = "packtool"
PER_THOUSAND_LINES = {"conditional expressions": 14, "comprehensions": 22}
IN_ALL = {"walruses": 19}
_NODES: dict[str, type[ast.AST] | tuple[type[ast.AST], ...]] = {
    "conditional expressions": ast.IfExp,
    "comprehensions": (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp),
    "walruses": ast.NamedExpr,
}


class Density(NamedTuple):
    """The lines of some sources, blank ones included, and how often each kind of expression stands in them.

    >>> Density.of("a = b if c else d\\n\\n").counts
    {'conditional expressions': 1, 'comprehensions': 0, 'walruses': 0}
    """

    lines: int
    counts: dict[str, int]

    @classmethod
    def of(cls, source: str) -> Density:
        nodes = list(ast.walk(ast.parse(source)))
        counts = {kind: sum(isinstance(node, types) for node in nodes) for kind, types in _NODES.items()}
        return cls(source.count("\n"), counts)

    @classmethod
    def together(cls, parts: Iterable[Density]) -> Density:
        lines, counts = 0, dict.fromkeys(_NODES, 0)
        for part in parts:
            lines += part.lines
            for kind, count in part.counts.items():
                counts[kind] += count
        return cls(lines, counts)

    def per_thousand_lines(self, kind: str) -> float:
        return 1000 * self.counts[kind] / max(1, self.lines)


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
    return int(not within)


if __name__ == "__main__":
    sys.exit(main())
