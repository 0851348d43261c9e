"""Write the page that lists every file of the package, with the first line of its docstring.

python scripts/file_list.py docs/files.md
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "packtool"
HEAD = """# Files of the package

Each file with its first line. [How packtool is built](architecture.md) says in which order to read the rooms.
"""
ROOMS = (
    *("cli", "options", "commands", "planning", "text", "formats", "outputs", "places", "engines"),
    *("rows", "writing", "reading", "blending", "torch", "exchange", "report", "support"),
)
"""The rooms of the package, in the order of the reading list in docs/architecture.md; others follow by name."""


def page(package: Path = PACKAGE) -> str:
    """Return the page: a section for each room, a line for each file of it."""
    rooms = sorted((path for path in package.iterdir() if list(path.glob("*.py"))), key=_rank)
    sections = [HEAD, _section("packtool", package, package.glob("*.py"))]
    sections += [_section(f"packtool/{room.name}", room, room.rglob("*.py")) for room in rooms]
    return "\n".join(sections)


def _rank(room: Path) -> tuple[int, str]:
    return (ROOMS.index(room.name) if room.name in ROOMS else len(ROOMS), room.name)


def _section(title: str, room: Path, files: Iterable[Path]) -> str:
    lines = [f"- `{path.relative_to(room)}` – {first_line(path)}" for path in sorted(files) if path.stat().st_size]
    return "\n".join([f"## {title}", "", *lines, ""])


def first_line(path: Path) -> str:
    """Return the first line of a file's docstring."""
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return docstring.partition("\n")[0]


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(page(), encoding="utf-8")
