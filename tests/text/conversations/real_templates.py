"""Chat templates of real models, from packages that ship them: TRL, Axolotl, llama.cpp and Unsloth.

Packages are only downloaded and read, never installed. `turn_ends.tsv` has for each template the tokens that generation
of its model stops at.
"""

from __future__ import annotations

import ast
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

FOLDER = Path(__file__).parents[3] / ".tokenizers"
PACKAGES = {
    "trl": ("trl==1.16.0", "trl/chat_templates/"),
    "axo": ("axolotl==0.19.0", "axolotl/utils/chat_templates/templates/"),
    "lcpp": ("llama-cpp-python==0.3.36", "vendor/llama.cpp/models/templates/"),
    "unsloth": ("unsloth==2026.10.9", "unsloth/chat_templates.py"),
}
"""Short name: package, and where in it templates lie."""


def archive(requirement: str) -> Path:
    """The wheel of a package, or its source archive where that alone has the templates."""
    name, _, version = requirement.partition("==")
    kind = ("--no-binary", "tar.gz") if name == "llama-cpp-python" else ("--only-binary", "whl")
    found = list(FOLDER.glob(f"{name.replace('-', '_')}-{version}*.{kind[1]}"))
    if found:
        return found[0]
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=FOLDER) as made:
        command = [
            sys.executable,
            "-m",
            "pip",
            "download",
            "-q",
            "--no-deps",
            kind[0],
            ":all:",
            "-d",
            made,
            requirement,
        ]
        subprocess.run(command, check=True, capture_output=True)
        (file,) = Path(made).iterdir()
        return file.replace(FOLDER / file.name)


def files(path: Path) -> Iterator[tuple[str, bytes]]:
    """The names and bytes of the files of an archive that may hold templates."""
    wanted = (".jinja", "chat_templates.py")
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as wheel:
            for name in wheel.namelist():
                if name.endswith(wanted):
                    yield name, wheel.read(name)
        return
    with tarfile.open(path) as tar:
        for member in tar:
            if member.name.endswith(wanted) and (file := tar.extractfile(member)):
                yield member.name, file.read()


def templates() -> dict[str, str]:
    """The source of every template, by package and name."""
    found: dict[str, str] = {}
    for short, (requirement, place) in PACKAGES.items():
        for name, data in files(archive(requirement)):
            if place in name and name.endswith(".jinja"):
                found[f"{short}/{Path(name).stem}"] = data.decode()
            elif name.endswith(place):
                found |= {f"{short}/{each}": source for each, source in _constants(data.decode())}
    return dict(sorted(found.items()))


def _constants(source: str) -> Iterator[tuple[str, str]]:
    """The texts that a Python module assigns to names of templates."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Name):
            continue
        name, value = node.targets[0].id, node.value
        if name.endswith("_template") and isinstance(value, ast.Constant) and "{%" in str(value.value):
            yield name, str(value.value)
