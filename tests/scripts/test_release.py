"""A release is built and tried whole; what must not be published is named."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import release

import packtool

ROOT = Path(__file__).parents[2]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """The files of this tree that say what is released."""
    for name in ("CHANGELOG.md", "CITATION.cff", "pyproject.toml", "packtool/support/version.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def test_this_tree_has_one_version() -> None:
    assert release.version(ROOT) == packtool.__version__


@pytest.mark.parametrize("name", ["CHANGELOG.md", "CITATION.cff", "packtool/support/version.py"])
def test_a_version_that_differs_is_named(tree: Path, name: str) -> None:
    file = tree / name
    file.write_text(re.sub(r"\b0\.1\.0\b", "9.9.9", file.read_text("utf-8")), encoding="utf-8")
    with pytest.raises(release.Fault, match=rf"the versions differ: .*{name} has 9\.9\.9"):
        release.version(tree)


def test_a_changelog_without_a_version(tree: Path) -> None:
    (tree / "CHANGELOG.md").write_text("# Changelog\n\n## Unreleased\n")
    with pytest.raises(release.Fault, match=r"CHANGELOG\.md has no section with a version"):
        release.version(tree)


def test_what_is_left_to_people(tree: Path) -> None:
    changelog = tree / "CHANGELOG.md"
    changelog.write_text("## Unreleased\n\n- New.\n\n## 0.1.0 – soon\n\n- Rows.\n", encoding="utf-8")
    project = tree / "pyproject.toml"
    assert release.left_to_do(tree) == [
        'CHANGELOG.md: move what stands under "Unreleased" to 0.1.0',
        'CHANGELOG.md: write the date in place of "soon"',
        "pyproject.toml: [project.urls] is missing, since the project has no public address yet",
    ]
    changelog.write_text("## Unreleased\n\n## 0.1.0 – 2027-01-31\n\n- Rows.\n", encoding="utf-8")
    project.write_text(project.read_text("utf-8") + '\n[project.urls]\nSource = "https://example.org"\n', "utf-8")
    assert release.left_to_do(tree) == []


def test_a_commit_without_its_tag(tree: Path) -> None:
    subprocess.run(["git", "init", "-q", tree], check=True)
    who = ("-c", "user.name=a", "-c", "user.email=a@b")
    subprocess.run(["git", "-C", tree, *who, "commit", "-q", "--allow-empty", "-m", "a"], check=True)
    todo = release.left_to_do(tree)[-2:]
    assert todo == ["git: commit what has changed, and build again", "git: tag this commit v0.1.0"]


def test_pythons_that_start_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A placeholder on PATH, as pyenv puts there, is passed over for the one that pyenv keeps."""
    here = ".".join(map(str, sys.version_info[:3]))
    wanted = here.rpartition(".")[0]
    kept = tmp_path / "pyenv" / "versions" / here / "bin" / f"python{wanted}"
    placeholder = tmp_path / "shims" / f"python{wanted}"
    for program, does in ((kept, f'exec "{sys.executable}" "$@"'), (placeholder, "exit 127")):
        program.parent.mkdir(parents=True)
        program.write_text(f"#!/bin/sh\n{does}\n")
        program.chmod(0o755)
    monkeypatch.setenv("PATH", str(placeholder.parent))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "pyenv"))
    assert release.find_python(wanted) == release.Python(kept, here)
    assert release.find_python("3.1") is None


def test_install_lines_hold_before_and_after_publishing() -> None:
    """No index has packtool yet, so that pages install from a clone, which stays true."""
    pages = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*.md")]
    sources = [*ROOT.glob("packtool/**/*.py"), *ROOT.glob("docs/**/*.rst")]
    found = []
    for path in (*pages, *sources):
        text = path.read_text(encoding="utf-8")
        lines = re.findall(r"^.*install ['\"]?packtool\b.*$", text, re.MULTILINE)
        found += [f"{path.relative_to(ROOT)}: {line}" for line in lines]
    assert found == []


@pytest.mark.slow
def test_a_release_for_this_python(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Wheel and sdist are built, hold what they must, and work in an environment of their own."""
    wanted = ".".join(map(str, sys.version_info[:2]))
    assert release.main(["--to", str(tmp_path), "--python", wanted, "3.1"]) == 0, capfd.readouterr().err
    printed = capfd.readouterr().out
    assert "built and checked: " in printed
    assert re.search(rf"^Python {wanted}\.\d+: installed, from text to a batch, tests passed$", printed, re.MULTILINE)
    assert "not tried, since this machine has no such Python: 3.1\n" in printed
    assert printed.splitlines()[-1].startswith("Nothing was uploaded. To upload: ")
