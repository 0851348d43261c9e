"""What users install: wheel and sdist build, hold what they must, and work in an environment of their own."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

import packtool

ROOT = Path(__file__).parents[1]

pytestmark = pytest.mark.slow


def run(*command: str | Path, cwd: Path, **environment: str) -> str:
    """Standard output of a command that must succeed."""
    done = subprocess.run(
        command, cwd=cwd, env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The wheel and the sdist."""
    output = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "hatchling", "build", "-d", output, cwd=ROOT)
    return next(output.glob("*.whl")), next(output.glob("*.tar.gz"))


def test_wheel_holds_the_package_and_its_data(built: tuple[Path, Path]) -> None:
    names = set(zipfile.ZipFile(built[0]).namelist())
    ours = {path.relative_to(ROOT).as_posix() for path in (ROOT / "packtool").rglob("*") if path.suffix != ".pyc"}
    assert {name for name in ours if (ROOT / name).is_file()} <= names
    assert {"packtool/py.typed", "packtool/assets/tokenizer.json"} <= names
    assert {name.rpartition("/")[2] for name in names if "/licenses/" in name} == {"LICENSE", "NOTICE"}
    assert not {name for name in names if name.startswith(("tests/", "scripts/", "benchmarks/"))}


def test_sdist_builds_the_same_wheel(built: tuple[Path, Path], tmp_path: Path) -> None:
    wheel, sdist = built
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    source = next(tmp_path.iterdir())
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path / "again", cwd=source)
    again = next((tmp_path / "again").glob("*.whl"))
    with zipfile.ZipFile(wheel) as a, zipfile.ZipFile(again) as b:
        assert sorted(a.namelist()) == sorted(b.namelist())
        assert all(a.read(name) == b.read(name) for name in a.namelist())


def test_demo_runs_from_the_wheel(built: tuple[Path, Path], tmp_path: Path) -> None:
    run(sys.executable, "-m", "venv", tmp_path / "venv", cwd=tmp_path)
    binaries = tmp_path / "venv" / "bin"
    run(binaries / "pip", "install", "-qq", "-c", ROOT / "constraints.txt", built[0], cwd=tmp_path)
    run(binaries / "python", ROOT / "scripts" / "sample_corpus.py", "corpus", cwd=tmp_path)
    tool = binaries / "packtool"
    assert run(tool, "--version", cwd=tmp_path) == f"packtool {packtool.__version__}\n"
    run(tool, "tokenize", "corpus", "-o", "tokens", cwd=tmp_path)
    run(tool, "pack", "tokens", "-o", "packed", "--strategy", "concat", "--sequence-length", "1024", cwd=tmp_path)
    run(tool, "shuffle", "packed", "-o", "shuffled", "--method", "atom", "--epoch", "1", cwd=tmp_path)
    assert "padding" in run(tool, "stats", "shuffled", cwd=tmp_path, NO_COLOR="1")
    run(tool, "verify", "shuffled", cwd=tmp_path)
    run(binaries / "pip", "uninstall", "-qq", "-y", "gigatoken", "fastokens", cwd=tmp_path)
    run(tool, "tokenize", "corpus", "-o", "again", cwd=tmp_path)
    for path in (tmp_path / "tokens").iterdir():
        assert path.name == "run.json" or path.read_bytes() == (tmp_path / "again" / path.name).read_bytes()
    where = run(binaries / "python", "-c", "import packtool; print(packtool.__file__)", cwd=tmp_path)
    assert Path(where.strip()).is_relative_to(tmp_path)
