"""Build the wheel and the sdist, check them and try them on every Python of this machine; upload nothing.

python scripts/release.py                 into dist/, on every Python that is found
python scripts/release.py --to DIR --python 3.12
python scripts/release.py --python        build and check alone

What is wrong ends the command with exit status 1. What only people can do before the upload is listed at the end.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
TESTS = ("tests/test_golden.py", "tests/test_laws.py", "tests/formats/test_versions.py")
"""Those that need nothing but pytest, Hypothesis and the package: its bytes, what it reads, and its laws."""
CAN_MAKE_ENVIRONMENTS = "import sys, venv, ensurepip; print(*sys.version_info[:3], sep='.')"
READ = """
import numpy as np, packtool
dataset = packtool.open("shuffled")
batch = dataset.batch(slice(0, 8))
assert batch["input_ids"].shape == batch["labels"].shape == (8, 1024)
np.testing.assert_array_equal(dataset[0], np.asarray(batch["input_ids"])[0])
print(packtool.__version__, packtool.__file__)
"""


class Fault(Exception):  # noqa: N818 - what is wrong with the release, not with this program
    """What must be mended before a release."""


class Built(NamedTuple):
    """The two files of a release."""

    wheel: Path
    sdist: Path


class Python(NamedTuple):
    """A Python that can make environments, and its full version."""

    program: Path
    version: str


def say(line: str) -> None:
    """Print a line at once: the steps take minutes."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def run(*command: str | Path, at: Path, **environment: str) -> str:
    """Return what a command prints; a Fault with all that it said where it fails."""
    done = subprocess.run(
        command, cwd=at, env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise Fault(f"{' '.join(map(str, command))} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


class Section(NamedTuple):
    """The heading of a section of the changelog, and whether something stands in it."""

    name: str
    date: str
    filled: bool


def sections(changelog: str) -> list[Section]:
    """Return the sections of a changelog, the newest first.

    >>> sections("# Changelog\\n\\n## Unreleased\\n\\n## 0.2.0 – 2027-01-31\\n\\n- Rows.\\n")
    [Section(name='Unreleased', date='', filled=False), Section(name='0.2.0', date='2027-01-31', filled=True)]
    """
    parts = re.split(r"^## (\S+)(?: – (.*))?$", changelog, flags=re.MULTILINE)[1:]
    return [
        Section(name, date or "", bool(text.strip()))
        for name, date, text in zip(parts[::3], parts[1::3], parts[2::3], strict=True)
    ]


def released(root: Path) -> Section:
    """Return the newest section of the changelog that has a version."""
    for section in sections((root / "CHANGELOG.md").read_text(encoding="utf-8")):
        if section.name != "Unreleased":
            return section
    raise Fault("CHANGELOG.md has no section with a version")


def version(root: Path) -> str:
    """Return the version that the package, CITATION.cff and the newest section of the changelog have in common."""
    source = (root / "packtool" / "support" / "version.py").read_text(encoding="utf-8")
    citation = (root / "CITATION.cff").read_text(encoding="utf-8")
    in_source = re.search(r'^__version__ = "(.+)"$', source, re.MULTILINE)
    in_citation = re.search(r"^version: (.+)$", citation, re.MULTILINE)
    found = {
        "packtool/support/version.py": in_source[1] if in_source else "none",
        "CITATION.cff": in_citation[1] if in_citation else "none",
        "CHANGELOG.md": released(root).name,
    }
    if len(set(found.values())) > 1:
        raise Fault("the versions differ: " + ", ".join(f"{name} has {number}" for name, number in found.items()))
    return found["CHANGELOG.md"]


def build(root: Path, to: Path) -> Built:
    """Build the sdist of a tree, and the wheel from it; those that lay there before are removed.

    Raises:
        Fault: an index would refuse them, or not show README.
    """
    for old in (*to.glob("*.whl"), *to.glob("*.tar.gz")):
        old.unlink()
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", to.resolve(), at=root)
    built = Built(next(to.glob("*.whl")), next(to.glob("*.tar.gz")))
    run(sys.executable, "-m", "twine", "check", "--strict", *built, at=root)
    return built


def check_contents(built: Built, root: Path) -> None:
    """Raise a Fault unless the wheel holds all of the package and the licences, and nothing from beside it."""
    with zipfile.ZipFile(built.wheel) as archive:
        names = set(archive.namelist())
    package = [path for path in (root / "packtool").rglob("*") if path.is_file() and path.suffix != ".pyc"]
    missing = {path.relative_to(root).as_posix() for path in package} - names
    licences = {name.rpartition("/")[2] for name in names if "/licenses/" in name}
    missing |= {"LICENSE", "NOTICE"} - licences
    more = {name for name in names if not name.startswith(("packtool/", "packtool-"))}
    if missing or more:
        raise Fault(f"the wheel lacks {sorted(missing)} and has {sorted(more)} from beside the package")
    with tarfile.open(built.sdist) as archive:
        stray = [name for name in archive.getnames() if re.search(r"/(\.venv[^/]*|--.*|__pycache__|build)(/|$)", name)]
    if stray:
        raise Fault(f"the sdist has what no release should: {stray[:5]}")


def unpacked(sdist: Path, place: Path) -> Path:
    """Unpack an sdist, and return the directory in it."""
    # Python has the argument from 3.11.4 on; the sdist is our own.
    checked = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
    with tarfile.open(sdist) as archive:
        archive.extractall(place, **checked)  # type: ignore[arg-type]
    return place / sdist.name.removesuffix(".tar.gz")


def find_python(wanted: str) -> Python | None:
    """Return a Python of a version such as "3.12" that starts and can make environments; None where there is none.

    It is looked for on PATH, among those of pyenv, and where uv keeps its own.
    """
    name = f"python{wanted}"
    places = [Path(directory, name) for directory in os.get_exec_path()]
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    places += sorted(pyenv.glob(f"versions/{wanted}.*/bin/{name}"), reverse=True)
    uv = shutil.which("uv")
    if uv:
        found = subprocess.run(
            [uv, "python", "find", "--no-python-downloads", wanted], capture_output=True, text=True, check=False
        )
        places += [Path(found.stdout.strip())] if found.returncode == 0 else []
    for program in places:
        if not program.is_file():
            continue
        # One on PATH may be a placeholder that does not start, or lack what Debian packs apart.
        answer = subprocess.run([program, "-c", CAN_MAKE_ENVIRONMENTS], capture_output=True, text=True, check=False)
        if answer.returncode == 0 and answer.stdout.startswith(f"{wanted}."):
            return Python(program, answer.stdout.strip())
    return None


def try_on(python: Python, built: Built, root: Path) -> None:
    """Install the wheel as a user would, go from text to a batch, and run the tests of the sdist against it."""
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        run(python.program, "-m", "venv", place / "venv", at=place)
        programs = place / "venv" / "bin"
        run(programs / "pip", "install", "-qq", "--disable-pip-version-check", built.wheel.resolve(), at=place)
        go_from_text_to_a_batch(programs, place, root)
        run(programs / "pip", "install", "-qq", "--disable-pip-version-check", "pytest", "hypothesis", at=place)
        tests = unpacked(built.sdist, place)
        shutil.rmtree(tests / "packtool")  # so that only the installed one can be imported
        run(programs / "python", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not slow", *TESTS, at=tests)


def go_from_text_to_a_batch(programs: Path, place: Path, root: Path) -> None:
    """Run every stage on the sample corpus, with the fast encoders and without them."""
    tool = programs / "packtool"
    run(programs / "python", root / "scripts" / "sample_corpus.py", "corpus", at=place)
    run(tool, "tokenize", "corpus", "-o", "tokens", at=place)
    run(tool, "pack", "tokens", "-o", "packed", "--strategy", "bfd", "--sequence-length", "1024", at=place)
    run(tool, "shuffle", "packed", "-o", "shuffled", "--method", "atom", "--epoch", "1", at=place)
    run(tool, "verify", "shuffled", "--store", "tokens", at=place)
    if "padding" not in run(tool, "stats", "shuffled", at=place, NO_COLOR="1"):
        raise Fault("stats prints no padding")
    printed = run(programs / "python", "-c", READ, at=place)
    if not Path(printed.split()[1]).is_relative_to(place):
        raise Fault(f"another packtool was read: {printed}")
    # Machines without wheels of the fast encoders have to write the same bytes.
    run(programs / "pip", "uninstall", "-qq", "-y", "gigatoken", "fastokens", at=place)
    run(tool, "tokenize", "corpus", "-o", "again", at=place)
    for path in (place / "tokens").iterdir():
        if path.name != "run.json" and path.read_bytes() != (place / "again" / path.name).read_bytes():
            raise Fault(f"without the fast encoders, {path.name} is another")


def left_to_do(root: Path) -> list[str]:
    """Return what only people can do before the upload."""
    todo = []
    section = released(root)
    first = sections((root / "CHANGELOG.md").read_text(encoding="utf-8"))[0]
    if first.name == "Unreleased" and first.filled:
        todo.append(f'CHANGELOG.md: move what stands under "Unreleased" to {section.name}')
    if not re.fullmatch(r"\d{4}-\d{2}-\d{2}", section.date):
        todo.append(f'CHANGELOG.md: write the date in place of "{section.date}"')
    if "urls" not in tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]:
        todo.append("pyproject.toml: [project.urls] is missing, since the project has no public address yet")
    if (root / ".git").exists():
        if run("git", "status", "--porcelain", at=root):
            todo.append("git: commit what has changed, and build again")
        if f"v{section.name}" not in run("git", "tag", "--points-at", "HEAD", at=root).split():
            todo.append(f"git: tag this commit v{section.name}")
    return todo


def release(root: Path, to: Path, wanted: list[str]) -> None:
    """Build, check and try a release, and print what came out; a Fault at the first thing that is wrong."""
    number = version(root)
    say(f"packtool {number}: CHANGELOG.md, CITATION.cff and the package agree")
    to.mkdir(parents=True, exist_ok=True)
    built = build(root, to)
    check_contents(built, root)
    say(f"built and checked: {built.wheel}, {built.sdist}")
    missing = []
    for each in wanted:
        python = find_python(each)
        if python is None:
            missing.append(each)
            continue
        try_on(python, built, root)
        say(f"Python {python.version}: installed, from text to a batch, tests passed")
    if missing:
        say(f"not tried, since this machine has no such Python: {', '.join(missing)}")
    if wanted and len(missing) == len(wanted):
        raise Fault("no Python to try the wheel on")
    todo = left_to_do(root)
    if todo:
        say("Before the upload:\n" + "\n".join(f"  - {thing}" for thing in todo))
    say(f"Nothing was uploaded. To upload: twine upload {to}/*")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--to", type=Path, default=ROOT / "dist", help="where the files go")
    parser.add_argument("--python", nargs="*", default=list(PYTHONS), help="versions to try, such as 3.12; or none")
    options = parser.parse_args(arguments)
    try:
        release(ROOT, options.to, options.python)
    except Fault as fault:
        sys.stderr.write(f"No release: {fault}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
