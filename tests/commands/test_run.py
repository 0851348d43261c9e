"""A pipeline does what is left to do: nothing when all is done, and ends with the same bytes after any interruption."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import packtool
from packtool.commands.run import run
from packtool.errors import UsageError
from tests.interrupting import interrupted
from tests.places.s3_server import Bucket
from tests.stores import contents, write_store

CONFIG = """
[[pack]]
output = "concat"
strategy = "concat"
sequence-length = 16

[[pack]]
output = "padded"
strategy = "padding"
sequence-length = 16

[shuffle]
input = "padded"
epoch = 3

[stats]
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    write_store(tmp_path / "store", [3 + n * n % 40 for n in range(60)])
    (tmp_path / "c.toml").write_text(CONFIG, encoding="utf-8")
    return tmp_path


def go(place: Path, **options: object) -> list[str]:
    results = run(place / "c.toml", input=place / "store", output=place / "out", **options)  # type: ignore[arg-type]
    return [result.state for result in results]


def change(place: Path, old: str, new: str) -> None:
    file = place / "c.toml"
    assert old in file.read_text(encoding="utf-8")
    file.write_text(file.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")


def test_what_changed_is_made_anew_only_on_request(place: Path) -> None:
    go(place)
    old = contents(place / "out")
    change(place, 'strategy = "padding"\nsequence-length = 16', 'strategy = "padding"\nsequence-length = 32')
    with pytest.raises(UsageError, match=r"out/padded: begun with other options: sequence_length was 16. Give overwri"):
        go(place)
    assert contents(place / "out") == old
    assert go(place, dry_run=True) == ["would keep", "would refuse", "would compare", "would do"]
    assert go(place, dry_run=True, overwrite=True) == ["would keep", "would replace", "would compare", "would do"]
    assert go(place, overwrite=True) == ["kept", "done", "done", "done"]
    assert go(place) == ["kept", "kept", "kept", "done"]


def test_an_interrupted_run_continues(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    go(place)
    whole = contents(place / "out")
    shutil.rmtree(place / "out" / "padded")
    shutil.rmtree(place / "out" / "shuffled")
    interrupted(monkeypatch, go, place)
    assert go(place, dry_run=True)[:2] == ["would keep", "would continue"]
    assert go(place) == ["kept", "done", "done", "done"]
    assert contents(place / "out") == whole


def test_from_text_to_rows(place: Path) -> None:
    """A corpus that is tokenized on the way; touching it makes everything that depends on it anew."""
    corpus = place / "corpus.jsonl"
    corpus.write_text("".join(f'{{"text": "number {n} {"again " * (n % 9)}"}}\n' for n in range(200)), encoding="utf-8")
    config = place / "text.toml"
    config.write_text("[tokenize]\n[pack]\nstrategy = 'bfd'\nsequence-length = 16\n", encoding="utf-8")

    def states(**options: object) -> list[str]:
        results = run(config, input=corpus, output=place / "out", **options)  # type: ignore[arg-type]
        return [result.state for result in results]

    assert states(dry_run=True) == ["would do", "would do"]
    assert states() == ["done", "done"]
    assert states(dry_run=True) == ["would keep", "would keep"]
    assert states(workers=2) == ["kept", "kept"]
    assert packtool.open(place / "out" / "packed").manifest.ledger.rows > 0
    with corpus.open("a", encoding="utf-8") as file:
        file.write('{"text": "one more"}\n')
    assert states(dry_run=True) == ["would refuse", "would compare"]
    with pytest.raises(
        UsageError, match=r"file that it reads has changed since, or packtool.s version\. Give overwrite=True"
    ):
        states()
    assert states(overwrite=True) == ["done", "done"]
    assert packtool.info(place / "out" / "tokens").facts["documents"] == 201


def test_an_output_of_another_command_is_refused_first(place: Path) -> None:
    packtool.pack(place / "store", place / "out" / "shuffled", strategy="concat", sequence_length=16)
    with pytest.raises(UsageError, match=r"out/shuffled: written by packtool pack, not by packtool shuffle."):
        go(place)
    assert not (place / "out" / "concat").exists()


def test_a_pipeline_at_a_url_is_kept_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bucket: Bucket) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "c.jsonl").write_text("".join(json.dumps({"text": f"a river {n}"}) + "\n" for n in range(300)))
    (tmp_path / "p.toml").write_text(
        '[tokenize]\n[pack]\nstrategy = "bfd"\nsequence_length = 32\n[shuffle]\nepoch = 2\n[stats]\n'
    )
    url = "s3://bucket/run"
    intended = packtool.run(tmp_path / "p.toml", input=tmp_path / "c.jsonl", output=url, dry_run=True)
    assert [each.state for each in intended] == ["would do"] * 4
    assert bucket.names("run") == []
    seen: list[Any] = []
    given: dict[str, Any] = {"input": tmp_path / "c.jsonl", "output": url, "staging": tmp_path / "stage"}
    there = packtool.run(tmp_path / "p.toml", **given, announce=lambda *told: seen.append(told[:2]))
    assert seen == [(1, 4), (2, 4), (3, 4), (4, 4)]
    assert [each.state for each in there] == ["done"] * 4
    assert [str(each.stage.output) for each in there[:3]] == [
        f"{url}/{name}" for name in ("tokens", "packed", "shuffled")
    ]
    again = packtool.run(tmp_path / "p.toml", input=tmp_path / "c.jsonl", output=Path(url))
    assert [each.state for each in again] == ["kept", "kept", "kept", "done"]
    intended = packtool.run(tmp_path / "p.toml", input=tmp_path / "c.jsonl", output=url, dry_run=True)
    assert [each.state for each in intended] == ["would keep", "would keep", "would keep", "would do"]
    kept = [file for file in (tmp_path / "cache").rglob("*") if file.is_file()]
    assert [file for file in kept if file.parent.name != "verified"] == [], "what the encoder was found to be may stay"
