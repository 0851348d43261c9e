"""A text that ends with EOS gets no second one."""

from __future__ import annotations

from pathlib import Path

import pytest

import packtool
from packtool.cli import run
from tests.stores import load
from tests.text.tokenizing.runs import ASSET, documents, reference, stored

EOS = "<|endoftext|>"


def test_one_eos_is_enough(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    texts = ["one", "two", "three words here", "", "four"]
    ended = stored(iter([text + EOS for text in texts]), tmp_path / "ended")  # a warning would be an error
    assert ended == reference(texts)
    counts = load(tmp_path / "ended")["counts"]
    assert (counts["own_eos"], counts["empty"], counts["documents"]) == (5, 1, 4)
    (tmp_path / "a.txt").write_text(f"one{EOS}")
    assert run(["tokenize", str(tmp_path / "a.txt"), "-o", str(tmp_path / "s"), "--min-tokens", "2"]) == 0
    assert "1 text with an EOS at the end, which get no second one" in capsys.readouterr().out
    packtool.verify(tmp_path / "s")


@pytest.mark.filterwarnings("ignore:.*texts hold special tokens")
def test_others_stay(tmp_path: Path) -> None:
    packtool.tokenize(iter([f"{EOS}a{EOS}{EOS}"]), tmp_path / "s", tokenizer=ASSET)
    [ids] = documents(tmp_path / "s")
    eos = load(tmp_path / "s")["tokenizer"]["eos_id"]
    assert ids.count(eos) == 3
