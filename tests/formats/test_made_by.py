"""What is said of how an output was made: its choice, its tokenizer by name, and the command that makes it again."""

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

import packtool
from packtool.cli import run
from packtool.formats import manifest as manifests
from packtool.options.arguments import command_line, plain_arguments
from packtool.options.tokenize import TokenizeArguments
from packtool.report.page import page
from packtool.report.types import MeasuredReport
from tests.shell import Shell
from tests.stores import contents

CASES: dict[str, dict[str, Any]] = {
    "mixture": {"strategy": "concat", "mix": "web=40%,wiki=60%", "tokens": "1k", "shuffle": False},
    "chosen": {"strategy": "bfd", "where": "n > 3 and store == 'web'", "holdout": "10%", "part": "train", "keep": "n"},
    "ordered": {"strategy": "best-fit-in-order", "order_by": ["-n:number"], "exclude": ["list of documents", "eval"]},
    "without copies": {"strategy": "seamless", "drop_duplicates": True, "seed": 7, "epoch": 2, "mix_rows": True},
    "of its shares": {"strategy": "buckets", "buckets": [16, 32], "sample": "50%", "max_documents_per_row": 3},
}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("made by")
    for name in ("web", "wiki"):
        lines = [json.dumps({"text": f"{name} word " * (1 + n % 9), "n": n}) for n in range(60)]
        (place / f"{name}.jsonl").write_text("\n".join(lines), encoding="utf-8")
        tokenizer = Path(packtool.__file__).parent / "assets" / "tokenizer.json"
        packtool.tokenize(place / f"{name}.jsonl", place / name, columns=["n"], tokenizer=tokenizer, workers=1)
    packtool.tokenize([{"text": "wiki word wiki word "}], place / "eval", workers=1)
    (place / "list of documents").write_text("web.jsonl:7\nwiki.jsonl:9\n", encoding="utf-8")
    return place


@pytest.mark.parametrize("name", CASES)
def test_the_command_makes_the_same_bytes(name: str, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)
    options = {"sequence_length": 32, **CASES[name]} if name != "of its shares" else CASES[name]
    packtool.pack(["web", "wiki"], name, **options)
    report = packtool.stats(name)
    assert isinstance(report, MeasuredReport)
    assert report.command is not None
    before = contents(place / name)
    monkeypatch.chdir("/")
    again = shlex.split(report.command)
    again[again.index("-o") + 1] = str(place / f"{name} again")
    assert run([*again[1:], "-q"]) == 0
    assert contents(place / f"{name} again") == before
    chosen = manifests.read(place / name).choice  # type: ignore[union-attr]
    assert report.choice == (packtool.stats(place / f"{name} again").choice)  # type: ignore[union-attr]
    facts = packtool.info(place / name).facts
    assert ("chosen by" in facts) == (chosen is not None)
    assert facts["made by"] == report.command.replace(f"-o {shlex.quote(name)}", f"-o {shlex.quote(str(place / name))}")
    assert "made by" in page(report)
    assert report.excluded == [str(place / listed) for listed in CASES[name].get("exclude", ())]


def test_shares_stand_by_the_names_of_the_stores(place: Path, shell: Shell) -> None:
    stores = [place / "web", place / "wiki"]
    packtool.pack(stores, place / "shares", strategy="bfd", sequence_length=32, mix="web=2x,wiki=0.3x")
    said = shell("info", place / "shares")
    assert re.search(r"\n  from web +\d\d\.\d\d% of the tokens \(\d\d\.\d\d% asked\)\n", said)


