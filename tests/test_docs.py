"""Documentation stays true: the `python` and `sh` blocks of every page run in order, in a directory with a corpus.

The quickstart's line makes it. A page's blocks share one namespace and one directory. A block whose language is
followed by a file name is written to that file, for the blocks after it. Blocks marked `console` or `text` are shown,
not run. README speaks to somebody who cloned the project and ran `make demo`: beside it lie `configs/` and a small
stand-in for `demo-output/`.
"""

import ast
import os
import pkgutil
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pygments.lexers import get_all_lexers

import packtool
from packtool.cli import app
from tests.sources import parsed
from tests.warm import warm_command

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])
QUICKSTART = ROOT / "docs" / "quickstart.md"
RECIPES = ROOT / "docs" / "recipes.md"
ELSEWHERE = ("training.md", "blends.md", "trainers.md")
"""Pages whose blocks run in another environment."""
LANGUAGES = ("jsonl",)
"""Those that docs/conf.py adds."""
FENCE = re.compile(r"^```(\w+)(?: (\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)#]+)(?:#[^)]*)?\)")


def blocks(page: Path) -> list[tuple[str, str | None, str]]:
    """(language, file name, code) of the fenced blocks of a page that are to be run, or written to a file."""
    return blocks_of(page.read_text(encoding="utf-8"))


