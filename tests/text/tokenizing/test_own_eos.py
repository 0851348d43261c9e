"""A text that ends with EOS or begins with BOS gets no second one; one that spells special tokens can be refused."""

import json
from pathlib import Path
from typing import Any

import pytest

import packtool
from packtool.spelling import flag
from tests.shell import Shell
from tests.stores import load
from tests.text.tokenizing.runs import ASSET, documents, stored

EOS = "<|endoftext|>"


TEXTS = ["one", "two", "three words here", "", "four"]


@pytest.mark.parametrize(
    ("texts", "options", "count", "said"),
    [
        ([text + EOS for text in TEXTS], {}, {"own_eos": 5}, "1 text ended with EOS already: no second one was added"),
        (
            [text if number % 2 else EOS + text for number, text in enumerate(TEXTS)],
            {"bos_token": EOS},
            {"own_bos": 3},
            "1 text began with BOS already: no second one was added",
        ),
    ],
    ids=["EOS", "BOS"],
)
def test_one_is_enough(
    tmp_path: Path, shell: Shell, texts: list[str], options: dict[str, Any], count: dict[str, int], said: str
) -> None:
    plain = stored(iter(TEXTS), tmp_path / "plain", **options)  # a warning would be an error
    assert stored(iter(texts), tmp_path / "own", **options) == plain
    assert load(tmp_path / "own")["counts"].items() >= {**count, "empty": 1, "documents": 4}.items()
    (tmp_path / "a.txt").write_text(texts[0])
    typed = [f"{flag(name)}={value}" for name, value in options.items()]
    assert said in shell("tokenize", tmp_path / "a.txt", "-o", tmp_path / "s", *typed)


@pytest.mark.filterwarnings("ignore:.*texts hold special tokens")
def test_others_stay(tmp_path: Path) -> None:
    packtool.tokenize(iter([f"{EOS}a{EOS}{EOS}"]), tmp_path / "s", tokenizer=ASSET)
    [ids] = documents(tmp_path / "s")
    eos = load(tmp_path / "s")["tokenizer"]["eos_id"]
    assert ids.count(eos) == 3


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
