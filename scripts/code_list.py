"""Write the page that lists every code of an error or warning, with what it says and what it advises.

python scripts/code_list.py docs/codes.md
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from packtool.spelling import as_typed
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
[Troubleshooting](troubleshooting.md) says more about those whose message does not say all.
"""


def calls(source: str) -> Iterator[ast.Call]:
    """Yield the calls of a module that may take a code."""
    for call, _ in _calls(ast.parse(source), []):
        yield call


def _calls(node: ast.AST, said: list[tuple[str, ast.expr]]) -> Iterator[tuple[ast.Call, list[tuple[str, ast.expr]]]]:
    """Yield each call below a node, with what names of its function were set to before it, the last one last."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Assign):
            said += _set(child)
        if isinstance(child, ast.Call) and child.args:
            function = child.func
            name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
            if RAISES.search(name):
                yield child, list(said)
        yield from _calls(child, [] if isinstance(child, ast.FunctionDef) else said)


def _set(line: ast.Assign) -> Iterator[tuple[str, ast.expr]]:
    """Yield the names that an assignment sets, and their values: `a = 1`, or `a, b = 1, 2`."""
    target, value = line.targets[0], line.value
    if isinstance(target, ast.Name):
        yield target.id, value
    elif isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        for name, part in zip(target.elts, value.elts, strict=False):
            yield ast.unparse(name), part


def codes(source: str) -> Iterator[tuple[str, str]]:
    """Yield each code that a module may raise or warn with, and its message.

    >>> list(codes("what = f'line {n} is cut'; raise DataError('bad-line', what, remedy='mend it')"))
    [('bad-line', 'Line … is cut. Mend it.')]
    >>> list(codes("code = 'bad-line' if n else 'bad-end'; raise Fault(code, 'it is cut')"))
    [('bad-line', 'It is cut.'), ('bad-end', 'It is cut.')]
    """
    for call, said in _calls(ast.parse(source), []):
        first = call.args[0]
        for place, given in enumerate(call.args[:2]):  # a rejection begins with the record's number
            for text in _texts(dict(said).get(ast.unparse(given), given)):
                if CODE.fullmatch(text):
                    yield text, _message(call, place + 1, dict(said))
        if isinstance(first, ast.JoinedStr) and ast.unparse(first) == "f'no-{kind}'":
            yield from ((code, _message(call, 1, dict(said))) for code in ("no-bos", "no-eos"))


def _texts(value: ast.expr) -> list[str]:
    """Return the texts that an expression may be: one, or of a conditional either of two."""
    if isinstance(value, ast.IfExp):
        return _texts(value.body) + _texts(value.orelse)
    if isinstance(value, ast.Constant) and isinstance(value.value, str):
        return [value.value]
    return []


def _message(call: ast.Call, place: int, said: dict[str, ast.expr]) -> str:
    """Return what a call says and advises; "" where it is put together elsewhere."""
    remedies = [keyword.value for keyword in call.keywords if keyword.arg == "remedy"]
    parts = (*call.args[place : place + 1], *remedies)
    return _sentences(_words(said.get(ast.unparse(part), part)) for part in parts)


def _sentences(parts: Iterable[str]) -> str:
    sentences = [text[:1].upper() + text[1:] for text in parts if re.search(r"\w", text)]
    return as_typed(" ".join(text if text.endswith("?") else f"{text}." for text in sentences))


def _words(part: ast.expr) -> str:
    if isinstance(part, ast.Constant):
        return str(part.value)
    if isinstance(part, ast.JoinedStr):
        return "".join(_words(each) for each in part.values)
    return OPEN


def tabled(source: str) -> Iterator[tuple[str, str]]:
    """Yield the codes of a module that keeps them in tables and constants, with the rest of their rows.

    >>> list(tabled("{5: ('io-error', 'input/output error', 'check the disk')}"))
    [('io-error', 'Input/output error. Check the disk.')]
    """
    for node in ast.walk(ast.parse(source)):
        first, *others = [node.value] if isinstance(node, ast.Assign) else getattr(node, "elts", None) or [None]
        if isinstance(first, ast.Constant) and CODE.fullmatch(str(first.value)):
            yield str(first.value), _sentences(map(_words, others))


def made() -> dict[str, list[str]]:
    """Return the messages of every code of the package, in the order of the files."""
    found: dict[str, list[str]] = {code: [] for code in (*CODES, *REASONS)}
    for path in sorted((ROOT / "packtool").rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        in_tables = tabled(text) if path.name in ("failures.py", "manifest.py") else ()
        for code, message in (*codes(text), *in_tables):
            messages = found.setdefault(code, [])
            if message and message not in messages:
                messages.append(message)
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
