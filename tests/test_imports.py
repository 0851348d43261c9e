"""Who may import whom: what keeps planning pure, and `packtool --help` quick."""

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from packtool.commands.doctor import MODULES
from tests.sources import parsed

PACKAGE = Path(__file__).parents[1] / "packtool"

LAYERS = (
    ("spelling",),
    ("errors",),
    ("warnings",),
    ("support",),
    ("engines", "places"),
    ("options",),
    ("planning.arrays",),
    ("planning.plan",),
    ("planning.document_loss",),
    ("planning.shuffling", "planning.metrics", "blending"),
    ("planning.packing", "planning.selecting"),
    ("formats", "text.faults", "text.paths"),
    ("rows", "text.conversations"),
    ("outputs", "text.corpus"),
    ("text.encoding", "writing"),
    ("text.tokenizing", "reading", "choosing"),
    ("report", "torch", "exchange"),
    ("config",),
    ("commands",),
    ("cli",),
)
"""What lies on what, from the bottom up: a module imports from its own room and from layers below it."""
PURE = ("packtool.planning", "packtool.rows.layout", "packtool.blending.schedule", "packtool.blending.dealing")
"""Planning: arrays in, arrays out."""
PURE_MAY_USE = (*PURE, "packtool.errors", "packtool.support.installing", "packtool.options", "numpy")
IO = ("packtool.formats", "packtool.outputs", "packtool.text.corpus")
STRATEGIES = ("packtool.planning.packing", "packtool.planning.shuffling")
TOUCHES_FILES = ("os", "io", "pathlib", "shutil", "tempfile", "mmap", "glob", "subprocess", "socket")
LIGHT = (
    "packtool/__init__.py",
    "packtool/__main__.py",
    "packtool/errors.py",
    "packtool/support/sizes.py",
    "packtool/spelling.py",
    "packtool/options/",
    "packtool/cli/",
)
"""Loaded by `packtool --help`."""
LIGHT_MAY_USE = (
    "packtool.cli",
    "packtool.errors",
    "packtool.options",
    "packtool.support.naming",
    "packtool.support.sizes",
    "packtool.support.system_errors",
    "packtool.spelling",
    "packtool.support.version",
    "typer",
)
NAMES_ONLY = ("packtool",)
"""The public names, which load nothing until they are used."""
DECODES = r"msgspec\.(convert|(json|toml|yaml|msgpack)\.(decode|Decoder))|from msgspec.* import .*(convert|ecode)"
"""What packtool.support.decoding does for everybody."""
HEAVY = ("pydantic", "rich", "numpy", "pyarrow", "tokenizers", "gigatoken", "tqdm", "msgspec", "xxhash")


def module_name(path: Path) -> str:
    """The dotted name of a file of the package."""
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def imports(source: str, *, top_level: bool = False, types: bool = False) -> Iterator[str]:
    """Full names of what a module imports: ``from a import b`` is ``a.b``. `types`: also those for types only."""

    left: list[ast.AST] = [parsed(source)]
    while left:
        node = left.pop()
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute here"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.expr):
            continue  # no expression holds an import
        elif isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING" and not types:
            continue
        elif not (top_level and isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)):
            left += ast.iter_child_nodes(node)


def within(name: str, packages: tuple[str, ...]) -> bool:
    return any(name == package or name.startswith(f"{package}.") for package in packages)


def standard(name: str) -> bool:
    return name.split(".", maxsplit=1)[0] in sys.stdlib_module_names | {"compression"}  # from Python 3.14 on


def layer(name: str) -> tuple[int, str]:
    """The layer of a module, and its room: the package or file in ``packtool``, or in a package that layers divide."""
    parts = name.split(".")
    names = (parts[1], ".".join(parts[1:3]))
    return next((number, room) for number, rooms in enumerate(LAYERS) for room in names if room in rooms)


def upward(name: str, imported: str) -> bool:
    """Whether an import of one module of the package by another goes up, or sideways to another room."""
    if name in ("packtool", "packtool.__main__"):
        return False
    if imported == "packtool":  # the public names, made of commands
        return layer(name)[1] != "cli"
    (here, room), (there, other) = layer(name), layer(imported)
    return room != other and there >= here


