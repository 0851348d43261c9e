"""`verify STORE --tokenizer` against the tokenizers library itself, on texts that are known."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer

import packtool
from packtool.commands.tokenizer_check import SAMPLE
from packtool.errors import UsageError
from tests.shell import Shell
from tests.stores import write_store

OWN = Path(packtool.__file__).parent / "assets" / "tokenizer.json"
TEXTS = [f"{n} words, so to say: the {n % 7}th <|endoftext|> of all" for n in range(30)] + ["a", "b", "the end"]


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tokenizer that merges less, so that it gives other ids for some texts."""
    spec = json.loads(OWN.read_text())
    spec["model"]["merges"] = [pair for pair in spec["model"]["merges"] if "d" not in "".join(pair)]
    path = tmp_path_factory.mktemp("other") / "tokenizer.json"
    path.write_text(json.dumps(spec))
    return path


def made(path: Path, texts: list[Any], **options: Any) -> Path:
    field = options.get("ids_field", "text")
    lines = "".join(json.dumps({field: text}) + "\n" for text in texts)
    path.with_suffix(".jsonl").write_text(lines)
    packtool.tokenize(path.with_suffix(".jsonl"), path, workers=1, encoder="tokenizers", **options)
    return path


@pytest.mark.filterwarnings("ignore:.*texts hold special tokens")
@pytest.mark.parametrize("options", [{"special_tokens": "token"}, {"special_tokens": "text", "bos_token": 5}])
def test_it_agrees_where_the_library_gives_the_same_ids(
    tmp_path: Path, other: Path, options: dict[str, Any], shell: Shell
) -> None:
    store = made(tmp_path / "store", TEXTS, **options)
    old, new = Tokenizer.from_file(str(OWN)), Tokenizer.from_file(str(other))
    for each in (old, new):
        each.encode_special_tokens = options["special_tokens"] == "text"
    ids = [[each.encode(text).ids for text in TEXTS] for each in (old, new)]
    differ = [number for number, (a, b) in enumerate(zip(*ids, strict=True)) if a != b]
    assert 0 < len(differ) < len(TEXTS)
    same = packtool.verify(store, tokenizer=OWN)
    assert (same.problems, same.tokenizer.told, same.tokenizer.equal) == ([], len(TEXTS), len(TEXTS))
    found = packtool.verify(store, tokenizer=other)
    assert (found.tokenizer.told, found.tokenizer.equal) == (len(TEXTS), len(TEXTS) - len(differ))
    [problem] = found.problems
    assert problem.what.startswith(f"document {differ[0]} (store.jsonl:{differ[0] + 1}) has other ids from token ")
    for of_each, where in zip(ids, ("in the store", "from this tokenizer"), strict=True):
        pairs = zip(ids[0][differ[0]], ids[1][differ[0]], strict=False)
        begin = next(n for n, (one, another) in enumerate(pairs) if one != another)
        assert f"{of_each[differ[0]][begin : begin + 8]} {where}" in problem.what
    printed = shell("verify", store, "--tokenizer", other, status=1)
    of = f"{len(TEXTS) - len(differ)} of {len(TEXTS)} documents (0 of {len(TEXTS)} could not be told)"
    assert printed == f"{other}: equal in {of}\n"
    assert "error[tokenizer-differs]: --tokenizer: document" in shell.err


def test_what_can_not_be_told_does_not_count(tmp_path: Path) -> None:
    split = [[ord(letter) for letter in "the"], Tokenizer.from_file(str(OWN)).encode("the").ids]
    store = made(tmp_path / "store", split, ids_field="ids")
    check = packtool.verify(store, tokenizer=OWN).tokenizer
    assert (check.drawn, check.told, check.equal) == (2, 1, 1)
    untold = made(tmp_path / "untold", split[:1], ids_field="ids")
    with pytest.raises(UsageError, match="tokenizer: the text of none of 1 document can be told from its ids"):
        packtool.verify(untold, tokenizer=OWN)
    with pytest.raises(UsageError, match=r"bare does not hold its own tokenizer, so no text is known"):
        packtool.verify(write_store(tmp_path / "bare", [3, 4]), tokenizer=OWN)


def test_a_large_store_gives_a_sample_over_all_files(tmp_path: Path, other: Path) -> None:
    texts = {"a": ["a"] * (2 * SAMPLE), "b": ["the word"], "c": ["a"] * SAMPLE}
    for name, held in texts.items():
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in held))
    files = [tmp_path / f"{name}.jsonl" for name in texts]
    packtool.tokenize(files, tmp_path / "s", workers=1, encoder="tokenizers")
    found = packtool.verify(tmp_path / "s", tokenizer=other)
    assert SAMPLE < found.tokenizer.drawn <= SAMPLE + 3
    assert found.tokenizer.equal == found.tokenizer.told - 1  # the one document of b, which 1,000 of 3,001 may lack
    again = packtool.verify(tmp_path / "s", tokenizer=other)
    assert (str(found.problems), found.tokenizer.summary) == (str(again.problems), again.tokenizer.summary)