def test_the_tokenizer_has_the_name_that_was_given(tmp_path: Path, shell: Shell) -> None:
    own = json.loads((Path(packtool.__file__).parent / "assets" / "tokenizer.json").read_text(encoding="utf-8"))
    (tmp_path / "mine.json").write_text(json.dumps(own | {"version": "1.0", "truncation": None}), encoding="utf-8")
    (tmp_path / "a.txt").write_text("some text", encoding="utf-8")
    packtool.tokenize(tmp_path / "a.txt", tmp_path / "store", tokenizer=tmp_path / "mine.json")
    packtool.pack(tmp_path / "store", tmp_path / "packed", strategy="concat", sequence_length=4)
    packtool.shuffle(tmp_path / "packed", tmp_path / "shuffled", epoch=1)
    for name in ("store", "packed", "shuffled"):
        for command in ("info", "stats"):
            assert f"{tmp_path / 'mine.json'} (sha256 " in shell(command, tmp_path / name)


RECORDED: dict[str, Any] = {
    "numbers": {"stores": [1, 2], "strategy": "bfd", "sequence_length": 32},
    "one number": {"stores": 1, "strategy": "bfd", "sequence_length": 32},
    "nothing": {"stores": None, "strategy": "bfd", "sequence_length": 32},
    "lists of lists": {"stores": [["web"]], "strategy": "bfd", "sequence_length": 32},
    "a mapping": {"stores": {"web": 1}, "strategy": "bfd", "sequence_length": 32},
    "no stores": {"strategy": "bfd", "sequence_length": 32},
    "another kind": {"stores": ["web"], "strategy": ["bfd"], "sequence_length": 32},
    "out of range": {"stores": ["web"], "strategy": "bfd", "sequence_length": -32},
    "no such option": {"stores": ["web"], "strategy": "bfd", "sequence_length": 32, "no": 1},
    "of one call": {"stores": ["web"], "strategy": "bfd", "sequence_length": 32, "overwrite": True},
    "no choice": {"stores": ["web"], "strategy": "bfd", "sequence_length": 32, "index_only": "yes"},
    "a secret": {"stores": ["s3://key:secret@bucket/a"], "strategy": "bfd", "sequence_length": 32},
    "no mapping": ["web"],
    "a text": "web",
}


@pytest.mark.parametrize("name", RECORDED)
def test_a_run_that_somebody_wrote_makes_no_command(name: str, place: Path, tmp_path: Path, shell: Shell) -> None:
    """`run.json` has no seal."""
    packtool.pack(place / "web", tmp_path / "rows", strategy="bfd", sequence_length=32)
    record = tmp_path / "rows" / "run.json"
    run = json.loads(record.read_bytes())
    for arguments, command in ((RECORDED[name], "pack"), (run["arguments"], ["pack"]), (run["arguments"], "rm")):
        record.write_text(json.dumps(run | {"arguments": arguments, "command": command}))
        assert packtool.stats(tmp_path / "rows").command is None  # type: ignore[union-attr]
        assert "made by" not in packtool.info(tmp_path / "rows").facts
        for words in (("info",), ("info", "--json"), ("stats",)):
            assert "secret" not in shell(*words, tmp_path / "rows")
    record.unlink()
    assert packtool.stats(tmp_path / "rows").command is None  # type: ignore[union-attr]
    assert "made by" not in packtool.info(tmp_path / "rows").facts


def test_what_looks_like_an_option_is_a_path(place: Path, tmp_path: Path) -> None:
    packtool.pack(place / "web", tmp_path / "rows", strategy="bfd", sequence_length=32)
    record = tmp_path / "rows" / "run.json"
    run = json.loads(record.read_bytes())
    run["arguments"]["stores"] = ["--overwrite", "-o", "/etc"]
    record.write_text(json.dumps(run))
    rest = "--strategy bfd --sequence-length 32"
    made = packtool.info(tmp_path / "rows").facts["made by"]
    assert made == f"packtool pack ./--overwrite ./-o /etc -o {tmp_path / 'rows'} {rest}"


def test_arguments_of_a_template_are_written_as_json() -> None:
    given = plain_arguments(TokenizeArguments("a", "b", template_args={"enable_thinking": False}))
    line = command_line("tokenize", given, "b")
    assert shlex.split(line)[-2:] == ["--template-args", '{"enable_thinking": false}']
