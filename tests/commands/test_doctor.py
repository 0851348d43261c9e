"""`doctor` looks at what packtool needs, and says what to install."""

from __future__ import annotations

import importlib
import re
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

from packtool.cli import run
from packtool.commands.doctor import OPTIONAL, REQUIRED, doctor
from tests.shell import Shell

PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def names(requirements: list[str]) -> set[str]:
    return {re.split(r"[^\w-]", requirement)[0] for requirement in requirements}


def without(monkeypatch: pytest.MonkeyPatch, absent: str) -> None:
    real = importlib.import_module

    def fake(name: str, package: str | None = None) -> ModuleType:
        if name == absent:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return real(name, package)

    monkeypatch.setattr(importlib, "import_module", fake)


def test_it_looks_at_every_dependency() -> None:
    extras = PROJECT["optional-dependencies"]
    assert names(PROJECT["dependencies"]) == set(REQUIRED) | {"gigatoken", "fastokens", "backports-zstd"}
    assert ("backports-zstd" in REQUIRED) == (sys.version_info < (3, 14))
    assert set(OPTIONAL) == {"gigatoken", "fastokens"} | set().union(
        *(names(extras[name]) for name in extras if name not in ("dev", "docs"))
    )
    assert {check.name for check in doctor()} >= set(REQUIRED) | set(OPTIONAL)


def test_all_is_well_here(shell: Shell) -> None:
    text = shell("doctor")
    assert "ok       numpy            " in text
    assert "broken" not in text


def test_a_package_that_does_not_like_the_machine(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As one that reads /proc when it is imported, where there is none."""
    real = importlib.import_module

    def look(name: str, package: str | None = None) -> ModuleType:
        if name == "distributed":
            raise ProcessLookupError("process 7 not found")
        return real(name, package)

    monkeypatch.setattr(importlib, "import_module", look)
    assert run(["doctor"]) == 1
    said = "broken   distributed      can't be imported here (ProcessLookupError: process 7 not found); --scheduler"
    assert said in capsys.readouterr().out


def test_an_extra_that_is_missing_is_no_failure(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    without(monkeypatch, "jinja2")
    assert run(["doctor"]) == 0
    assert "missing  jinja2           No module named 'jinja2'; chat templates, for packtool.text.conversations\n" in (
        text := capsys.readouterr().out
    )
    assert f"                          {sys.executable} -m pip install jinja2\n" in text


def test_a_package_that_is_needed(monkeypatch: pytest.MonkeyPatch, shell: Shell) -> None:
    without(monkeypatch, "pyarrow")
    assert '"name":"pyarrow","state":"broken"' in shell("doctor", "--json", status=1)
