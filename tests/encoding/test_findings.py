"""What earlier runs found is used again for the same file, versions and question, and for nothing else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from packtool.encoding import findings
from packtool.encoding.encoder_choice import settle
from packtool.encoding.load import load
from packtool.errors import UsageError
from packtool.warnings import PacktoolWarning
from tests.encoding import shapes


def tokenizer_file(directory: Path, **config: object) -> Path:
    path = directory / "tokenizer.json"
    path.write_bytes(shapes.data(shapes.spec()))
    path.with_name("tokenizer_config.json").write_text(json.dumps(config))
    return path


def test_a_tokenizer_is_parsed_once(tmp_path: Path) -> None:
    path, kept = tokenizer_file(tmp_path), tmp_path / "kept"
    first = load(path, kept=kept)
    chosen = settle(first, "auto", special_as_text=False, kept=kept)
    again = load(path, kept=kept)
    assert settle(again, "auto", special_as_text=False, kept=kept) == chosen
    assert "spec" in vars(first.found)
    assert "spec" not in vars(again.found)
    assert again == first == load(path)


@pytest.mark.filterwarnings("ignore::packtool.warnings.PacktoolWarning")
def test_another_question_has_another_answer(tmp_path: Path) -> None:
    path, kept = tokenizer_file(tmp_path), tmp_path / "kept"
    asked = load(path, eos_token=1, kept=kept)
    assert load(path, eos_token=2, kept=kept).info.eos_id == 2
    assert load(path, eos_token=1, kept=kept) == asked
    assert asked.info.eos_id == 1
    plain, as_text = (settle(asked, "auto", special_as_text=each, kept=kept) for each in (False, True))
    assert (plain.special_as_text, as_text.special_as_text) == (False, True)
    assert plain.kept != as_text.kept


def test_a_change_beside_the_file_is_seen(tmp_path: Path) -> None:
    path, kept = tokenizer_file(tmp_path), tmp_path / "kept"
    before = load(path, kept=kept)
    tokenizer_file(tmp_path, eos_token="a")
    with pytest.warns(PacktoolWarning, match="an ordinary token"):
        after = load(path, kept=kept)
    assert after.info.eos_token == "a" != before.info.eos_token
    with pytest.warns(PacktoolWarning, match="an ordinary token"):  # what is remembered is warned of, too
        assert load(path, kept=kept) == after


def test_a_damaged_finding_is_found_again(tmp_path: Path) -> None:
    path, kept = tokenizer_file(tmp_path), tmp_path / "kept"
    first = load(path, kept=kept)
    for file in kept.iterdir():
        file.write_bytes(file.read_bytes()[:-1])
    assert load(path, kept=kept) == first
    assert load(path, kept=kept) == first


def test_errors_are_not_kept(tmp_path: Path) -> None:
    path, kept = tokenizer_file(tmp_path), tmp_path / "kept"
    for _ in range(2):
        with pytest.raises(UsageError, match="not in the vocabulary"):
            load(path, eos_token="no such token", kept=kept)
    assert not kept.exists()


def test_where_nothing_can_be_kept_it_is_found_each_time(tmp_path: Path) -> None:
    path, kept = tokenizer_file(tmp_path), tmp_path / "file" / "kept"
    kept.parent.write_text("in the way")
    assert load(path, kept=kept) == load(path)


def test_a_finding_is_of_its_question() -> None:
    asked = [findings.finding(Path("kept"), *each) for each in (("a", 1), ("a", "1"), ("a1",), ("a", 1))]
    assert len(set(asked)) == 3
    assert asked[0] == asked[3]
    assert findings.finding(None, "a") == ""
