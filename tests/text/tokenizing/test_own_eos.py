"""A text that ends with EOS or begins with BOS gets no second one; one that spells special tokens can be refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import packtool
from packtool.cli import run
from packtool.formats.token_store import TokenStore
from tests.shell import Shell
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
    assert "1 text ended with EOS already: no second one was added" in capsys.readouterr().out
    packtool.verify(tmp_path / "s")


@pytest.mark.filterwarnings("ignore:.*texts hold special tokens")
def test_others_stay(tmp_path: Path) -> None:
    packtool.tokenize(iter([f"{EOS}a{EOS}{EOS}"]), tmp_path / "s", tokenizer=ASSET)
    [ids] = documents(tmp_path / "s")
    eos = load(tmp_path / "s")["tokenizer"]["eos_id"]
    assert ids.count(eos) == 3


@pytest.mark.filterwarnings("ignore:.*texts hold special tokens")
def test_one_bos_is_enough(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The rule of EOS, for the BOS that documents are given; where they are given none, a text keeps its own."""
    texts = ["one", "two", "three words here", "", "four"]
    begun = [text if number % 2 else EOS + text for number, text in enumerate(texts)]
    plain = {"bos_token": EOS, "workers": 1}
    packtool.tokenize(iter(texts), tmp_path / "plain", **plain)
    packtool.tokenize(iter(begun), tmp_path / "begun", **plain)
    [[one], [other]] = ([*map(np.array, TokenStore(tmp_path / name).shards)] for name in ("plain", "begun"))
    assert one.tolist() == other.tolist()
    counts = load(tmp_path / "begun")["counts"]
    assert (counts["own_bos"], counts["empty"], counts["documents"]) == (3, 1, 4)
    (tmp_path / "a.txt").write_text(f"{EOS}one")
    typed = ["tokenize", str(tmp_path / "a.txt"), "-o", str(tmp_path / "s")]
    assert run([*typed, "--bos-token", EOS]) == 0
    assert "1 text began with BOS already: no second one was added" in capsys.readouterr().out
    assert run([*typed, "--overwrite"]) == 0
    assert "began with" not in capsys.readouterr().out
    assert TokenStore(tmp_path / "s").shards[0][0] == 0


@pytest.mark.parametrize("kind", ["text", "conversation"])
def test_special_tokens_can_be_refused(tmp_path: Path, kind: str, shell: Shell) -> None:
    said = ["fine", f"ends here {EOS} or not", "fine, too"]
    records: list[Any] = [{"text": text} for text in said]
    typed = []
    if kind == "conversation":
        (tmp_path / "t.jinja").write_text("{% for m in messages %}{{ m.content }}{{ eos_token }}{% endfor %}")
        records = [{"messages": [{"role": "user", "content": "?"}, {"role": "assistant", "content": t}]} for t in said]
        typed = ["--chat-template", tmp_path / "t.jinja", "--train-on", "all"]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, records)))
    typed = ["tokenize", tmp_path / "a.jsonl", "-o", tmp_path / "s", "--special-tokens", "error", *typed]
    assert shell.refused(*typed) == (
        f"packtool: error[special-token]: {tmp_path}/a.jsonl:2: spells {EOS}. Remove it, or give --special-tokens text "
        "to encode it as plain text, or give --on-error skip, or quarantine.\n"
    )
    assert "left out: 1 rejected (1 special-token)" in shell(*typed, "--on-error", "skip")
    assert load(tmp_path / "s")["counts"]["documents"] == 2
