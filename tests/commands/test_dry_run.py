"""A dry run says what would be read, with which options, and what is at the output; it writes nothing."""

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import packtool
from packtool.formats.packed import PackedDataset
from packtool.formats.schema import listed_files
from packtool.support.sizes import show_bytes
from tests.shell import Shell
from tests.stores import write_store

ROWS: dict[str, Any] = {"strategy": "bfd", "sequence_length": 64}


@pytest.fixture
def place(here: Path) -> Path:
    Path("corpus.jsonl").write_text("".join(json.dumps({"text": f"document {n}"}) + "\n" for n in range(3010)))
    write_store(Path("store"), [3 + n * n % 40 for n in range(60)])
    packtool.pack("store", "rows", **ROWS)
    packtool.export("store", "exported", format="nanogpt")
    return here


def test_every_command_knows_its_input_and_writes_nothing(place: Path) -> None:
    tokens = packtool.open("rows").manifest.ledger.input
    store = {"documents": 60, "tokens": tokens + 60}
    rows = {"rows": len(packtool.open("rows")), "tokens": len(packtool.open("rows")) * 64}
    made = {
        "tokenize": packtool.tokenize("corpus.jsonl", "out", dry_run=True),
        "pack": packtool.pack("store", "out", **ROWS, dry_run=True),
        "shuffle": packtool.shuffle("rows", "out", epoch=1, dry_run=True),
        "partial": packtool.shuffle("store", "out", method="partial", batch_size=2, sequence_length=64, dry_run=True),
        "materialize": packtool.materialize("rows", "out", index_only=True, dry_run=True),
        "export": packtool.export("store", "out", format="nanogpt", dry_run=True),
        "import": packtool.import_("exported", "out", format="nanogpt", dry_run=True),
    }
    known = {name: result.preview.known for name, result in made.items() if result.preview}
    read = {"files": 1, "bytes": Path("corpus.jsonl").stat().st_size}
    assert known.pop("tokenize") == read
    assert known.pop("import")["files"] == 1
    of_rows = dict.fromkeys(("shuffle", "materialize"), rows)
    assert known == {**of_rows, **dict.fromkeys(("pack", "partial", "export"), store)}
    assert not Path("out").exists()


PACKED: list[dict[str, Any]] = [
    {"strategy": "bfd", "sequence_length": 64},
    {"strategy": "concat", "sequence_length": 64, "atom_size": 16, "seed": 3, "epoch": 1},
    {"strategy": "seamless", "sequence_length": 48, "shuffle": False},
    {"strategy": "buckets", "buckets": [16, 64], "shard_tokens": 256},
    {"strategy": "padding", "sequence_length": 32, "index_only": True},
    {"strategy": "bfd", "sequence_length": 64, "segments": False, "min_tokens": 20},
    {"strategy": "ffd", "sequence_length": 64, "mix": ["store=2.5x"], "min_tokens": 9},
]


@pytest.mark.parametrize("options", PACKED, ids=lambda options: options["strategy"])
def test_pack_says_what_it_will_write(place: Path, options: dict[str, Any]) -> None:
    preview = packtool.pack("store", "out", **options, dry_run=True).preview
    assert not Path("out").exists()
    packtool.pack("store", "out", **options)
    manifest = PackedDataset("out").manifest
    said = dict(preview.written)
    assert said.pop("rows") == manifest.ledger.rows
    assert said.pop("tokens") == manifest.ledger.output
    arrays = sum(file.bytes for file in listed_files(manifest) if file.name.endswith(".npy"))
    assert said.pop("bytes") == arrays + sum(file.bytes for file in manifest.tokenizer_files)
    assert not said


def test_more_documents_than_it_plans_are_named(place: Path, monkeypatch: pytest.MonkeyPatch, shell: Shell) -> None:
    monkeypatch.setattr("packtool.commands.pack.MOST_DOCUMENTS", 59)
    say = ("pack", "store", "-o", "out", "--strategy", "bfd", "-L", "64", "--dry-run")
    said = shell(*say)
    assert "would write what is not known: a dry run plans at most 59 documents, and these are 60; stats with" in said
    assert "would leave out" not in said
    short = 60 - packtool.stats("store", min_tokens=20).counts["documents"]
    said = shell(*say, "--min-tokens", "20")
    assert f"\nwould leave out {short} too short\nwould write " in said