def breaches(path: str, source: str) -> list[str]:
    """Every rule that a file breaks, as ``file: what``."""
    name = module_name(PACKAGE.parent / path)
    found = [
        f"{path} imports {imported}, which does not lie below it"
        for imported in imports(source, types=True)
        if within(imported, ("packtool",)) and upward(name, imported)
    ]
    for imported in imports(source):
        if within(name, IO) and within(imported, STRATEGIES):
            found.append(f"{path} does I/O, but imports a strategy ({imported})")
        if within(name, PURE):
            if within(imported, TOUCHES_FILES):
                found.append(f"{path} plans, but imports what touches files ({imported})")
            # What is counted is written to manifests and reports, so metrics declare it as they do.
            more = ("msgspec",) if within(name, ("packtool.planning.metrics",)) else ()
            if not standard(imported) and not within(imported, (*PURE_MAY_USE, *more)):
                found.append(f"{path} plans, but imports {imported}")
    for imported in imports(source, top_level=True):
        if path.startswith(LIGHT) and (
            within(imported, HEAVY)
            or (not standard(imported) and imported not in NAMES_ONLY and not within(imported, LIGHT_MAY_USE))
        ):
            found.append(f"{path} imports {imported} when it is loaded, which slows packtool --help")
    if name != "packtool.support.decoding":
        calls = [node for node in ast.walk(parsed(source)) if isinstance(node, ast.Attribute | ast.ImportFrom)]
        if any(re.match(DECODES, ast.unparse(node)) for node in calls):
            found.append(f"{path} decodes with msgspec itself, and two threads that do so may end the process")
    if not within(name, PURE):
        return found
    for node in ast.walk(parsed(source)):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("open", "np.load", "np.save"):
            found.append(f"{path} plans, but reads or writes files (line {node.lineno})")
    return found


@pytest.mark.parametrize("path", [str(path.relative_to(PACKAGE.parent)) for path in modules()])
def test_directions(path: str) -> None:
    assert not breaches(path, (PACKAGE.parent / path).read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("path", "source", "message"),
    [
        ("packtool/planning/packing/x.py", "import pyarrow as pa", "plans, but imports pyarrow"),
        ("packtool/planning/plan.py", "def f():\n    from pathlib import Path", "touches files (pathlib.Path)"),
        ("packtool/planning/metrics/x.py", "from packtool.formats import files", "plans, but imports packtool.formats"),
        ("packtool/planning/shuffling/x.py", "import numpy as np\nnp.load('a')", "reads or writes files (line 2)"),
        ("packtool/formats/x.py", "from packtool.planning import packing", "imports a strategy (packtool.planning.p"),
        ("packtool/rows/gather.py", "import packtool.cli", "packtool.cli, which does not lie below it"),
        ("packtool/formats/x.py", "from packtool.rows import gather", "does not lie below it"),
        ("packtool/formats/x.py", "def f():\n    from packtool.commands.show import Row", "does not lie below it"),
        ("packtool/planning/shuffling/x.py", "from packtool.planning.packing import plan", "does not lie below it"),
        ("packtool/report/x.py", "if TYPE_CHECKING:\n    from packtool.commands import show", "does not lie below it"),
        ("packtool/commands/x.py", "import packtool", "does not lie below it"),
        ("packtool/cli/x.py", "if True:\n    import numpy", "slows packtool --help"),
        ("packtool/__init__.py", "from packtool.commands.pack import pack", "slows packtool --help"),
        ("packtool/places/x.py", "import msgspec\nmsgspec.json.decode(b'')", "decodes with msgspec itself"),
        ("packtool/report/x.py", "from msgspec.json import Decoder", "decodes with msgspec itself"),
    ],
)
def test_a_breach_is_found(path: str, source: str, message: str) -> None:
    assert any(message in each for each in breaches(path, source))


def graph(paths: list[Path]) -> dict[str, set[str]]:
    """Which modules of the package each of these files imports, wherever in the file it does."""
    known = {module_name(path) for path in modules()}
    found: dict[str, set[str]] = {}
    for path in paths:
        names = list(imports(path.read_text(encoding="utf-8"), types=True))
        named = {name if name in known else name.rpartition(".")[0] for name in names}
        found[str(path)] = (named & known) - {"packtool"}
    return found


def test_no_import_circles() -> None:
    """Modules can be read in an order in which each needs only those before it."""
    below = {module_name(PACKAGE.parent / path): names for path, names in graph(modules()).items()}
    left = {name: names - {name} for name, names in below.items()}
    while free := [name for name, names in left.items() if not names & left.keys()]:
        left = {name: names for name, names in left.items() if name not in free}
    while used := set().union(*left.values()) & left.keys():
        if used == left.keys():
            break
        left = {name: names for name, names in left.items() if name in used}
    assert not left, f"{sorted(left)}: each of these imports another, in a circle"


