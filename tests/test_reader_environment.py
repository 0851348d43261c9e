"""Reading datasets costs NumPy, msgspec and xxhash: the wheel, unpacked beside these alone, reads what was written.

The process has the standard library and one directory, so any other import fails. What needs more says what to install.
"""

import os
import re
import subprocess
import sys
import tomllib
import zipfile
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import packtool
from packtool.support.installing import BEYOND_READING
from tests.stores import write_store

ROOT = Path(__file__).parents[1]
READER = ("msgspec", "numpy", "xxhash")
WHERE_THERE_ARE_WHEELS = {"backports-zstd", "gigatoken", "fastokens"}
READING = """
import numpy as np
import packtool

data = packtool.open("packed")
batch = data.batch([2, 0])
assert batch["input_ids"].shape == (2, 64) and int(batch["cu_seqlens"][-1]) == 128
assert data.epoch(2)[0].shape == (64,) and data[[3, 1]].shape == (2, 64) and len(data.segments(0))
blend = packtool.open("blend.toml")
assert blend[0].shape == (64,) and len(blend) == 40
print(sum(int(row.astype(np.int64).sum()) for row in data), sum(int(row.astype(np.int64).sum()) for row in blend))
"""
NEEDING = {
    "packtool.open('index')[0]": "a dataset without tokens of its own",
    "packtool.open('s3://bucket/packed')": "an object store",
    "packtool.pack('web', 'again', strategy='bfd', sequence_length=64)": "packtool.pack",
}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Datasets, and the directory `reader` with the wheel and what reading needs."""
    directory = tmp_path_factory.mktemp("reader-environment")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", directory / "dist"],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    [wheel] = (directory / "dist").iterdir()
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(directory / "reader")
    for name in READER:
        spec = find_spec(name)
        installed = Path(spec.origin).parent
        for part in (installed, installed.with_name(f"{name}.libs")):  # libraries of a wheel lie beside it
            if part.exists():
                (directory / "reader" / part.name).symlink_to(part)
    lengths = [5 + n % 40 for n in range(90)]
    write_store(directory / "web", lengths)
    for name, options in (("packed", {}), ("index", {"index_only": True})):
        packtool.pack(directory / "web", directory / name, strategy="bfd", sequence_length=64, **options)
    (directory / "blend.toml").write_text('rows = 40\n[sources.a]\npath = "packed"\n')
    return directory


def alone(place: Path, *arguments: str, first: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run Python without the packages of this environment, but with those in `first`."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    command = [sys.executable, "-S", "-P", *arguments]
    environment["PYTHONPATH"] = os.pathsep.join(str(path) for path in (first, place / "reader") if path is not None)
    return subprocess.run(command, cwd=place, capture_output=True, text=True, check=False, env=environment)


def test_written_datasets_are_read_without_anything_else(place: Path) -> None:
    done = alone(place, "-c", READING)
    assert done.returncode == 0, done.stderr
    data, blend = packtool.open(place / "packed"), packtool.open(place / "blend.toml")
    assert done.stdout.split() == [str(sum(int(row.sum(dtype=np.int64)) for row in rows)) for rows in (data, blend)]


@pytest.mark.slow
@pytest.mark.skipif(sys.version_info >= (3, 13), reason="NumPy 1.26 has wheels up to Python 3.12")
def test_numpy_1_26_reads_the_same(place: Path) -> None:
    old = place / "old"
    install = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(old), "numpy==1.26.4"]
    subprocess.run(install, check=True)
    version = alone(place, "-c", "import numpy; print(numpy.__version__)", first=old)
    assert version.stdout == "1.26.4\n"
    done, now = alone(place, "-c", READING, first=old), alone(place, "-c", READING)
    assert done.returncode == 0, done.stderr
    assert done.stdout == now.stdout


@pytest.mark.parametrize("expression", NEEDING)
def test_what_needs_more_says_in_a_line_what_to_install(place: Path, expression: str) -> None:
    done = alone(place, "-c", f"import packtool\ntry:\n    {expression}\nexcept Exception as error:\n    print(error)")
    [said] = done.stdout.splitlines()
    packages = ", ".join(BEYOND_READING)
    assert said.startswith(f"{NEEDING[expression]} needs {packages}; only reading written datasets does without. ")
    assert said.endswith(f" {' '.join(BEYOND_READING)}.")


def test_the_command_says_what_to_install(place: Path) -> None:
    done = alone(place, "-m", "packtool", "stats", "packed")
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(
        r"packtool: error\[missing-package\]: the command packtool needs .*typer; .* install .*typer\.\n", done.stderr
    )


def test_what_reading_does_without_is_what_packtool_is_installed_with() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    names = {re.split(r"[<>=;]", each)[0] for each in project["dependencies"]}
    assert names - WHERE_THERE_ARE_WHEELS - set(READER) == set(BEYOND_READING)
