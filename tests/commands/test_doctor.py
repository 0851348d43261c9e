"""`doctor` looks at what packtool needs, and says what to install."""

import importlib
import re
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

from packtool.commands.doctor import OPTIONAL, REQUIRED, doctor
from tests.shell import Shell

PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def names(requirements: list[str]) -> set[str]:
    return {re.split(r"[^\w-]", requirement)[0] for requirement in requirements}


def failing(monkeypatch: pytest.MonkeyPatch, package: str, error: Exception) -> None:
    """Let the import of a package fail."""
    real = importlib.import_module

    def look(name: str, within: str | None = None) -> ModuleType:
        if name == package:
            raise error
        return real(name, within)

    monkeypatch.setattr(importlib, "import_module", look)


def test_it_looks_at_every_dependency() -> None:
    extras = PROJECT["optional-dependencies"]
    assert names(PROJECT["dependencies"]) == set(REQUIRED) | {"gigatoken", "fastokens", "backports-zstd"}
    assert ("backports-zstd" in REQUIRED) == (sys.version_info < (3, 14))
    assert set(OPTIONAL) == {"gigatoken", "fastokens"} | set().union(
        *(names(extras[name]) for name in extras if name not in ("dev", "docs"))
    )
    assert {check.name for check in doctor()} >= set(REQUIRED) | set(OPTIONAL)


def test_a_package_that_does_not_like_the_machine(monkeypatch: pytest.MonkeyPatch, shell: Shell) -> None:
    """As one that reads /proc when it is imported, where there is none."""
    failing(monkeypatch, "distributed", ProcessLookupError("process 7 not found"))
    said = "broken   distributed      can't be imported here (ProcessLookupError: process 7 not found); --scheduler"
    assert said in shell("doctor", status=1)


def test_an_extra_that_is_missing_is_no_failure(monkeypatch: pytest.MonkeyPatch, shell: Shell) -> None:
    failing(monkeypatch, "jinja2", ModuleNotFoundError("No module named 'jinja2'", name="jinja2"))
    text = shell("doctor")
    assert "ok       numpy            " in text
    assert "broken" not in text
    said = "missing  jinja2           No module named 'jinja2'; chat templates, for packtool.text.conversations\n"
    assert said in text
    assert f"                          {sys.executable} -m pip install jinja2\n" in text


def test_a_package_that_is_needed(monkeypatch: pytest.MonkeyPatch, shell: Shell) -> None:
    failing(monkeypatch, "pyarrow", ModuleNotFoundError("No module named 'pyarrow'", name="pyarrow"))
    assert '"name":"pyarrow","state":"broken"' in shell("doctor", "--json", status=1)
