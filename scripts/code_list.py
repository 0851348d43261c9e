"""Write the page that lists every code of an error or warning, with what it says and what it advises.

python scripts/code_list.py docs/codes.md
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from packtool.text.faults import REASONS
from packtool.warnings import CODES

ROOT = Path(__file__).parents[1]
CODE = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)+")
RAISES = re.compile(r"(Error|Warning|Reject|Fault|warn|_?reject|_?bad_\w+|_?damaged|_?problem|_?refused)$")
"""Names of what takes a code as its first argument."""
OPEN = "…"
"""What stands in a message for words that are known only when it is said."""
HEAD = """# Codes

Every error and warning has a code, which stays the same from version to version. A script writes this list from the
source, with the messages that it finds there; `…` stands for names and numbers.
[Troubleshooting](troubleshooting.md) says more about many of them, and all about those without a message here.
"""


def calls(source: str) -> Iterator[ast.Call]:
    """Yield the calls of a module that may take a code."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and node.args:
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if RAISES.search(name):
                yield node


def codes(source: str) -> Iterator[tuple[str, str]]:
    """Yield each code that a module may raise or warn with, and its message.

    >>> list(codes("raise DataError('bad-line', f'line {n} is cut', remedy='mend it')"))
    [('bad-line', 'Line … is cut. Mend it.')]
    """
    for call in calls(source):
        first = call.args[0]
        for place, given in enumerate(call.args[:2]):  # a rejection begins with the record's number
            if isinstance(given, ast.Constant) and isinstance(given.value, str) and CODE.fullmatch(given.value):
                yield given.value, _message(call, place + 1)
        if isinstance(first, ast.JoinedStr) and ast.unparse(first) == "f'no-{kind}'":
            yield from ((code, _message(call, 1)) for code in ("no-bos", "no-eos"))


def _message(call: ast.Call, place: int) -> str:
    """Return what a call says and advises; "" where it is put together elsewhere."""
    remedies = [keyword.value for keyword in call.keywords if keyword.arg == "remedy"]
    spoken = [_words(part) for part in (*call.args[place : place + 1], *remedies)]
    sentences = [text[:1].upper() + text[1:] for text in spoken if re.search(r"\w", text)]
    return " ".join(text if text.endswith("?") else f"{text}." for text in sentences)


def _words(part: ast.expr) -> str:
    if isinstance(part, ast.Constant):
        return str(part.value)
    if isinstance(part, ast.JoinedStr):
        return "".join(_words(each) for each in part.values)
    return OPEN


def tabled(source: str) -> set[str]:
    """Return the codes of a module that keeps them in tables and constants."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Tuple) and node.elts and isinstance(node.elts[0], ast.Constant):
            found.add(str(node.elts[0].value))
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
            found.add(str(node.value.value))
    return {code for code in found if CODE.fullmatch(code)}


def made() -> dict[str, list[str]]:
    """Return the messages of every code of the package, in the order of the files."""
    found: dict[str, list[str]] = {code: [] for code in (*CODES, *REASONS)}
    for path in sorted((ROOT / "packtool").rglob("*.py")):
        for code, message in codes(path.read_text(encoding="utf-8")):
            messages = found.setdefault(code, [])
            if message and message not in messages:
                messages.append(message)
    for name in ("cli/failures.py", "formats/manifest.py"):
        for code in tabled((ROOT / "packtool" / name).read_text(encoding="utf-8")):
            found.setdefault(code, [])
    return {code: found[code] for code in found if CODE.fullmatch(code)}


def page() -> str:
    """Return the page: a heading for each code, and its messages."""
    parts = [HEAD]
    for code, messages in sorted(made().items()):
        lines = [f"- {message}" for message in messages]
        parts.append("\n".join([f"## {code}", "", *lines, *([""] if lines else [])]))
    return "\n".join(parts)


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(page(), encoding="utf-8")