def recipes() -> dict[str, list[tuple[str, str | None, str]]]:
    """The blocks of each recipe by its title; those before the first one under ""."""
    sections = re.split(r"^## (.+)$", RECIPES.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {title: blocks_of(text) for title, text in zip(["", *sections[1::2]], sections[::2], strict=True)}


def blocks_of(text: str) -> list[tuple[str, str | None, str]]:
    found = [match.groups() for match in FENCE.finditer(text)]
    return [(language, name, code) for language, name, code in found if name or language in ("python", "sh")]


@pytest.fixture(scope="module")
def command() -> Iterator[str]:
    with warm_command() as script:
        yield script


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The corpus that all pages read, made by the line that the quickstart has for it."""
    place = tmp_path_factory.mktemp("corpus")
    (line,) = (code for language, _, code in blocks(QUICKSTART) if language == "sh" and "> corpus.jsonl" in code)
    subprocess.run(["bash", "-c", line.replace("python", f'"{sys.executable}"', 1)], cwd=place, check=True)
    return place / "corpus.jsonl"


@pytest.fixture
def empty(tmp_path: Path, command: str, corpus: Path) -> Path:
    """A directory with the corpus alone, but for `bin/packtool` and `bin/python`, which run this package."""
    place = tmp_path / "here"
    (place / "bin").mkdir(parents=True)
    for name, text in (("packtool", command), ("python", f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')):
        script = place / "bin" / name
        script.write_text(text, encoding="utf-8")
        script.chmod(0o755)
    shutil.copy(corpus, place)
    return place


@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if blocks(page) and page.name not in (*ELSEWHERE, "README.md")],
    ids=lambda page: page.name,
)
def test_blocks_run(page: Path, empty: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_blocks(page.name, blocks(page), empty, monkeypatch)


def test_readme_runs_after_the_demo(empty: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    demo = empty / "demo-output"
    (demo / "corpus").mkdir(parents=True)
    shutil.move(empty / "corpus.jsonl", demo / "corpus")
    packtool.tokenize(demo / "corpus", demo / "tokens")
    packtool.pack(demo / "tokens", demo / "shuffled", strategy="concat", sequence_length=128, shard_tokens=4096)
    shutil.copytree(ROOT / "configs", empty / "configs")
    run_blocks("README.md", blocks(ROOT / "README.md"), empty, monkeypatch)


@pytest.mark.slow  # the whole page runs in any case
@pytest.mark.parametrize("recipe", [title for title in recipes() if title])
def test_a_recipe_runs_alone(recipe: str, empty: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a fresh directory with the corpus and the configuration file of the page's introduction."""
    introduction, steps = recipes()[""], recipes()[recipe]
    run_blocks(recipe, [*introduction, *steps], empty, monkeypatch)


def run_blocks(
    page: str, found: list[tuple[str, str | None, str]], place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(place)
    monkeypatch.setenv("PATH", f"{place / 'bin'}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    namespace: dict[str, object] = {"__name__": "documentation"}
    for language, name, code in found:
        if name is not None:
            (place / name).write_text(code, encoding="utf-8")
        elif language == "python":
            exec(compile(code, f"{page}: {code.splitlines()[0]}", "exec"), namespace)
        else:
            run = subprocess.run(["bash", "-euo", "pipefail", "-c", code], capture_output=True, text=True, check=False)
            assert run.returncode == 0, f"{page}:\n{code}\n{run.stdout}{run.stderr}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    targets = [target for target in LINK.findall(page.read_text(encoding="utf-8")) if "://" not in target]
    assert [target for target in targets if not (page.parent / target).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_site_can_show_it(page: Path) -> None:
    """What else makes the site's build fail: a language it can't colour, a link from its pages to another page."""
    text = page.read_text(encoding="utf-8")
    known = {alias for _, aliases, _, _ in get_all_lexers() for alias in aliases} | set(LANGUAGES)
    assert {found[0] for found in FENCE.findall(text)} <= known
    if page.parent.name == "docs":
        assert not [target for target in LINK.findall(text) if target.startswith("../") and target.endswith(".md")]


LOADERS = {"Loader", "ValidationLoader", "Samples", "Stream"}
"""What makes batches for a model."""


def test_models_that_shift_labels_themselves_are_given_labels_that_are_not_shifted() -> None:
    """Wherever a page, an example or a test hands batches to a model of Transformers."""
    codes = {f"{page.name}, block {n}": code for page in PAGES for n, (_, _, code) in enumerate(blocks(page))}
    files = [path for place in ("examples", "tests", "benchmarks") for path in (ROOT / place).rglob("*.py")]
    files = [path for path in files if ROOT / "benchmarks" / "work" not in path.parents]  # where peers are installed
    codes |= {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in files}
    seen, wrong = 0, []
    for name, code in codes.items():
        if not re.search(r"\b\w+ForCausalLM\(", code):
            continue
        for call in ast.walk(ast.parse(code)):
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in LOADERS:
                given = [ast.unparse(each.value) for each in call.keywords if each.arg == "labels"]
                seen += given == ["'same'"]
                wrong += [f"{name}: {ast.unparse(call)}"] if given != ["'same'"] else []
    # Of these, one compares both kinds, one computes its loss from the outputs, and one has models of its own as well.
    others = r"tests/torch/(test_labels|gradients)\.py|benchmarks/gpu\.py"
    assert [each for each in wrong if not re.match(others, each)] == []
    assert seen >= 3
    for page in PAGES:
        for paragraph in re.split(r"\n\n|\n(?=\|)", page.read_text(encoding="utf-8")):
            assert "model(**batch" not in paragraph or 'labels="same"' in paragraph, f"{page.name}: {paragraph}"


def test_what_the_page_on_architecture_names_exists() -> None:
    order = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    assert [name for name in re.findall(r"`(packtool/[\w/]+(?:\.py|/))`", order) if not (ROOT / name).exists()] == []


def test_the_python_reference_has_every_public_name() -> None:
    pages = [path.read_text(encoding="utf-8") for path in (ROOT / "docs" / "api").glob("*.rst")]
    named = {name for page in pages for name in re.findall(r"^\.\. auto\w+:: ([\w.]+)", page, re.MULTILINE)}
    public = {f"packtool.{name}" for name in packtool.__all__ if name != "__version__"}
    assert public - named == set()
    exported = re.findall(
        r'^    "(\w+)",$', (ROOT / "packtool" / "torch" / "__init__.py").read_text("utf-8"), re.MULTILINE
    )
    assert "Loader" in exported
    assert set(exported) - {name.rpartition(".")[2] for name in named} == set()
    assert [name for name in sorted(named) if not name.startswith("packtool.torch") and not _exists(name)] == []


def _exists(name: str) -> bool:
    try:
        return pkgutil.resolve_name(name) is not None
    except (ImportError, AttributeError):
        return False


def test_the_site_has_every_page() -> None:
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    listed = {f"{name}.{'rst' if '/' in name else 'md'}" for name in re.findall(r"^([a-z/-]+)$", index, re.MULTILINE)}
    pages = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.*")}
    assert {page for page in pages if page.endswith((".md", ".rst"))} == listed | {"index.md"}


ELSEWHERE_OPTIONS = {
    "--peers": "of a benchmark",
    "--block-size": "of other tools",
    "--num-proc": "of other tools",
    "--partitions": "of Megatron",
    "--append-eod": "of Megatron",
    "--data-path": "of Megatron",
    "--json-keys": "of Megatron",
    "--split": "of Megatron",
    "--max-bucket": "an example of a new option",
    "--local-directory": "of Dask's workers",
}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_options_that_pages_name_exist(page: Path) -> None:
    commands: list[Any] = [app.get_command(None, name) for name in app.commands]
    known = {flag for command in commands for each in command.params for flag in (*each.opts, *each.secondary_opts)}
    named = set(re.findall(r"`(--[a-z][a-z0-9-]*)[ `]", FENCE.sub("", page.read_text(encoding="utf-8"))))
    assert named - known - set(ELSEWHERE_OPTIONS) == set()


NOUNS = "A All An As Each Every For How Of One The Those What Where Whether Which Why"
"""How a summary begins that says what a function is, not what it does. Those of properties do."""


def test_summaries_are_in_the_imperative() -> None:
    found = []
    for path in sorted((ROOT / "packtool").rglob("*.py")):
        for node in ast.walk(parsed(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef) and not any("property" in ast.unparse(d) for d in node.decorator_list):
                first = (ast.get_docstring(node) or "-").split()[0]
                found += [f"{path.relative_to(ROOT)}:{node.lineno}: {node.name}"] if first in NOUNS.split() else []
    assert found == []
