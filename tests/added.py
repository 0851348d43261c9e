"""Copies of the package to which something is added as CONTRIBUTING says."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]


def copy_of(place: Path, *names: str) -> Path:
    """Copy files and directories of the repository; their bytecode too, so that only what is changed is compiled."""
    for name in names:
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (shutil.copytree if (ROOT / name).is_dir() else shutil.copy2)(ROOT / name, place / name)
    return place


def examples_of(title: str) -> list[str]:
    """The code below a title of CONTRIBUTING."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").partition(f"## {title}\n")[2].partition("\n## ")[0]
    return [found[1] for found in re.finditer(r"```\w+\n(.*?)```", text, re.DOTALL)]


def replace(file: Path, before: str, after: str) -> None:
    """Change a file in one place."""
    source = file.read_text(encoding="utf-8")
    assert source.count(before) == 1, (file, before)
    file.write_text(source.replace(before, after), encoding="utf-8")


def run(place: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a module of the copy."""
    environment = {**os.environ, "PYTHONPATH": str(place), "COLUMNS": "100"}
    command = [sys.executable, "-m", *arguments]
    return subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True, check=False)


def packtool(place: Path, *arguments: str) -> str:
    """Run packtool of the copy, and return all that it says."""
    result = run(place, "packtool", *arguments)
    return result.stdout + result.stderr


def manifest(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((path / "manifest.json").read_text(encoding="utf-8"))
    return found
