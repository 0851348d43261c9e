"""Text that every Python installation carries: the standard library's sources, docstrings and language reference.

It is covered by the licence of Python itself (PSF-2.0), so it may be shipped and built upon. Tests, installed packages
and generated files are left out. The documents depend on the Python version alone, and come in a fixed order.
"""

from __future__ import annotations

import ast
import sysconfig
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

LEFT_OUT = {"site-packages", "dist-packages", "__pycache__", "test", "tests", "idle_test", "_bundled", "pydoc_data"}
GENERATED = "_sysconfigdata"
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


class Document(NamedTuple):
    """One text and where it comes from, such as ``json/decoder.py`` or ``json/decoder.py:254``."""

    source: str
    text: str


def modules() -> Iterator[Document]:
    """Every module of the standard library, by name."""
    root = Path(sysconfig.get_paths()["stdlib"])
    names = {path.relative_to(root).as_posix(): path for path in root.rglob("*.py")}
    for name, path in sorted(names.items()):
        if LEFT_OUT.isdisjoint(name.split("/")) and not path.name.startswith(GENERATED):
            with tokenize.open(path) as file:
                text = file.read()
            if text.strip():
                yield Document(name, text)


def docstrings() -> Iterator[Document]:
    """Every docstring of those modules, in the order of the source."""
    for module in modules():
        found = []
        left: list[ast.AST] = [ast.parse(module.text)]
        while left:
            node = left.pop()
            if isinstance(node, DOCUMENTED) and (text := ast.get_docstring(node)):
                found.append((getattr(node, "lineno", 1), text))
            # Expressions hold no docstrings, and are most of a tree.
            left += [child for child in ast.iter_child_nodes(node) if not isinstance(child, ast.expr)]
        for line, text in sorted(found):
            # An escape such as "\udc80" is a lone surrogate once parsed, and no UTF-8 file can hold one.
            yield Document(f"{module.source}:{line}", text.encode("utf-8", "replace").decode())


def reference() -> Iterator[Document]:
    """The chapters of the language reference that ``help()`` shows."""
    from pydoc_data.topics import topics

    for name, text in sorted(topics.items()):
        yield Document(f"reference/{name}", text)
