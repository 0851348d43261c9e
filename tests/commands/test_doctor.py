"""`doctor` looks at what packtool needs, and says what to install."""

from __future__ import annotations

import importlib
import json
import re
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pytest
from tokenizers import AddedToken

from packtool.cli import run
from packtool.commands.doctor import OPTIONAL, REQUIRED, doctor, doctor_of_tokenizer
from packtool.encoding.encoder_choice import installed
from tests.encoding import listed, shapes

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


def test_all_is_well_here(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["doctor"]) == 0
    text = capsys.readouterr().out
    assert "ok       encoders         " in text
    assert "broken" not in text


def test_an_extra_that_is_missing_is_no_failure(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    without(monkeypatch, "scipy")
    assert run(["doctor"]) == 0
    assert "missing  scipy            No module named 'scipy'; pack --optimize\n" in (text := capsys.readouterr().out)
    assert f"                          {sys.executable} -m pip install scipy\n" in text


def test_a_package_that_is_needed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    without(monkeypatch, "pyarrow")
    assert run(["doctor", "--json"]) == 1
    assert '"name":"pyarrow","state":"broken"' in capsys.readouterr().out


def tokenizer_of(directory: Path, spec: dict[str, object], **config: str) -> Path:
    (directory / "tokenizer.json").write_text(json.dumps(spec))
    (directory / "tokenizer_config.json").write_text(json.dumps(config))
    return directory


def states(directory: Path) -> dict[str, tuple[str, str]]:
    return {check.name: (check.state, check.found) for check in doctor_of_tokenizer(directory)}


@pytest.mark.skipif(not installed("gigatoken"), reason="there is no gigatoken for this platform")
def test_a_tokenizer_that_the_fast_encoder_is_right_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    directory = tokenizer_of(tmp_path, listed.LISTED["Llama 2"])
    found = states(directory)
    assert found["encoder"][1].startswith("gigatoken: ")
    assert found["long documents"] == ("ok", "in pieces")
    assert found["EOS"] == ("ok", "</s> (2); candidates: </s>")
    assert found["tokenizers"][1].partition(" MB per CPU second, loaded in ")[1]
    assert found["gigatoken"][1].endswith("; the same ids")
    assert run(["doctor", "--tokenizer", str(directory)]) == 0
    assert "ok       EOS              </s> (2); candidates: </s>\n" in capsys.readouterr().out


def test_a_tokenizer_that_it_is_not_right_for(tmp_path: Path) -> None:
    spec, reason = listed.UNLISTED["SentencePiece and NFC"]
    found = states(tokenizer_of(tmp_path, spec))
    assert found["encoder"][1].startswith("tokenizers: ")
    if installed("gigatoken"):
        assert reason in found["encoder"][1]
    assert found["long documents"] == ("ok", "whole: memory grows with the longest one")
    assert "gigatoken" not in found


def test_an_eos_that_ends_turns(tmp_path: Path) -> None:
    spec = shapes.with_added(AddedToken("<|im_end|>", special=True))
    found = states(tokenizer_of(tmp_path, spec, eos_token="<|im_end|>"))
    number = spec["added_tokens"][-1]["id"]
    assert found["EOS"] == (
        "missing",
        f"<|im_end|> ({number}), which ends a turn of a chat; candidates: <|endoftext|>",
    )


def test_an_eos_that_nobody_knows(tmp_path: Path) -> None:
    spec = shapes.with_added(AddedToken("</s>", special=True))
    found = states(tokenizer_of(tmp_path, spec))
    assert found["EOS"] == ("missing", "the vocabulary has several EOS candidates: <|endoftext|>, </s>")


def test_no_tokenizer_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["doctor", "--tokenizer", str(tmp_path)]) == 1
    assert "no tokenizer.json there" in capsys.readouterr().err
