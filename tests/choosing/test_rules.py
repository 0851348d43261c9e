"""A rule reads where documents came from only if it says so: `run` asks before there is a store."""

from pathlib import Path
from typing import Any

import pytest

from packtool.choosing.asked import Asked
from packtool.choosing.rules import RULES, reading_origins
from packtool.errors import PacktoolError
from packtool.options.check import checked
from packtool.options.pack import PackArguments
from tests.choosing.web_and_wiki import pack
from tests.making import Make

ASKED: dict[str, dict[str, Any]] = {
    "exclude": {"exclude": "list.txt"},
    "exclude ids": {"exclude": "ids.txt"},
    "where": {"where": "n > 3 and store == 'bare' and tokens > 1"},
    "where a line": {"where": "n > 3 or line < 4"},
    "min_tokens": {"min_tokens": 2},
    "max_tokens": {"max_tokens": 900},
    "drop_duplicates": {"drop_duplicates": True},
    "holdout": {"holdout": "30%"},
    "holdout by a field": {"holdout": "30%", "holdout_by": "n"},
    "shard_of": {"shard_of": "1/2"},
    "sample": {"sample": "50%"},
}


@pytest.fixture
def bare(make: Make) -> Path:
    """A store that does not know where its documents came from."""
    records = [{"id": f"d{n}", "text": f"text {n}", "n": n} for n in range(30)]
    return make({"bare": records}, {"columns": "n", "id_field": "id", "provenance": False}) / "bare"


@pytest.mark.parametrize("name", ASKED)
def test_what_a_rule_reads_is_declared(bare: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "list.txt").write_text("in.jsonl:3\n")
    (tmp_path / "ids.txt").write_bytes(b"\xef\xbb\xbfd3\nd9\n")  # as Notepad saves it
    options = checked(PackArguments([bare], "p", strategy="bfd", sequence_length=32, **ASKED[name]))
    if reading_origins(Asked.of(options)):
        with pytest.raises(PacktoolError, match="made with provenance=False"):
            pack([bare], tmp_path / "p", **ASKED[name])
    else:
        assert pack([bare], tmp_path / "p", **ASKED[name]).manifest.choice


def test_every_rule_is_asked_for() -> None:
    assert {rule.options[0] for rule in RULES} - {"too_long"} == {name.partition(" ")[0] for name in ASKED}