def test_every_module_is_tested_somewhere() -> None:
    """Each module is imported by tests, or by what they import; each room has tests of its own."""
    tests = PACKAGE.parent / "tests"
    inside = {module_name(Path(path)): names for path, names in graph(modules()).items()}
    reached: set[str] = set()
    new = set().union(*graph(sorted(tests.rglob("*.py"))).values())
    of_formats = ("packtool.exchange.formats", "packtool.text.corpus.formats")
    by_name = ("packtool.commands", "packtool.options", "packtool.planning.packing", *of_formats)
    new |= {name for name in inside if within(name, by_name)}
    while new:
        reached |= new
        new = set().union(*(inside[name] for name in new)) - reached
    untested = inside.keys() - reached - {"packtool.__main__"}
    assert not [name for name in untested if not any(each.startswith(f"{name}.") for each in inside)]
    rooms = [path for path in PACKAGE.iterdir() if (path / "__init__.py").exists()]
    assert not [room for room in rooms if not any((tests / room.name).rglob("test_*.py"))]


def test_what_is_imported_is_declared() -> None:
    project = tomllib.loads((PACKAGE.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    required = {re.split(r"[^\w-]", line)[0].removesuffix("-zstd") for line in project["dependencies"]}
    optional = {re.split(r"[^\w-]", line)[0] for name in extras if name != "dev" for line in extras[name]}
    optional = {MODULES.get(name, name) for name in optional}

    def third_party(*, top_level: bool) -> set[str]:
        # These are for those who have PyTorch, and Jinja.
        paths = [path for path in modules() if not (top_level and path.parent.name in ("torch", "conversations"))]
        names = {name for path in paths for name in imports(path.read_text(encoding="utf-8"), top_level=top_level)}
        return {name.partition(".")[0] for name in names if not standard(name)} - {"packtool"}

    trainers = {"transformers", "lightning"}  # packtool/torch has a file for those who have one of them
    assert third_party(top_level=False) <= required | optional | trainers
    assert third_party(top_level=True) <= required - {"gigatoken"}, "gigatoken is not there on every platform"


def loaded(program: str, names: str) -> set[str]:
    """What a program of its own has loaded: modules for whose `name` an expression is true."""
    shown = f"import sys; {program}; print(*(name for name in sys.modules if {names}), file=sys.stderr)"
    return set(subprocess.run([sys.executable, "-c", shown], capture_output=True, text=True, check=True).stderr.split())


@pytest.mark.parametrize("arguments", [["--help"], ["pack", "--help"], ["--version"]])
def test_help_loads_nothing_heavy(arguments: list[str]) -> None:
    assert loaded(f"from packtool.cli import run; assert run({arguments}) == 0", f"name in {HEAVY}") == set()


def test_a_command_is_loaded_without_the_others() -> None:
    program = "from packtool.cli import run; run(['pack', '--help'])"
    named = "name.endswith(('.pack', '.tokenize', '.stats', '.doctor'))"
    assert loaded(program, named) == {"packtool.options.pack"}


def test_a_run_loads_no_options_of_other_commands() -> None:
    found = loaded("import packtool.commands.tokenize", "name.startswith('packtool.options.')")
    assert "packtool.options.tokenize" in found
    assert not {f"packtool.options.{name}" for name in ("pack", "shuffle", "exchange", "stats", "run")} & found


def test_a_little_text_loads_no_more_than_it_needs(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": "a text"}')
    program = f"from packtool.cli import run; run(['tokenize', '{tmp_path}/a.jsonl', '-o', '{tmp_path}/o', '-q'])"
    unneeded = ("gigatoken", "fastokens", "numpy.ma", "pyarrow", "rich")
    in_packtool = tuple(f"packtool.text.{name}" for name in ("tokenizing.estimate", "conversations.record"))
    assert loaded(program, f"name in {(*unneeded, *in_packtool)}") == set()


def test_planning_loads_nothing_that_touches_files() -> None:
    program = (
        "import numpy; from packtool.planning.packing import PackOptions, plan; "
        "plan('bfd', numpy.array([3, 4]), PackOptions(sequence_length=8))"
    )
    assert loaded(program, "name.startswith(('packtool.places.', 'packtool.formats', 'pyarrow'))") == set()


def test_names_are_loaded_on_first_use() -> None:
    assert loaded("import packtool", "name == 'numpy'") == set()
    assert loaded("import packtool; packtool.pack", "name == 'numpy'") == {"numpy"}


def test_a_name_says_which() -> None:
    files: dict[str, list[str]] = {}
    for path in PACKAGE.rglob("*.py"):
        for node in parsed(path.read_text(encoding="utf-8")).body:
            value = getattr(node, "value", None)
            if isinstance(value, ast.Call) and ast.unparse(value.func) == "TypeVar":
                continue  # variables of types may share a name
            targets = getattr(node, "targets", [getattr(node, "target", node)])
            names = [getattr(each, "id", getattr(each, "name", "")) for each in targets]
            for name in names:
                if name[:1].isupper() and not name.isupper():
                    files.setdefault(name, []).append(str(path.relative_to(PACKAGE)))
    several = {name: sorted(where) for name, where in files.items() if len(where) > 1}
    assert not several, "give it a name that says which"
