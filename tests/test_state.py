"""No module keeps what changes its behaviour: what a function needs is passed to it.

Module-level names that hold lists, dictionaries, sets, locks or context variables are constants in capitals, or stand
here with the reason why they may change. Caches of pure functions are no state: they change the time taken alone.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.sources import parsed

PACKAGE = Path(__file__).parents[1] / "packtool"
MUTABLE = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp)
MAKERS = "dict list set defaultdict Counter deque OrderedDict ContextVar local Event Lock"
ALLOWED = {
    "engines/local.py: _this_worker": "of a worker process: whom it tells how far it is",
    "planning/packing/__init__.py: _modules": "the strategies, imported once to make the registry",
    "text/corpus/formats/__init__.py: _modules": "the formats of input, imported once to make the registry",
    "support/temporary.py: _made": "directories to remove when the process is ended in the middle",
    "support/temporary.py: _place": "of a cluster's worker: the disk that it was given",
}


def states(path: Path, source: str) -> Iterator[str]:
    """Names a module binds to what may change, and those that its functions bind anew."""
    tree, name = parsed(source), path.as_posix()
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            target = ast.unparse(node.targets[0] if isinstance(node, ast.Assign) else node.target)
            made = ast.unparse(node.value.func).rpartition(".")[2] if isinstance(node.value, ast.Call) else ""
            constant = target.isupper() or target == "__all__" or "." in target
            if (isinstance(node.value, MUTABLE) or made in MAKERS.split()) and not constant:
                yield f"{name}: {target}"
    for node in ast.walk(tree):
        if isinstance(node, ast.Global):
            yield from (f"{name}: {each}" for each in node.names)


def found() -> set[str]:
    return {
        each
        for path in PACKAGE.rglob("*.py")
        for each in states(path.relative_to(PACKAGE), path.read_text(encoding="utf-8"))
    }


def test_no_module_keeps_state() -> None:
    assert found() - ALLOWED.keys() == set()


def test_nothing_is_allowed_in_vain() -> None:
    assert ALLOWED.keys() - found() == set()


@pytest.mark.parametrize(
    "source",
    ["_open = {}", "_seen: set[int] = set()", "_now = ContextVar('now')", "def f():\n    global _mode\n    _mode = 1"],
)
def test_state_is_found(source: str) -> None:
    assert list(states(Path("x.py"), source))