def test_of_a_programs_records_it_looks_at_the_first_alone(tmp_path: Path) -> None:
    read = []

    def records() -> Iterator[dict[str, str]]:
        for number in range(3):
            read.append(number)
            yield {"text": str(number)}

    preview = packtool.tokenize(records(), tmp_path / "o", dry_run=True).preview
    assert (preview.options["inputs"], preview.known, read) == ("-", {"files": 0, "bytes": 0}, [0])
    assert not (tmp_path / "o").exists()


def test_a_filter_counts_in_what_would_be_written(place: Path, shell: Shell) -> None:
    said = shell("tokenize", "corpus.jsonl", "-o", "out", "--min-tokens", "500", "--dry-run")
    size = Path("corpus.jsonl").stat().st_size
    assert said.startswith("corpus.jsonl: jsonl, ")
    assert f"packtool tokenize {place}/corpus.jsonl -o out --min-tokens 500\n" in said
    kept = show_bytes((Path(packtool.__file__).parent / "assets" / "tokenizer.json").stat().st_size)
    assert f"would read 1 file, {show_bytes(size)}\nread: text" in said
    assert f"\nwould write about 0 tokens, 0 documents, {kept}\n" in said
    assert "\nestimated from 1 place of the text\nwould write to out, which is new (" in said


def test_what_can_not_be_estimated_says_why(place: Path, monkeypatch: pytest.MonkeyPatch, shell: Shell) -> None:
    def said(*words: str) -> str:
        return shell("tokenize", *words, "-o", "out", "--dry-run")

    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b'{"text": "a", "id": 1}')))
    of_stdin = said("-")
    assert "would write what is not known: standard input, a pipe, or what a program gives, can be read" in of_stdin
    assert "\nread: text; not read: id\n" in of_stdin
    Path("long.txt").write_text("a long text " * 20)
    monkeypatch.setattr("packtool.commands.tokenize._MOST_TEXT", 100)
    assert "long.txt is one document of 240 B, which is not read in part" in said("long.txt")
    monkeypatch.setattr("packtool.commands.tokenize.is_remote", lambda location: True)
    assert "would write what is not known: files at URLs are not fetched in a dry run" in said("corpus.jsonl")


def test_it_takes_twenty_lines_at_most(place: Path, shell: Shell) -> None:
    Path("many").mkdir()
    for number in range(300):
        Path("many", f"{number}.txt").write_text("some words")
    lines = shell("tokenize", "many", "-o", "out", "--dry-run").splitlines()
    assert len(lines) <= 20
    assert "… and 288 files more" in lines
    assert any(line.startswith("would write about ") and ", 300 documents, " in line for line in lines)


def test_what_is_at_the_output_is_told(place: Path, shell: Shell) -> None:
    words = ("pack", "store", "-o", "rows", "--strategy", "bfd", "-L", "64", "--dry-run")
    assert "which is finished already: --resume does nothing" in shell(*words)
    assert "which is finished already: --overwrite replaces it" in shell(*words, "--overwrite")
    other = "which holds what other options made (--seed was not given): "
    assert f"{other}it is refused without --overwrite" in shell(*words, "--seed", "3")
    assert f"{other}--overwrite replaces it" in shell(*words, "--seed", "3", "--overwrite")


def test_for_machines(place: Path, shell: Shell) -> None:
    found = json.loads(shell("pack", "store", "-o", "out", "--strategy", "bfd", "-L", "64", "--dry-run", "--json"))
    assert found.pop("free_bytes") > 0
    assert found == {
        "schema_version": 1,
        "command": "pack",
        "options": {"stores": [str(place / "store")], "strategy": "bfd", "sequence_length": 64},
        "path": "out",
        "found": "nothing",
        "documents": 60,
        "tokens": sum(3 + n * n % 40 for n in range(60)),
        "written": dict(packtool.pack("store", "out", **ROWS, dry_run=True).preview.written),
    }


def test_another_version_does_not_go_on(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for command, source, options in ((packtool.pack, "store", ROWS), (packtool.shuffle, "rows", {"epoch": 1})):
        command(source, f"of {source}", **options)
        assert command(source, f"of {source}", **options, dry_run=True).preview.found == "finished"
        with monkeypatch.context() as patch:
            patch.setattr("packtool.outputs.claim.__version__", "0.0")
            assert command(source, f"of {source}", **options, dry_run=True).preview.found == "other"
